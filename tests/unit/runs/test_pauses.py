"""A pause ends its run; answering it is one write, which one answer wins."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from ibid.domain.answers import FinishReason, Resumption, TurnInput, TurnPause, TurnResult
from ibid.domain.conversations import RunState
from ibid.domain.errors import (
    NothingPending,
    PauseExpired,
    PausePending,
    PauseResolved,
    RunNotFound,
    ShuttingDown,
)
from ibid.domain.events import Done, Paused, TurnEvent
from ibid.runs.engine import RunEngine
from ibid.runs.turns import NewResumption, Proceed, Strategy
from tests.fakes.run_bench import LIMITS, Bench, read
from tests.fakes.samples import ANN, a_run, a_turn, scripted_work
from tests.fakes.works import ASKED, asking_work, stepped_work


def _forever() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


async def _paused(bench: Bench) -> str:
    live = await bench.engine.start(a_turn(), asking_work())
    await read(live)
    return live.id


async def test_a_pause_ends_its_run_and_says_what_is_asked(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), asking_work())

    entries = await read(live)

    end = await bench.check(live.id, entries)
    assert end == Paused(
        message_id=live.message_id,
        interrupt_id="interrupt of c1-1",
        node="clarify",
        clarification=ASKED,
        expires_at=bench.clock.now() + timedelta(seconds=LIMITS.pause_s),
    )
    assert (await bench.run(live.id)).state is RunState.PAUSED
    assert (await bench.messages())[-1].finish_reason is FinishReason.PAUSED


async def test_the_answer_goes_on_with_the_same_turn_in_another_run(bench: Bench) -> None:
    seen: list[TurnInput] = []
    paused = await _paused(bench)
    other = bench.another(owner="after a restart")

    live = await other.resume(await bench.resumption(paused), asking_work("here", seen=seen))

    assert isinstance(await bench.check(live.id, await read(live)), Done)
    before, after = await bench.run(paused), await bench.run(live.id)
    assert (before.state, before.resumed_by, before.decision) == (
        RunState.PAUSED,
        live.id,
        "the first",
    )
    assert (after.resumes, after.turn_id, after.id) == (paused, paused, "c1-2")
    assert [turn.resumption for turn in seen] == [
        Resumption(interrupt_id="interrupt of c1-1", answer="the first")
    ]
    question = (await bench.messages())[2]
    assert question.content == "Where is the app made? (the first)"


async def test_the_next_turn_knows_the_answered_one_and_not_the_paused_one(bench: Bench) -> None:
    seen: list[TurnInput] = []
    paused = await _paused(bench)
    live = await bench.engine.resume(await bench.resumption(paused), asking_work("here"))
    await read(live)

    await read(await bench.engine.start(a_turn(), asking_work(seen=seen)))

    (turn,) = seen
    assert [(one.question, one.answer) for one in turn.history] == [
        ("Where is the app made? (the first)", "here")
    ]


async def test_a_thread_that_waits_takes_no_new_turn(bench: Bench) -> None:
    paused = await _paused(bench)

    strategies: list[Strategy] = ["reject", "enqueue", "interrupt"]
    for strategy in strategies:
        with pytest.raises(PausePending) as refusal:
            await bench.engine.start(replace(a_turn(), strategy=strategy), scripted_work())
        assert refusal.value.run_id == paused
        assert refusal.value.interrupt_id == "interrupt of c1-1"


async def test_a_pause_whose_time_is_over_takes_no_question_from_anybody(bench: Bench) -> None:
    paused = await _paused(bench)
    bench.clock.move(LIMITS.pause_s)

    live = await bench.engine.start(a_turn(), scripted_work("free"))

    assert isinstance(await bench.check(live.id, await read(live)), Done)
    assert (await bench.run(paused)).state is RunState.EXPIRED


async def test_a_second_decision_is_told_the_first_ones_outcome(bench: Bench) -> None:
    paused = await _paused(bench)
    again = await bench.resumption(paused, "the second")
    live = await bench.engine.resume(await bench.resumption(paused), asking_work("here"))

    with pytest.raises(PauseResolved) as early:
        await bench.engine.resume(again, asking_work())
    await read(live)
    with pytest.raises(PauseResolved) as late:
        await bench.engine.resume(again, asking_work())

    assert (early.value.run_id, early.value.state) == (live.id, RunState.RUNNING)
    assert (late.value.run_id, late.value.state) == (live.id, RunState.COMPLETED)


async def test_of_two_decisions_at_once_exactly_one_is_carried_out() -> None:
    chance = random.Random(5)  # noqa: S311 - no secret

    winners = [await _race(chance) for _ in range(200)]

    assert set(winners) == {"the first", "the second"}


async def _race(chance: random.Random) -> str:
    """Two decisions through two engines; return the one that was carried out."""
    bench = await Bench.make()
    paused = await _paused(bench)
    engines = {"the first": bench.engine, "the second": bench.another(owner="other")}
    resumptions = [await bench.resumption(paused, answer) for answer in engines]
    chance.shuffle(resumptions)
    answers: list[str] = []

    outcomes = await asyncio.gather(
        *(_decide(engines[one.answer], one, answers, chance) for one in resumptions),
        return_exceptions=True,
    )

    (winner,) = [outcome for outcome in outcomes if isinstance(outcome, str)]
    (loser,) = [outcome for outcome in outcomes if isinstance(outcome, PauseResolved)]
    assert (loser.run_id, answers) == (winner, [(await bench.run(paused)).decision])
    page = await bench.records.runs.list_for("c1", principal=ANN, cursor=None, limit=9)
    assert [run.id for run in page.items] == [winner, paused]
    await bench.close()
    return answers[0]


async def _decide(
    engine: RunEngine, resumption: NewResumption, answers: list[str], chance: random.Random
) -> str:
    for _ in range(chance.randrange(4)):
        await asyncio.sleep(0)
    seen: list[TurnInput] = []
    live = await engine.resume(resumption, asking_work("here", seen=seen))
    await read(live)
    answers += [turn.resumption.answer for turn in seen if turn.resumption is not None]
    return live.id


@pytest.mark.parametrize("how", ["failed", "cancelled"])
async def test_a_decision_whose_run_came_to_nothing_may_be_sent_again(
    bench: Bench, how: str
) -> None:
    paused = await _paused(bench)

    def fail() -> None:
        raise RuntimeError

    work = stepped_work(fail if how == "failed" else _forever)
    second = await bench.engine.resume(await bench.resumption(paused), work)
    if how == "cancelled":
        await bench.engine.cancel_run(second.id, principal=ANN)
    await second.wait_ended()

    with pytest.raises(PauseResolved) as refusal:
        await bench.engine.resume(await bench.resumption(paused, "another"), asking_work())
    third = await bench.engine.resume(await bench.resumption(paused), asking_work("here"))

    assert (refusal.value.run_id, refusal.value.state) == (second.id, how)
    assert isinstance(await bench.check(third.id, await read(third)), Done)
    assert (await bench.run(paused)).resumed_by == third.id == "c1-3"
    assert (await bench.run(third.id)).turn_id == paused


async def test_who_is_unsure_still_asks_again_on_the_same_turn(bench: Bench) -> None:
    paused = await _paused(bench)
    resumption = await bench.resumption(paused)
    again = await bench.engine.resume(resumption, _asks)
    assert isinstance(await bench.check(again.id, await read(again)), Paused)

    third = await bench.engine.resume(
        replace(await bench.resumption(again.id), question="Where? (the first)"),
        asking_work("here"),
    )

    assert isinstance(await bench.check(third.id, await read(third)), Done)
    assert (await bench.run(third.id)).turn_id == paused
    assert (await bench.messages())[-2].content == "Where? (the first) (the first)"


def _asks(turn: TurnInput, proceed: Proceed) -> AsyncIterator[TurnEvent | TurnResult | TurnPause]:
    return asking_work()(replace(turn, resumption=None), proceed)


async def test_cancelling_a_paused_run_frees_the_thread_at_once(bench: Bench) -> None:
    paused = await _paused(bench)

    run = await bench.another(owner="other").cancel_run(paused, principal=ANN)

    assert run.state is RunState.EXPIRED
    with pytest.raises(PauseExpired):
        await bench.engine.resume(await bench.resumption(paused), asking_work())
    await bench.check_free()


async def test_a_pause_that_was_answered_does_not_expire_by_a_cancel(bench: Bench) -> None:
    paused = await _paused(bench)
    live = await bench.engine.resume(await bench.resumption(paused), asking_work("here"))

    run = await bench.engine.cancel_run(paused, principal=ANN)

    assert (run.state, run.resumed_by) == (RunState.PAUSED, live.id)
    assert isinstance(await bench.check(live.id, await read(live)), Done)


async def test_what_does_not_wait_is_not_resumed(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), scripted_work("a"))
    await read(live)
    pause = replace(await bench.resumption(live.id), paused=replace(live.run))

    with pytest.raises(NothingPending):
        await bench.engine.resume(pause, asking_work())
    with pytest.raises(RunNotFound):
        await bench.engine.resume(replace(pause, paused=a_run(7)), asking_work())


async def test_a_process_that_stops_takes_no_answer(bench: Bench) -> None:
    paused = await _paused(bench)
    await bench.engine.drain(5)

    with pytest.raises(ShuttingDown):
        await bench.engine.resume(await bench.resumption(paused), asking_work())

    assert (await bench.run(paused)).resumed_by is None
