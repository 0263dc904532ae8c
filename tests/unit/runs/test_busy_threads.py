"""A second turn on a busy thread is refused, waits, or takes its place; places are shared."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from ibid.domain.answers import TurnInput, TurnResult
from ibid.domain.conversations import RunState
from ibid.domain.errors import ThreadBusy
from ibid.domain.events import Done, Failed, Phase, StatusChanged, TokenDelta, TurnEvent
from ibid.domain.principals import Principal
from ibid.runs.engine import RunEngine
from ibid.runs.turns import NewTurn, Proceed, Strategy, Work
from tests.fakes.faults import Gate
from tests.fakes.run_bench import LIMITS, Bench, read
from tests.fakes.samples import ANN, a_conversation, a_result, a_turn, scripted_work
from tests.fakes.works import asking_work

FAST = replace(LIMITS, poll_s=0.001, term_s=0.1, beat_s=0.05)


def _forever() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


def _turn(strategy: Strategy, question: str = "Where is the app made?") -> NewTurn:
    return replace(a_turn(question=question), strategy=strategy)


def _engines(bench: Bench) -> dict[str, RunEngine]:
    return {"here": bench.another(limits=FAST), "elsewhere": bench.another(limits=FAST)}


@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_a_turn_behind_another_waits_for_its_end_and_knows_its_answer(
    bench: Bench, where: str
) -> None:
    engines = _engines(bench)
    go = _forever()
    seen: list[TurnInput] = []

    async def work(turn: TurnInput, _: Proceed) -> AsyncIterator[TurnEvent | TurnResult]:
        seen.append(turn)
        yield TokenDelta(text="second")
        yield a_result("second")

    first = await engines["here"].start(_turn("reject"), scripted_work("one", pause=lambda: go))
    reading = asyncio.create_task(read(first))
    second = await engines[where].start(_turn("enqueue", "and then?"), work)
    reading_too = asyncio.create_task(read(second))
    await asyncio.sleep(0.02)
    assert (await bench.run(second.id)).state is RunState.QUEUED
    assert seen == []

    go.set_result(None)

    await reading
    entries = await reading_too
    assert entries[0].event == StatusChanged(phase=Phase.QUEUED)
    assert isinstance(await bench.check(second.id, entries), Done)
    assert [[one.answer for one in turn.history] for turn in seen] == [["one"]]


async def test_turns_behind_each_other_go_in_the_order_they_came(bench: Bench) -> None:
    engines = list(_engines(bench).values())
    order: list[str] = []

    def work(name: str) -> Work:
        async def say(_: TurnInput, __: Proceed) -> AsyncIterator[TurnEvent | TurnResult]:
            order.append(name)
            await asyncio.sleep(0)
            yield a_result()

        return say

    reading = []
    for number in range(8):
        live = await engines[number % 2].start(_turn("enqueue"), work(f"{number}"))
        reading.append(asyncio.create_task(read(live)))
    await asyncio.gather(*reading)

    assert order == [f"{number}" for number in range(8)]


async def test_a_turn_behind_one_that_pauses_fails_and_says_so(bench: Bench) -> None:
    engine = bench.another(limits=FAST)
    go = _forever()
    hold = scripted_work(pause=lambda: go)
    first = await engine.start(_turn("reject"), lambda turn, proceed: _after(hold, turn, proceed))
    second = await engine.start(_turn("enqueue"), scripted_work("never"))
    reading = asyncio.create_task(read(first))

    go.set_result(None)

    await reading
    end = (await read(second))[-1].event
    assert isinstance(end, Failed)
    assert end.code == "PAUSE_PENDING"
    assert await bench.records.runs.live() == {}


async def _after(
    hold: Work, turn: TurnInput, proceed: Proceed
) -> AsyncIterator[TurnEvent | TurnResult]:
    async for event in hold(turn, proceed):
        if isinstance(event, StatusChanged):
            yield event
    async for event in asking_work()(turn, proceed):
        yield event  # type: ignore[misc]  # a pause, which a Work may give


async def test_a_queued_turn_is_cancelled_as_any_other(bench: Bench) -> None:
    engines = _engines(bench)
    first = await engines["here"].start(_turn("reject"), scripted_work(pause=_forever))
    second = await engines["elsewhere"].start(_turn("enqueue"), scripted_work("never"))

    await engines["here"].cancel_run(second.id, principal=ANN)
    bench.clock.move(1.0)
    await engines["elsewhere"].look()

    end = (await read(second))[-1].event
    assert isinstance(end, Failed)
    assert end.code == "RUN_CANCELLED"
    assert not first.ended.done()


@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_an_interrupting_turn_stops_the_one_before(bench: Bench, where: str) -> None:
    engines = _engines(bench)
    first = await engines["here"].start(_turn("reject"), scripted_work("a", pause=_forever))
    reading = asyncio.create_task(read(first))
    await asyncio.sleep(0)

    starting = asyncio.create_task(
        engines[where].start(_turn("interrupt"), scripted_work("instead"))
    )
    while not starting.done():
        bench.clock.move(0.01)
        await engines["here"].look()
        await asyncio.sleep(0.001)

    second = await starting
    end = (await reading)[-1].event
    assert isinstance(end, Failed)
    assert end.code == "RUN_CANCELLED"
    assert isinstance(await bench.check(second.id, await read(second)), Done)


async def test_an_interrupting_turn_ends_one_whose_process_died(bench: Bench) -> None:
    gate = Gate("append:before", "is_cancelled:before", "end:before")
    dead = await bench.another(at=gate).start(_turn("reject"), scripted_work(pause=_forever))
    gate.shut()
    engine = bench.another(limits=FAST)

    starting = asyncio.create_task(engine.start(_turn("interrupt"), scripted_work("instead")))
    while not starting.done():
        bench.clock.move(0.05)
        await asyncio.sleep(0.001)

    live = await starting
    assert isinstance(await bench.check(live.id, await read(live)), Done)
    end = await bench.run_end(dead.id)
    assert isinstance(end, Failed)
    assert end.code == "RUN_LOST"
    gate.open()


async def test_an_interrupt_that_is_not_heeded_in_time_is_refused(bench: Bench) -> None:
    gate = Gate("append:before", "is_cancelled:before", "end:before")
    stuck = await bench.another(at=gate).start(_turn("reject"), scripted_work(pause=_forever))
    gate.shut()

    with pytest.raises(ThreadBusy) as refusal:  # its lease may be alive: the clock stands still
        await bench.another(limits=FAST).start(_turn("interrupt"), scripted_work())

    assert refusal.value.run_id == stuck.id
    gate.open()


async def test_who_starts_at_once_gets_numbers_of_his_own(bench: Bench) -> None:
    engines = [bench.another(limits=FAST) for _ in range(10)]
    planned: list[str] = []

    async def plan(run_id: str) -> None:
        planned.append(run_id)

    turn = replace(_turn("enqueue"), planned=plan)
    lives = await asyncio.gather(*(one.start(turn, scripted_work("a")) for one in engines))
    ends = await asyncio.gather(*(read(live) for live in lives))

    assert sorted(live.run.number for live in lives) == list(range(1, 11))
    assert {live.id for live in lives} <= set(planned)
    assert all(isinstance(entries[-1].event, Done) for entries in ends)


async def test_places_are_counted_over_all_processes(bench: Bench) -> None:
    limits = replace(FAST, tenant=3, subject=2)
    bob = Principal(tenant="acme", subject="bob")
    engines = [bench.another(limits=limits), bench.another(limits=limits)]
    running = most = 0

    async def work(turn: TurnInput, _: Proceed) -> AsyncIterator[TurnEvent | TurnResult]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for __ in range(20):
            await asyncio.sleep(0)
        running -= 1
        yield a_result(turn.run_id)

    reading = []
    for number in range(12):
        who = (ANN, bob)[number % 2]
        conversation = a_conversation(f"x{number}", principal=who)
        await bench.records.conversations.create(conversation)
        turn = a_turn(principal=who, conversation=conversation)
        live = await engines[number // 2 % 2].start(turn, work)
        reading.append(asyncio.create_task(read(live)))

    ends = await asyncio.gather(*reading)

    assert all(isinstance(entries[-1].event, Done) for entries in ends)
    assert most == 3


async def test_a_subject_s_runs_go_in_the_order_they_came(bench: Bench) -> None:
    engine = bench.another(limits=replace(FAST, subject=1))
    order: list[str] = []

    async def work(turn: TurnInput, _: Proceed) -> AsyncIterator[TurnEvent | TurnResult]:
        order.append(turn.run_id)
        await asyncio.sleep(0)
        yield a_result()

    reading = []
    for number in range(6):
        await bench.records.conversations.create(a_conversation(f"x{number}"))
        live = await engine.start(a_turn(conversation=a_conversation(f"x{number}")), work)
        reading.append(asyncio.create_task(read(live)))
    await asyncio.gather(*reading)

    assert order == [f"x{number}-1" for number in range(6)]


async def test_a_dead_run_frees_its_place(bench: Bench) -> None:
    limits = replace(FAST, subject=1)
    gate = Gate("append:before", "is_cancelled:before", "end:before")
    await bench.another(at=gate, limits=limits).start(a_turn(), scripted_work(pause=_forever))
    gate.shut()
    await bench.records.conversations.create(a_conversation("c2"))
    engine = bench.another(limits=limits)
    turn = a_turn(conversation=a_conversation("c2"))
    reading = asyncio.create_task(read(await engine.start(turn, scripted_work("a"))))

    while not reading.done():
        bench.clock.move(0.05)
        await engine.look()
        await asyncio.sleep(0.001)

    assert isinstance((await reading)[-1].event, Done)
    gate.open()


async def test_a_deadline_ends_the_run_a_margin_before(bench: Bench) -> None:
    engine = bench.another(limits=replace(LIMITS, margin_s=1_000.0))
    turn = replace(a_turn(), deadline_s=1_000.01)
    live = await engine.start(turn, scripted_work("a", pause=_forever))

    end = await bench.check(live.id, await read(live))

    assert isinstance(end, Failed)
    assert end.code == "RUN_TIMED_OUT"
