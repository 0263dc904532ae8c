"""Tables of its own for every test that asks for them."""

from collections.abc import Iterator

import pytest

from tests.fakes.ministack import Stack


@pytest.fixture
def stack(ministack_url: str) -> Iterator[Stack]:
    with Stack.made(ministack_url) as made:
        yield made
