"""A cancel that comes as a run pauses leaves no pause behind, wherever it meets the run."""

import asyncio

import pytest

from ibid.domain.conversations import RunState
from tests.fakes.run_bench import Bench, read
from tests.fakes.samples import ANN, a_turn
from tests.fakes.works import asking_work


@pytest.mark.parametrize("steps", range(25))
async def test_a_run_that_is_cancelled_as_it_pauses_does_not_stay_paused(
    bench: Bench, steps: int
) -> None:
    live = await bench.engine.start(a_turn(), asking_work("a"))
    reading = asyncio.create_task(read(live))
    for _ in range(steps):
        await asyncio.sleep(0)

    run = await bench.engine.cancel_run(live.id, principal=ANN)
    await reading

    assert run.state in {RunState.CANCELLED, RunState.EXPIRED}
    assert (await bench.run(live.id)).state is run.state
    await bench.check_free()


async def test_a_pause_that_was_just_shown_can_be_cancelled(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), asking_work("a"))
    await read(live)

    run = await bench.engine.cancel_run(live.id, principal=ANN)

    assert run.state is RunState.EXPIRED
    await bench.check_free()
