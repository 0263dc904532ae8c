"""One ministack a session, and tables of its own for every test that asks for them."""

from collections.abc import Iterator

import pytest

from tests.fakes.ministack import Stack, ministack


@pytest.fixture(scope="session")
def ministack_url() -> Iterator[str]:
    with ministack() as url:
        yield url


@pytest.fixture
def stack(ministack_url: str) -> Iterator[Stack]:
    with Stack.made(ministack_url) as made:
        yield made
