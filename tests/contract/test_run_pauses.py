"""What every RunStore does with a pause: asked once, answered once, or expired."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from ibid.domain.conversations import Run, RunState
from ibid.domain.errors import (
    NothingPending,
    PauseExpired,
    PausePending,
    PauseResolved,
    RunNotFound,
    RunNumberTaken,
    ThreadBusy,
)
from ibid.domain.events import Paused
from ibid.domain.principals import Principal
from tests.contract.odd import ODD
from tests.contract.run_steps import (
    a_failure,
    begin,
    conversations,
    end,
    ended,
    journal,
    kept,
    messages,
    pause,
    resume,
)
from tests.fakes.records import Records
from tests.fakes.samples import ANN, NOON, a_pause, a_question, a_resumption, a_run, an_answer

DAY = timedelta(days=1)


async def test_a_pause_ends_its_run(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()

    paused = await pause(records, run)

    assert (paused.state, paused.terminator) == (RunState.PAUSED, a_pause(run))
    assert await records.runs.live() == {}
    assert [entry.event for entry in await journal(records, run)] == [a_pause(run)]
    assert await messages(records) == [a_question(run), an_answer(run)]


@pytest.mark.parametrize("behind", [False, True])
async def test_no_other_turn_begins_while_a_pause_is_pending(
    records: Records, *, behind: bool
) -> None:
    await conversations(records, "c1", "c2")
    await pause(records, a_run())

    with pytest.raises(PausePending) as refusal:
        await begin(records, a_run(2), behind=behind)
    await begin(records, a_run(conversation_id="c2"))

    assert (refusal.value.run_id, refusal.value.interrupt_id) == ("c1-1", "interrupt of c1-1")
    assert (await records.conversations.get("c1", principal=ANN)).runs_begun == 1
    assert len(await messages(records)) == 2


async def test_a_resumption_is_kept_with_its_decision(records: Records) -> None:
    await conversations(records, "c1")
    paused = await pause(records, a_run())
    before = await messages(records)
    run = replace(a_resumption(paused, 2), graph="ask")

    begun = await resume(records, run, decision="this one", history=9)

    assert begun.run == run
    assert list(begun.messages) == before
    assert await kept(records, run) == run
    assert await kept(records, paused) == replace(paused, resumed_by=run.id, decision="this one")
    assert await messages(records) == [
        *before,
        a_question(run, "Where is the app made? (this one)"),
    ]
    assert await records.runs.live() == {("acme", run.id): 0}


@pytest.mark.parametrize("odd", ODD)
async def test_any_text_serves_as_question_option_and_decision(records: Records, odd: str) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    asked = a_pause(run)
    asked = replace(
        asked,
        interrupt_id=odd,
        node=odd,
        clarification=replace(asked.clarification, question=odd, options=(odd, "other")),
    )
    paused = await end(records, run, asked)

    await resume(records, a_resumption(paused, 2), decision=odd)

    found = await records.runs.get(run.id, principal=ANN)
    assert (found.terminator, found.decision) == (asked, odd)


async def test_a_second_decision_is_told_who_carries_out_the_first(records: Records) -> None:
    await conversations(records, "c1")
    paused = await pause(records, a_run())
    await resume(records, a_resumption(paused, 2))

    for number, decision in [(2, "this one"), (3, "that one"), (3, "this one")]:
        with pytest.raises(PauseResolved) as refusal:
            await resume(records, a_resumption(paused, number), decision=decision)
        assert (refusal.value.run_id, refusal.value.state) == ("c1-2", RunState.RUNNING)
    await end(records, a_resumption(paused, 2))
    with pytest.raises(PauseResolved) as refusal:
        await resume(records, a_resumption(paused, 3))

    assert (refusal.value.run_id, refusal.value.state) == ("c1-2", RunState.COMPLETED)
    assert (await kept(records, paused)).decision == "this one"
    assert len(await messages(records)) == 4


async def test_of_two_decisions_at_once_one_is_taken_and_the_loser_is_told_it_200_times(
    records: Records,
) -> None:
    await conversations(records, "c1")
    paused = await pause(records, a_run(1))
    for number in range(2, 202):
        contenders = [
            replace(a_resumption(paused, number), lease_owner=owner) for owner in ("one", "two")
        ]

        outcomes = await asyncio.gather(
            *(resume(records, run, decision=run.lease_owner) for run in contenders),
            return_exceptions=True,
        )

        (won,) = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        (lost,) = [outcome for outcome in outcomes if isinstance(outcome, PauseResolved)]
        assert (lost.run_id, lost.state) == (won.run.id, RunState.RUNNING)
        asked = await kept(records, paused)
        assert (asked.resumed_by, asked.decision) == (won.run.id, won.run.lease_owner)
        assert await kept(records, won.run) == won.run
        paused = await end(records, won.run, a_pause(won.run))  # and asks again
    answers = [message.run_id for message in await messages(records)]
    assert answers == [f"c1-{number}" for number in range(102, 202) for _ in range(2)]


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.CANCELLED, RunState.TIMED_OUT])
async def test_a_decision_that_came_to_nothing_may_be_sent_again(
    records: Records, state: RunState
) -> None:
    await conversations(records, "c1")
    paused = await pause(records, a_run())
    second, third = a_resumption(paused, 2), a_resumption(paused, 3)
    await resume(records, second)
    await end(records, second, a_failure(), state=state)

    with pytest.raises(PauseResolved) as refusal:
        await resume(records, third, decision="that one")
    begun = await resume(records, third)

    assert (refusal.value.run_id, refusal.value.state) == ("c1-2", state)
    assert begun.run == third
    found = await kept(records, paused)
    assert (found.resumed_by, found.decision) == ("c1-3", "this one")
    assert (await kept(records, second)).resumes == paused.id
    with pytest.raises(PauseResolved) as refusal:
        await resume(records, a_resumption(paused, 4))
    assert refusal.value.run_id == "c1-3"


async def test_a_decision_is_not_carried_out_again_after_another_turn(records: Records) -> None:
    await conversations(records, "c1")
    paused = await pause(records, a_run())
    await resume(records, a_resumption(paused, 2))
    await end(records, a_resumption(paused, 2), a_failure())
    await ended(records, 3)

    with pytest.raises(PauseResolved) as refusal:
        await resume(records, a_resumption(paused, 4))

    assert (refusal.value.run_id, refusal.value.state) == ("c1-2", RunState.FAILED)
    assert await records.runs.live() == {}


async def test_a_resumption_that_pauses_again_has_a_pause_of_its_own(records: Records) -> None:
    await conversations(records, "c1")
    first = await pause(records, a_run())
    second = a_resumption(first, 2)
    await resume(records, second)
    asked = await end(records, second, a_pause(second))

    with pytest.raises(PauseResolved) as refusal:
        await resume(records, a_resumption(first, 3))
    with pytest.raises(PausePending) as pending:
        await begin(records, a_run(3))
    await resume(records, a_resumption(asked, 3), decision="that one")

    assert (refusal.value.run_id, refusal.value.state) == ("c1-2", RunState.PAUSED)
    assert pending.value.run_id == "c1-2"
    assert (await kept(records, asked)).resumed_by == "c1-3"
    assert (await kept(records, first)).resumed_by == "c1-2"
    assert (await kept(records, a_run(3))).turn_id == "c1-1"


async def test_a_live_resumption_makes_the_thread_busy(records: Records) -> None:
    await conversations(records, "c1")
    paused = await pause(records, a_run())
    await resume(records, a_resumption(paused, 2))

    with pytest.raises(ThreadBusy) as refusal:
        await begin(records, a_run(3))
    behind = await begin(records, a_run(3), behind=True)

    assert refusal.value.run_id == "c1-2"
    assert behind.run.state is RunState.QUEUED


@pytest.mark.parametrize("number", [1, 3])
async def test_a_resumption_needs_the_next_number(records: Records, number: int) -> None:
    await conversations(records, "c1")
    paused = await pause(records, a_run())

    with pytest.raises(RunNumberTaken):
        await resume(records, a_resumption(paused, number))

    assert await kept(records, paused) == paused
    assert len(await messages(records)) == 2


async def test_only_a_paused_run_of_ones_own_is_resumed(records: Records) -> None:
    await conversations(records, "c1", "c2")
    paused = await pause(records, a_run())
    over = await ended(records, 1, conversation_id="c2")
    live = a_run(2, conversation_id="c2")
    await begin(records, live)

    for subject, tenant in [("bob", "acme"), ("ann", "rival")]:
        stranger = replace(a_resumption(paused, 2), subject=subject, tenant=tenant)
        with pytest.raises(RunNotFound):
            await resume(records, stranger)
    with pytest.raises(RunNotFound):
        await resume(records, replace(a_resumption(paused, 2), resumes="c1-9"))
    for run in (over, live):
        with pytest.raises(NothingPending):
            await resume(records, a_resumption(run, 3))

    assert await kept(records, paused) == paused


async def test_a_pause_expires_and_frees_the_thread(records: Records) -> None:
    await conversations(records, "c1")
    paused = await pause(records, a_run())

    assert await records.runs.expire(paused)
    assert await records.runs.expire(paused)

    assert await kept(records, paused) == replace(paused, state=RunState.EXPIRED)
    with pytest.raises(PauseExpired):
        await resume(records, a_resumption(paused, 2))
    await begin(records, a_run(2))


async def test_a_pause_that_was_answered_does_not_expire(records: Records) -> None:
    await conversations(records, "c1")
    paused = await pause(records, a_run())
    run = a_resumption(paused, 2)
    await resume(records, run)
    answered = await kept(records, paused)

    assert not await records.runs.expire(paused)
    await end(records, run, a_failure())
    assert not await records.runs.expire(paused)

    assert await kept(records, paused) == answered


async def test_what_is_no_pause_does_not_expire(records: Records) -> None:
    await conversations(records, "c1", "c2")
    over = await ended(records)
    live = a_run(conversation_id="c2")
    await begin(records, live)

    assert not await records.runs.expire(over)
    assert not await records.runs.expire(live)
    assert not await records.runs.expire(a_run(9))

    assert await kept(records, over) == over
    assert await kept(records, live) == live


async def test_of_an_answer_and_an_expiry_at_once_one_comes_to_pass(records: Records) -> None:
    names = [f"c{number}" for number in range(30)]
    await conversations(records, *names)
    for name in names:
        paused = await pause(records, a_run(conversation_id=name))

        answer, has_expired = await asyncio.gather(
            resume(records, a_resumption(paused, 2)),
            records.runs.expire(paused),
            return_exceptions=True,
        )

        assert isinstance(answer, PauseExpired) is has_expired
        found = await kept(records, paused)
        assert (found.state is RunState.EXPIRED) is has_expired
        assert (found.resumed_by is None) is has_expired


async def test_only_pauses_whose_time_is_over_are_due(records: Records) -> None:
    other = Principal(tenant="rival", subject="eve")
    await conversations(records, "c1", "c2", "c3", "c4", "c5")
    await conversations(records, "c1", principal=other)
    at = NOON + DAY
    due = await _pause_until(records, a_run(conversation_id="c1"), hours=24)
    theirs = await _pause_until(records, a_run(principal=other), hours=23)
    await _pause_until(records, a_run(conversation_id="c2"), hours=25)
    expired = await _pause_until(records, a_run(conversation_id="c3"), hours=1)
    await records.runs.expire(expired)
    answered = await _pause_until(records, a_run(conversation_id="c4"), hours=1)
    await resume(records, a_resumption(answered, 2))
    await ended(records, 1, conversation_id="c5")

    found = await records.runs.due_pauses(at)

    assert sorted(found, key=lambda run: run.tenant) == [due, theirs]
    assert len(await records.runs.due_pauses(at, limit=1)) == 1
    assert await records.runs.due_pauses(at - DAY) == []


async def _pause_until(records: Records, run: Run, *, hours: int) -> Run:
    await begin(records, run)
    asked: Paused = replace(a_pause(run), expires_at=NOON + timedelta(hours=hours))
    return await end(records, run, asked)
