"""A sweep ends what is dead, expires what nobody answered, and removes what is kept no longer."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest

from ibid.domain.conversations import RunState
from ibid.domain.errors import JournalExpired, PauseExpired, StoreUnavailable
from ibid.domain.events import RESERVED_IDS, Failed
from ibid.ports.idempotency import KeyScope
from ibid.ports.runs import RunStore
from ibid.runs.sweep import Sweep
from tests.fakes.faults import At, Faulty, Gate
from tests.fakes.run_bench import LIMITS, Bench, read
from tests.fakes.samples import a_turn, scripted_work
from tests.fakes.sweep import EAGER
from tests.fakes.works import asking_work

SWEPT = replace(LIMITS, beat_s=0.002, term_s=0.006)


def _forever() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


def _sweep(bench: Bench, at: At | None = None) -> Sweep:
    """A sweep in whose eyes the time of a beat passes before each look at the live runs."""

    async def pass_time(point: str) -> None:
        if point == "live:before":
            bench.clock.move(SWEPT.beat_s)
        if at is not None:
            await at(point)

    return Sweep(
        runs=cast("RunStore", Faulty(bench.records.runs, pass_time)),
        idempotency=bench.records.idempotency,
        clock=bench.clock,
        limits=SWEPT,
    )


async def test_a_dead_run_is_ended_with_what_its_journal_holds(bench: Bench) -> None:
    gate = Gate("append:before", "is_cancelled:before", "end:before")
    engine = bench.another(at=gate, limits=EAGER)
    live = await engine.start(a_turn(), scripted_work("a", "b", pause=_forever))
    reading = asyncio.create_task(read(live))
    for _ in range(50):  # until all is shown and kept
        await asyncio.sleep(0)
    gate.shut()

    await _sweep(bench).sweep()

    run = await bench.run(live.id)
    assert isinstance(run.terminator, Failed)
    assert (run.terminator.code, run.terminator.kept_through_id) == ("RUN_LOST", 4)
    assert (run.state, run.last_event_id) == (RunState.FAILED, 5 + RESERVED_IDS)
    assert (await bench.messages())[-1].content == "ab"
    gate.open()
    bench.clock.move(LIMITS.beat_s)
    await engine.look()
    assert (await reading)[-1].event == run.terminator
    await bench.check_free()


async def test_two_sweeps_at_once_end_it_once(bench: Bench) -> None:
    gate = Gate("append:before", "is_cancelled:before", "end:before")
    await bench.another(at=gate).start(a_turn(), scripted_work("a", pause=_forever))
    gate.shut()

    await asyncio.gather(*(_sweep(bench).sweep() for _ in range(3)))

    assert [message.role for message in await bench.messages()] == ["user", "assistant"]
    gate.open()


async def test_a_run_that_beats_is_left_alone(bench: Bench) -> None:
    engine = bench.another(limits=replace(LIMITS, beat_s=0.001))
    live = await engine.start(a_turn(), scripted_work("a", pause=_forever))

    async def beat(point: str) -> None:
        if point == "live:before":
            await engine.look()

    await _sweep(bench, beat).sweep()

    assert not live.ended.done()


async def test_a_pause_that_nobody_answered_in_time_expires(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), asking_work())
    await read(live)
    await _sweep(bench).sweep()
    assert (await bench.run(live.id)).state is RunState.PAUSED

    bench.clock.move(LIMITS.pause_s)
    await _sweep(bench).sweep()

    assert (await bench.run(live.id)).state is RunState.EXPIRED
    with pytest.raises(PauseExpired):
        await bench.engine.resume(await bench.resumption(live.id), asking_work())
    await bench.check_free()


async def test_a_pause_that_is_answered_as_it_expires_goes_on(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), asking_work())
    await read(live)
    resumption = await bench.resumption(live.id)
    bench.clock.move(LIMITS.pause_s)

    async def answer(point: str) -> None:
        if point == "expire:before":
            await read(await bench.engine.resume(resumption, asking_work("here")))

    await _sweep(bench, answer).sweep()

    run = await bench.run(live.id)
    assert (run.state, run.resumed_by) == (RunState.PAUSED, "c1-2")


async def test_journals_and_keys_are_removed_after_their_time(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), scripted_work("a"))
    await read(live)
    scope = KeyScope(tenant="acme", subject="ann", method="POST", path="/p", key="k")
    now = bench.clock.now()
    record = await bench.records.idempotency.claim(
        scope, fingerprint="f", owner="o", now=now, expires_at=now + timedelta(days=1)
    )
    await _sweep(bench).sweep()
    assert await bench.records.idempotency.get(record.id, tenant="acme", now=now) is not None
    assert len((await bench.records.runs.entries(live.run, after=0)).entries) == 4

    bench.clock.move(LIMITS.journal_s)
    await _sweep(bench).sweep()

    assert await bench.records.idempotency.get(record.id, tenant="acme", now=now) is None
    with pytest.raises(JournalExpired):
        await bench.records.runs.entries(live.run, after=0)
    assert len(await bench.messages()) == 2


@pytest.mark.parametrize("fault", [StoreUnavailable("away"), ValueError("a damaged row")])
async def test_a_sweep_that_fails_half_way_is_done_again(bench: Bench, fault: Exception) -> None:
    live = await bench.engine.start(a_turn(), asking_work())
    await read(live)
    bench.clock.move(LIMITS.pause_s)
    faults = 0
    swept = asyncio.Event()

    async def away(point: str) -> None:
        nonlocal faults
        faults += 1
        if faults < 6:
            raise fault
        if point == "purge:after":
            swept.set()

    watching = asyncio.create_task(_sweep(bench, away).watch(0.001))
    await asyncio.wait_for(swept.wait(), 10)
    watching.cancel()

    with pytest.raises(asyncio.CancelledError):
        await watching
    assert (await bench.run(live.id)).state is RunState.EXPIRED
