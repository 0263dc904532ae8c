"""An engine on fakes."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.fakes.run_bench import Bench


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = await Bench.make()
    yield bench
    await bench.close()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, "a run leaves no task behind"
