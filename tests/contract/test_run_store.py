"""What every RunStore does."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from ibid.domain.answers import FinishReason, GroundingWarning, Intent
from ibid.domain.conversations import Message, Run, RunState
from ibid.domain.errors import ConversationNotFound, LeaseLost, RunNotFound, ThreadBusy
from ibid.domain.events import Done, Failed, Terminator
from ibid.domain.principals import Principal
from tests.contract.odd import ODD
from tests.fakes.run_bench import Records
from tests.fakes.samples import (
    ANN,
    NOON,
    a_citation,
    a_conversation,
    a_project,
    a_question,
    a_run,
    an_answer,
)

DONE = Done(
    message_id="answer of r1",
    model="scripted",
    finish_reason=FinishReason.STOP,
    cited_indexes=(1, 2),
    grounding_warnings=(GroundingWarning.UNKNOWN_PATHS, GroundingWarning.WEAK_EVIDENCE),
    intent=Intent.CODEBASE_QUESTION,
    retrieval_attempts=2,
    citations=(a_citation(1), a_citation(2, cited=False)),
    degraded=("classify", "grade"),
)
FAILED = Failed(
    message_id=None,
    code="LLM_UNAVAILABLE",
    message="The model went away. \u2028",
    finish_reason=FinishReason.ERROR,
    kept_through_id=0,
)


async def _conversation(records: Records, *conversation_ids: str) -> None:
    await records.projects.create(a_project())
    for conversation_id in conversation_ids:
        await records.conversations.create(a_conversation(conversation_id))


async def _begin(records: Records, run: Run) -> None:
    await records.runs.begin(run, question=a_question(run), title=f"title of {run.id}")


async def _end(
    records: Records,
    terminator: Terminator = DONE,
    *,
    run_id: str = "r1",
    tenant: str = "acme",
    owner: str = "me",
    answer: Message | None = None,
) -> Run:
    return await records.runs.end(
        run_id,
        tenant=tenant,
        owner=owner,
        state=RunState.COMPLETED if isinstance(terminator, Done) else RunState.FAILED,
        terminator=terminator,
        event_id=7,
        answer=answer,
        at=NOON + timedelta(seconds=1),
    )


async def _end_dead(records: Records, run_id: str, beat: int, *, tenant: str = "acme") -> bool:
    return await records.runs.end_dead(
        run_id,
        tenant=tenant,
        beat=beat,
        terminator=FAILED,
        event_id=1_000,
        answer=replace(an_answer(a_run("nobody's", conversation_id="nobody's")), content=""),
        at=NOON,
    )


async def _kept(records: Records, conversation_id: str = "c1") -> list[Message]:
    return list(
        await records.conversations.latest_messages(conversation_id, principal=ANN, limit=200)
    )


async def test_a_run_is_kept_with_its_question(records: Records) -> None:
    await _conversation(records, "c1")
    run = replace(a_run(), state=RunState.QUEUED)

    await _begin(records, run)

    assert await records.runs.get("r1", principal=ANN) == run
    assert await _kept(records) == [a_question(run)]
    assert (await records.conversations.get("c1", principal=ANN)).title == "title of r1"


@pytest.mark.parametrize("odd", ODD)
async def test_any_text_serves_as_id_owner_and_content(records: Records, odd: str) -> None:
    principal = Principal(tenant=odd, subject=odd)
    await records.projects.create(a_project(principal=principal))
    await records.conversations.create(a_conversation(odd, principal=principal))
    run = a_run(odd, conversation_id=odd, principal=principal)
    run = replace(run, lease_owner=odd, message_id=odd)
    await records.runs.begin(run, question=a_question(run, odd), title=odd)
    await records.runs.beat(odd, tenant=odd, owner=odd, state=RunState.RUNNING)

    await _end(records, run_id=odd, tenant=odd, owner=odd, answer=an_answer(run, odd))

    page = await records.conversations.messages(odd, principal=principal, cursor=None, limit=9)
    assert list(page.items) == [a_question(run, odd), an_answer(run, odd)]
    assert (await records.runs.get(odd, principal=principal)).beat == 1


async def test_the_first_question_names_the_conversation_unless_it_has_a_name(
    records: Records,
) -> None:
    await _conversation(records, "c1", "c2")
    await records.conversations.rename("c2", principal=ANN, title="mine")

    await _begin(records, a_run("r1"))
    await _end(records)
    await _begin(records, a_run("r2"))
    await _begin(records, a_run("r3", conversation_id="c2"))

    assert (await records.conversations.get("c1", principal=ANN)).title == "title of r1"
    assert (await records.conversations.get("c2", principal=ANN)).title == "mine"


@pytest.mark.parametrize(
    "stranger",
    [Principal(tenant="acme", subject="bob"), Principal(tenant="rival", subject="ann")],
)
async def test_a_run_belongs_to_the_conversations_principal(
    records: Records, stranger: Principal
) -> None:
    await _conversation(records, "c1")
    with pytest.raises(ConversationNotFound):
        await _begin(records, a_run(principal=stranger))
    with pytest.raises(ConversationNotFound):
        await _begin(records, a_run(conversation_id="c9"))
    assert await _kept(records) == []

    await _begin(records, a_run())

    with pytest.raises(RunNotFound):
        await records.runs.get("r1", principal=stranger)


async def test_a_second_run_of_a_conversation_is_told_the_first(records: Records) -> None:
    await _conversation(records, "c1", "c2")
    await _begin(records, a_run("r1"))

    with pytest.raises(ThreadBusy) as refusal:
        await _begin(records, a_run("r2"))
    await _begin(records, a_run("r3", conversation_id="c2"))

    assert refusal.value.run_id == "r1"
    assert await _kept(records) == [a_question(a_run("r1"))]
    with pytest.raises(RunNotFound):
        await records.runs.get("r2", principal=ANN)


async def test_of_many_begins_at_once_one_wins_and_the_others_name_it(records: Records) -> None:
    await _conversation(records, "c1")

    outcomes = await asyncio.gather(
        *(_begin(records, a_run(f"r{number}")) for number in range(8)), return_exceptions=True
    )

    ((_, winner),) = await records.runs.live()
    assert [outcome for outcome in outcomes if outcome is None] == [None]
    named = {outcome.run_id for outcome in outcomes if isinstance(outcome, ThreadBusy)}
    assert named == {winner}
    assert await _kept(records) == [a_question(a_run(winner))]


async def test_a_beat_raises_the_counter_and_sets_the_state(records: Records) -> None:
    await _conversation(records, "c1")
    await _begin(records, replace(a_run(), state=RunState.QUEUED))

    await records.runs.beat("r1", tenant="acme", owner="me", state=RunState.QUEUED)
    await records.runs.beat("r1", tenant="acme", owner="me", state=RunState.RUNNING)

    assert await records.runs.get("r1", principal=ANN) == replace(a_run(), beat=2)
    assert await records.runs.live() == {("acme", "r1"): 2}


async def test_only_its_owner_beats_a_live_run(records: Records) -> None:
    await _conversation(records, "c1")
    await _begin(records, a_run())

    async def beat(*, tenant: str = "acme", owner: str = "me", run_id: str = "r1") -> None:
        await records.runs.beat(run_id, tenant=tenant, owner=owner, state=RunState.RUNNING)

    with pytest.raises(LeaseLost):
        await beat(owner="you")
    with pytest.raises(LeaseLost):
        await beat(tenant="rival")
    with pytest.raises(LeaseLost):
        await beat(run_id="r2")
    assert await records.runs.live() == {("acme", "r1"): 0}
    await _end(records)
    with pytest.raises(LeaseLost):
        await beat()

    assert await records.runs.live() == {}


async def test_a_beat_of_a_deleted_conversations_run_is_refused(records: Records) -> None:
    await _conversation(records, "c1")
    await _begin(records, a_run())
    await records.conversations.delete("c1", principal=ANN)

    with pytest.raises(LeaseLost):
        await records.runs.beat("r1", tenant="acme", owner="me", state=RunState.RUNNING)


@pytest.mark.parametrize("terminator", [DONE, FAILED, replace(FAILED, kept_through_id=None)])
async def test_an_end_keeps_terminator_and_answer_and_frees_the_conversation(
    records: Records, terminator: Terminator
) -> None:
    await _conversation(records, "c1")
    run = a_run()
    await _begin(records, run)

    ended = await _end(records, terminator, answer=an_answer(run))

    assert ended == replace(
        run,
        state=RunState.COMPLETED if terminator is DONE else RunState.FAILED,
        terminator=terminator,
        last_event_id=7,
        ended_at=NOON + timedelta(seconds=1),
    )
    assert await records.runs.get("r1", principal=ANN) == ended
    assert await _kept(records) == [a_question(run), an_answer(run)]
    await _begin(records, a_run("r2"))


async def test_an_end_may_have_no_answer(records: Records) -> None:
    await _conversation(records, "c1")
    await _begin(records, a_run())

    await _end(records, FAILED)

    assert await _kept(records) == [a_question(a_run())]


async def test_the_first_end_wins_and_the_second_is_told_it(records: Records) -> None:
    await _conversation(records, "c1")
    run = a_run()
    await _begin(records, run)
    first = await _end(records, FAILED, answer=an_answer(run))

    again = await _end(records, DONE, answer=an_answer(run, "another"))
    others = await _end(records, DONE, owner="you", answer=an_answer(run, "another"))

    assert again == others == first
    assert await _kept(records) == [a_question(run), an_answer(run)]


async def test_of_two_ends_at_once_one_wins(records: Records) -> None:
    await _conversation(records, "c1")
    run = a_run()
    await _begin(records, run)

    ends = await asyncio.gather(
        _end(records, DONE, answer=an_answer(run, "one")),
        _end(records, FAILED, answer=an_answer(run, "two")),
    )
    dead = await _end_dead(records, "r1", 0)

    assert ends[0] == ends[1] == await records.runs.get("r1", principal=ANN)
    assert not dead
    assert len(await _kept(records)) == 2


async def test_another_owner_cant_end_a_live_run(records: Records) -> None:
    await _conversation(records, "c1")
    await _begin(records, a_run())

    with pytest.raises(LeaseLost):
        await _end(records, owner="you", answer=an_answer(a_run()))

    assert await records.runs.get("r1", principal=ANN) == a_run()
    assert len(await _kept(records)) == 1


async def test_a_run_that_is_gone_cant_be_ended(records: Records) -> None:
    await _conversation(records, "c1")
    await _begin(records, a_run())

    with pytest.raises(RunNotFound):
        await _end(records, tenant="rival", answer=an_answer(a_run()))
    with pytest.raises(RunNotFound):
        await _end(records, run_id="r2", answer=an_answer(a_run()))
    await records.conversations.delete("c1", principal=ANN)
    with pytest.raises(RunNotFound):
        await _end(records, answer=an_answer(a_run()))

    assert not await _end_dead(records, "r1", 0)


async def test_live_runs_of_all_tenants_are_seen(records: Records) -> None:
    other = Principal(tenant="rival", subject="eve")
    await _conversation(records, "c1", "c2")
    await records.projects.create(a_project(principal=other))
    await records.conversations.create(a_conversation(principal=other))
    await _begin(records, a_run("r1"))
    await _begin(records, a_run("r2", conversation_id="c2"))
    await _begin(records, a_run("r1", principal=other))
    await _end(records, run_id="r2")
    await records.runs.beat("r1", tenant="rival", owner="me", state=RunState.RUNNING)

    assert await records.runs.live() == {("acme", "r1"): 0, ("rival", "r1"): 1}


async def test_a_dead_run_is_ended_with_a_message_of_its_own(records: Records) -> None:
    await _conversation(records, "c1")
    run = a_run()
    await _begin(records, run)
    await records.runs.beat("r1", tenant="acme", owner="me", state=RunState.RUNNING)

    ended = await _end_dead(records, "r1", 1)

    assert ended
    assert await records.runs.get("r1", principal=ANN) == replace(
        run,
        beat=1,
        state=RunState.FAILED,
        terminator=replace(FAILED, message_id=run.message_id),
        last_event_id=1_000,
        ended_at=NOON,
    )
    assert await _kept(records) == [a_question(run), an_answer(run, "")]
    assert await records.runs.live() == {}


async def test_a_run_that_moved_is_not_dead(records: Records) -> None:
    await _conversation(records, "c1")
    await _begin(records, a_run())
    await records.runs.beat("r1", tenant="acme", owner="me", state=RunState.RUNNING)

    assert not await _end_dead(records, "r1", 0)
    assert not await _end_dead(records, "r1", 1, tenant="rival")
    assert not await _end_dead(records, "r9", 0)

    assert await records.runs.live() == {("acme", "r1"): 1}


async def test_a_cancelled_caller_leaves_a_write_whole_or_undone(records: Records) -> None:
    await _conversation(records, "c1")
    for number in range(20):
        run = a_run(f"r{number}")
        writing = asyncio.create_task(_begin(records, run))
        for _ in range(number % 4):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)

        # reads and later writes see one of the two, and stay with it
        live = await _live_after_writes(records)
        questions = [message.run_id for message in await _kept(records)]
        assert (run.id in live) == (run.id in questions)
        if run.id in live:
            await _end(records, run_id=run.id)


async def _live_after_writes(records: Records) -> set[str]:
    await records.projects.update("p1", tenant="acme", name="new")
    return {run_id for _, run_id in await records.runs.live()}
