"""A cancel stops a run wherever it runs: before its next model call, and within a second."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from ibid.domain.answers import FinishReason, TurnInput, TurnResult
from ibid.domain.conversations import RunState
from ibid.domain.errors import RunNotFound
from ibid.domain.events import Failed, TokenDelta, TurnEvent
from ibid.domain.principals import Principal
from ibid.runs.turns import Proceed
from tests.fakes.faults import Gate
from tests.fakes.run_bench import LIMITS, Bench, read, text
from tests.fakes.samples import ANN, a_conversation, a_turn, scripted_work
from tests.fakes.works import stepped_work

FAST = replace(LIMITS, poll_s=0.001)


def _forever() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


async def test_a_run_of_this_process_stops_at_once_and_keeps_what_was_shown(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), scripted_work("a", pause=_forever))
    reading = asyncio.create_task(read(live))
    for _ in range(10):
        await asyncio.sleep(0)

    run = await bench.engine.cancel_run(live.id, principal=ANN)

    entries = await reading
    end = await bench.check(live.id, entries)
    assert isinstance(end, Failed)
    assert (end.code, text(entries)) == ("RUN_CANCELLED", "a")
    assert run == await bench.run(live.id)
    assert (run.state, run.last_event_id) == (RunState.CANCELLED, 4)
    assert (await bench.messages())[-1].finish_reason is FinishReason.CANCELLED


async def test_a_run_of_another_process_stops_before_its_next_model_call(bench: Bench) -> None:
    other = bench.another(owner="other")
    points: list[str] = []
    calls: list[str] = []

    async def note(point: str) -> None:
        points.append(point)

    async def cancel() -> None:
        bench.clock.move(0.1)
        await other.cancel_run("c1-1", principal=ANN)
        points.clear()

    engine = bench.another(at=note)
    work = stepped_work("one", lambda: asyncio.ensure_future(cancel()), "two", calls=calls)
    live = await engine.start(a_turn(), work)

    entries = await read(live)

    assert calls == ["one"]
    assert points[:2] == ["is_cancelled:before", "is_cancelled:after"]
    assert points[2] == "end:before"
    end = await bench.check(live.id, entries)
    assert isinstance(end, Failed)
    assert (end.code, text(entries)) == ("RUN_CANCELLED", "one")


@pytest.mark.parametrize("tokens_a_second", [20, 125])
async def test_a_run_of_another_process_stops_within_a_second_of_tokens(
    bench: Bench, tokens_a_second: int
) -> None:
    other = bench.another(owner="other")
    cancelled_at = stopped_at = 0.0

    async def work(_: TurnInput, __: Proceed) -> AsyncIterator[TurnEvent | TurnResult]:
        nonlocal cancelled_at, stopped_at
        try:
            for number in range(1_000):
                if number == 77:
                    await other.cancel_run("c1-1", principal=ANN)
                    cancelled_at = bench.clock.monotonic()
                bench.clock.move(1 / tokens_a_second)
                yield TokenDelta(text="token ")
                for ___ in range(5):  # a turn of the loop or two goes by between two tokens
                    await asyncio.sleep(0)
        finally:
            stopped_at = bench.clock.monotonic()

    live = await bench.engine.start(a_turn(), work)

    entries = await read(live)

    assert 0 < stopped_at - cancelled_at < 1.0
    end = await bench.check(live.id, entries)
    assert isinstance(end, Failed)
    assert end.code == "RUN_CANCELLED"


async def test_a_cancel_of_another_process_is_told_as_it_stands(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), scripted_work("a", pause=_forever))

    run = await bench.another(owner="other").cancel_run(live.id, principal=ANN)

    assert (run.state, run.cancel_requested) == (RunState.RUNNING, True)
    bench.clock.move(1.0)
    await bench.engine.look()
    await live.wait_ended()


async def test_a_cancel_of_what_has_ended_changes_nothing(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), scripted_work("a"))
    entries = await read(live)

    for engine in (bench.engine, bench.another(owner="other")):
        assert await engine.cancel_run(live.id, principal=ANN) == await bench.run(live.id)

    await bench.check(live.id, entries)


async def test_nobody_cancels_what_is_not_his(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), scripted_work(pause=_forever))

    for subject, tenant in (("bob", "acme"), ("ann", "rival")):
        principal = Principal(tenant=tenant, subject=subject)
        for engine in (bench.engine, bench.another(owner="other")):
            with pytest.raises(RunNotFound):
                await engine.cancel_run(live.id, principal=principal)

    assert not (await bench.run(live.id)).cancel_requested


@pytest.mark.parametrize("by", ["conversation", "project"])
async def test_all_runs_of_something_are_cancelled_in_every_process(bench: Bench, by: str) -> None:
    engines = [bench.another(limits=FAST), bench.another(owner="other", limits=FAST)]
    await bench.records.conversations.create(a_conversation("c2"))
    mine = await engines[0].start(a_turn(), scripted_work(pause=_forever))
    turn = a_turn(conversation=a_conversation("c2"))
    theirs = await engines[1].start(turn, scripted_work(pause=_forever))
    await engines[1].cancel(tenant="rival")

    cancelling = asyncio.create_task(
        engines[0].cancel(tenant="acme", conversation_id="c2")
        if by == "conversation"
        else engines[0].cancel(tenant="acme", project_id="p1")
    )
    while not cancelling.done():
        bench.clock.move(0.05)
        await engines[1].look()
        await asyncio.sleep(0.001)

    await cancelling
    assert theirs.ended.done()
    assert mine.ended.done() is (by == "project")


async def test_a_cancel_ends_what_a_dead_process_left(bench: Bench) -> None:
    gate = Gate("append:before", "is_cancelled:before", "end:before")
    live = await bench.another(at=gate).start(a_turn(), scripted_work(pause=_forever))
    gate.shut()
    engine = bench.another(limits=FAST)

    cancelling = asyncio.create_task(engine.cancel(tenant="acme", conversation_id="c1"))
    while not cancelling.done():
        bench.clock.move(1.0)
        await asyncio.sleep(0.001)

    await cancelling
    end = await bench.run_end(live.id)
    assert isinstance(end, Failed)
    assert end.code == "RUN_LOST"
    gate.open()
