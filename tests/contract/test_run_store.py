"""What every RunStore does with a run from its begin to its one end."""

import asyncio
from dataclasses import replace

import pytest

from ibid.domain.conversations import RunState
from ibid.domain.errors import (
    ConversationNotFound,
    LeaseLost,
    RunNotFound,
    RunNumberTaken,
    ThreadBusy,
    ValidationFailed,
)
from ibid.domain.events import RESERVED_IDS, Failed, Terminator, TokenDelta
from ibid.domain.principals import Principal
from tests.contract.odd import ODD
from tests.contract.run_steps import (
    LATER,
    a_failure,
    append,
    begin,
    conversations,
    end,
    end_dead,
    ended,
    journal,
    kept,
    messages,
    numbered,
    some_events,
)
from tests.fakes.records import Records
from tests.fakes.samples import ANN, NOON, PLACES, a_done, a_project, a_question, a_run, an_answer

STRANGERS = [Principal(tenant="acme", subject="bob"), Principal(tenant="rival", subject="ann")]


async def test_a_run_is_kept_with_its_question(records: Records) -> None:
    await conversations(records, "c1")
    run = replace(a_run(), state=RunState.QUEUED, graph="ask", turn_id="a turn")

    begun = await begin(records, run)

    assert begun.run == replace(run, state=RunState.RUNNING)
    assert await records.runs.get(run.id, principal=ANN) == begun.run
    assert begun.messages == []
    assert await messages(records) == [a_question(run)]
    conversation = await records.conversations.get("c1", principal=ANN)
    assert (conversation.title, conversation.runs_begun) == ("title of c1-1", 1)


@pytest.mark.parametrize("odd", ODD)
async def test_any_text_serves_as_id_owner_and_content(records: Records, odd: str) -> None:
    principal = Principal(tenant=odd, subject=odd)
    await conversations(records, odd, principal=principal)
    run = a_run(conversation_id=odd, principal=principal)
    run = replace(run, lease_owner=odd, message_id=odd, graph=odd, turn_id=odd)
    await records.runs.begin(run, question=a_question(run, odd), title=odd, limits=PLACES)
    entries = numbered(some_events(odd, odd))
    await append(records, run, 0, entries)
    failure = replace(a_failure(), code=odd, message=odd)

    await end(records, run, failure, beat=1, event_id=5, answer=an_answer(run, odd))

    page = await records.conversations.messages(odd, principal=principal, cursor=None, limit=9)
    assert list(page.items) == [a_question(run, odd), an_answer(run, odd)]
    found = await records.runs.get(run.id, principal=principal)
    assert (found.beat, found.terminator, found.graph, found.turn_id) == (1, failure, odd, odd)
    assert (await journal(records, run))[:4] == entries


async def test_the_first_question_names_the_conversation_unless_it_has_a_name(
    records: Records,
) -> None:
    await conversations(records, "c1", "c2")
    await records.conversations.rename("c2", principal=ANN, title="mine")

    await ended(records, 1)
    await begin(records, a_run(2))
    await begin(records, a_run(conversation_id="c2"))

    assert (await records.conversations.get("c1", principal=ANN)).title == "title of c1-1"
    assert (await records.conversations.get("c2", principal=ANN)).title == "mine"


@pytest.mark.parametrize("history", [0, 1, 3, 4, 200])
async def test_a_begin_returns_the_last_messages_before_it(records: Records, history: int) -> None:
    await conversations(records, "c1")
    await ended(records, 1)
    await ended(records, 2)
    before = await messages(records)

    begun = await begin(records, a_run(3), history=history)

    assert list(begun.messages) == before[max(0, 4 - history) :]


@pytest.mark.parametrize("stranger", STRANGERS)
async def test_a_run_belongs_to_the_conversations_principal(
    records: Records, stranger: Principal
) -> None:
    await conversations(records, "c1")
    with pytest.raises(ConversationNotFound):
        await begin(records, a_run(principal=stranger))
    with pytest.raises(ConversationNotFound):
        await begin(records, a_run(conversation_id="c9"))
    assert await messages(records) == []

    run = a_run()
    await begin(records, run)

    with pytest.raises(RunNotFound):
        await records.runs.get(run.id, principal=stranger)
    with pytest.raises(RunNotFound):
        await records.runs.request_cancel(run.id, principal=stranger)
    with pytest.raises(ConversationNotFound):
        await records.runs.list_for("c1", principal=stranger, cursor=None, limit=9)
    assert await kept(records, run) == run


async def test_a_run_of_another_tenant_with_the_same_ids_is_another_one(records: Records) -> None:
    other = Principal(tenant="rival", subject="ann")
    await conversations(records, "c1")
    await conversations(records, "c1", principal=other)
    mine, theirs = a_run(), a_run(principal=other)
    await begin(records, mine)
    await begin(records, theirs)

    await append(records, theirs, 0, numbered([TokenDelta(text="theirs")]))
    await end(records, mine)

    assert [entry.event for entry in await journal(records, mine)] == [a_done(mine)]
    assert await records.runs.live() == {("rival", "c1-1"): 1}
    assert await records.runs.read_dead(mine.id, tenant="nobody") is None


async def test_a_second_run_of_a_conversation_is_told_the_first(records: Records) -> None:
    await conversations(records, "c1", "c2")
    await begin(records, a_run(1))

    with pytest.raises(ThreadBusy) as refusal:
        await begin(records, a_run(2))
    await begin(records, a_run(conversation_id="c2"))

    assert refusal.value.run_id == "c1-1"
    assert await messages(records) == [a_question(a_run(1))]
    with pytest.raises(RunNotFound):
        await records.runs.get("c1-2", principal=ANN)


@pytest.mark.parametrize("number", [1, 3, 7])
async def test_only_the_next_number_begins(records: Records, number: int) -> None:
    await conversations(records, "c1")
    await ended(records, 1)

    with pytest.raises(RunNumberTaken):
        await begin(records, a_run(number))
    await begin(records, a_run(2))
    with pytest.raises(RunNumberTaken):  # before it is told that the thread is busy
        await begin(records, a_run(2))

    assert (await records.conversations.get("c1", principal=ANN)).runs_begun == 2
    assert len(await messages(records)) == 3


async def test_of_many_begins_at_once_one_wins_and_nothing_of_the_others_is_kept(
    records: Records,
) -> None:
    await conversations(records, "c1")
    runs = [replace(a_run(), lease_owner=f"owner {n}", message_id=f"m{n}") for n in range(20)]

    outcomes = await asyncio.gather(*(begin(records, run) for run in runs), return_exceptions=True)

    won = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    lost = [outcome for outcome in outcomes if isinstance(outcome, RunNumberTaken | ThreadBusy)]
    assert (len(won), len(lost)) == (1, 19)
    assert await kept(records, a_run()) == won[0].run
    assert await messages(records) == [a_question(a_run())]


async def test_only_its_owner_writes_a_live_run(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    await append(records, run, 0)

    for stale in (
        replace(run, lease_owner="you"),
        replace(run, tenant="rival"),
        replace(run, id="c1-2", number=2),
    ):
        with pytest.raises(LeaseLost):
            await append(records, stale, 1)
        with pytest.raises(LeaseLost):
            await records.runs.is_cancelled(stale, beat=1)
    with pytest.raises(LeaseLost):
        await append(records, run, 2)
    assert await records.runs.live() == {("acme", run.id): 1}
    await end(records, run, beat=1)
    with pytest.raises(LeaseLost):
        await append(records, run, 1)
    with pytest.raises(LeaseLost):
        await records.runs.is_cancelled(run, beat=1)

    assert await records.runs.live() == {}


async def test_a_deleted_conversations_run_cant_be_written(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    await records.conversations.delete("c1", principal=ANN)

    with pytest.raises(LeaseLost):
        await append(records, run, 0)
    with pytest.raises(LeaseLost):
        await records.runs.is_cancelled(run, beat=0)
    with pytest.raises(RunNotFound):
        await end(records, run)
    with pytest.raises(RunNotFound):
        await records.runs.entries(run, after=0)
    assert not await end_dead(records, run)

    assert await records.runs.read_dead(run.id, tenant="acme") is None


@pytest.mark.parametrize(
    "terminator", [a_done(a_run()), a_failure(), a_failure(kept_through_id=0, message_id="x")]
)
async def test_an_end_keeps_terminator_and_answer_and_frees_the_conversation(
    records: Records, terminator: Terminator
) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)

    over = await end(records, run, terminator)

    assert over == replace(
        run,
        state=RunState.FAILED if isinstance(terminator, Failed) else RunState.COMPLETED,
        terminator=terminator,
        last_event_id=1,
        ended_at=LATER,
    )
    assert await records.runs.get(run.id, principal=ANN) == over
    assert await messages(records) == [a_question(run), an_answer(run)]
    assert await records.runs.live() == {}
    await begin(records, a_run(2))


@pytest.mark.parametrize("state", [RunState.CANCELLED, RunState.TIMED_OUT])
async def test_an_end_keeps_the_state_that_it_is_given(records: Records, state: RunState) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)

    await end(records, run, a_failure(), state=state)

    assert (await kept(records, run)).state is state


async def test_a_queued_run_can_end(records: Records) -> None:
    await conversations(records, "c1")
    await begin(records, a_run(1))
    await begin(records, a_run(2), behind=True)

    await end(records, a_run(2), a_failure(), state=RunState.CANCELLED)

    assert await records.runs.live() == {("acme", "c1-1"): 0}


async def test_the_first_end_wins_and_the_second_is_told_it(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    first = await end(records, run, a_failure())

    again = await end(records, run, answer=an_answer(run, "another"))
    late = numbered([TokenDelta(text="late")])
    others = await end(records, replace(run, lease_owner="you"), beat=9, entries=late)

    assert again == others == first
    assert await messages(records) == [a_question(run), an_answer(run)]
    assert [entry.event for entry in await journal(records, run)] == [a_failure()]


async def test_of_two_ends_at_once_one_wins(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)

    ends = await asyncio.gather(
        end(records, run, answer=an_answer(run, "one")),
        end(records, run, a_failure(), answer=an_answer(run, "two")),
        end_dead(records, run),
        end_dead(records, run),
    )

    assert ends[0] == ends[1] == await kept(records, run)
    assert len(await messages(records)) == 2
    state = (await kept(records, run)).state
    assert [ends[2], ends[3]].count(True) <= (state is RunState.FAILED)


async def test_another_owner_or_counter_cant_end_a_live_run(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)

    with pytest.raises(LeaseLost):
        await end(records, replace(run, lease_owner="you"))
    with pytest.raises(LeaseLost):
        await end(records, run, beat=1)

    assert await kept(records, run) == run
    assert len(await messages(records)) == 1


async def test_a_run_that_is_gone_cant_be_ended(records: Records) -> None:
    await conversations(records, "c1")
    await begin(records, a_run())

    with pytest.raises(RunNotFound):
        await end(records, replace(a_run(), tenant="rival"))
    with pytest.raises(RunNotFound):
        await end(records, a_run(2))
    assert not await end_dead(records, replace(a_run(), tenant="rival"))
    assert not await end_dead(records, a_run(2))

    assert await kept(records, a_run()) == a_run()


async def test_live_runs_of_all_tenants_are_seen(records: Records) -> None:
    other = Principal(tenant="rival", subject="eve")
    await conversations(records, "c1", "c2")
    await conversations(records, "c1", principal=other)
    await begin(records, a_run())
    await ended(records, 1, conversation_id="c2")
    await begin(records, a_run(2), behind=True)
    theirs = a_run(principal=other)
    await begin(records, theirs)
    await append(records, theirs, 0)

    assert await records.runs.live() == {
        ("acme", "c1-1"): 0,
        ("acme", "c1-2"): 0,
        ("rival", "c1-1"): 1,
    }


async def test_a_dead_run_is_ended_above_any_id_that_its_owner_can_have_shown(
    records: Records,
) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    entries = numbered(some_events("kept"))
    await append(records, run, 0, entries)
    seen = await records.runs.read_dead(run.id, tenant="acme")
    assert seen == replace(run, beat=1, last_event_id=3)

    did = await end_dead(records, seen, text="kept")

    assert did
    over = await records.runs.get(run.id, principal=ANN)
    failure = a_failure(kept_through_id=3, message_id=run.message_id)
    assert over == replace(
        seen,
        state=RunState.FAILED,
        terminator=failure,
        last_event_id=3 + RESERVED_IDS + 1,
        ended_at=LATER,
    )
    assert [message.content for message in await messages(records)][1:] == ["kept"]
    last = (await journal(records, run))[-1]
    assert (last.id, last.event) == (3 + RESERVED_IDS + 1, failure)
    assert await records.runs.live() == {}
    await begin(records, a_run(2))


async def test_the_owner_of_a_run_that_was_ended_as_dead_can_neither_keep_nor_end(
    records: Records,
) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    await append(records, run, 0, numbered(some_events("kept")))
    assert await end_dead(records, await kept(records, run), text="kept")
    before = await journal(records, run)

    with pytest.raises(LeaseLost):
        await append(records, run, 1, numbered([TokenDelta(text="late")], 4))
    with pytest.raises(LeaseLost):
        await append(records, run, 1)
    told = await end(
        records, run, beat=1, entries=numbered([TokenDelta(text="late")], 4), event_id=5
    )

    assert told == await kept(records, run)
    assert isinstance(told.terminator, Failed)
    assert await journal(records, run) == before
    assert len(await messages(records)) == 2


async def test_a_run_that_moved_is_not_dead(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    seen = await kept(records, run)
    await append(records, run, 0)

    assert not await end_dead(records, seen)

    assert await records.runs.live() == {("acme", run.id): 1}
    assert len(await messages(records)) == 1


async def test_a_cancel_is_told_by_the_next_write_and_by_a_look(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    assert not (await append(records, run, 0)).cancel_requested
    assert not await records.runs.is_cancelled(run, beat=1)

    asked = await records.runs.request_cancel(run.id, principal=ANN)
    again = await records.runs.request_cancel(run.id, principal=ANN)

    assert asked == again == replace(run, beat=1, cancel_requested=True)
    assert await records.runs.is_cancelled(run, beat=1)
    told = await append(records, run, 1)
    assert (told.beat, told.cancel_requested) == (2, True)
    over = await end(records, run, a_failure(), beat=2, state=RunState.CANCELLED)
    assert over.cancel_requested


async def test_a_cancel_of_a_queued_run_is_told_too(records: Records) -> None:
    await conversations(records, "c1")
    await begin(records, a_run(1))
    await begin(records, a_run(2), behind=True)

    await records.runs.request_cancel("c1-2", principal=ANN)

    assert await records.runs.is_cancelled(a_run(2), beat=0)
    assert not await records.runs.is_cancelled(a_run(1), beat=0)


async def test_a_cancel_of_a_run_that_has_ended_changes_nothing(records: Records) -> None:
    await conversations(records, "c1")
    over = await ended(records)

    assert await records.runs.request_cancel(over.id, principal=ANN) == over
    with pytest.raises(RunNotFound):
        await records.runs.request_cancel("c1-2", principal=ANN)

    assert await kept(records, over) == over


async def test_runs_are_listed_newest_first_in_pages(records: Records) -> None:
    await conversations(records, "c1", "c2")
    runs = [await ended(records, number) for number in range(1, 13)]
    await ended(records, 1, conversation_id="c2")

    pages, cursor = [], None
    while True:
        page = await records.runs.list_for("c1", principal=ANN, cursor=cursor, limit=5)
        pages.append(list(page.items))
        cursor = page.next_cursor
        if cursor is None:
            break

    assert [len(page) for page in pages] == [5, 5, 2]
    assert [run for page in pages for run in page] == runs[::-1]


async def test_a_run_that_begins_between_two_pages_moves_none(records: Records) -> None:
    await conversations(records, "c1")
    for number in range(1, 5):
        await ended(records, number)
    first = await records.runs.list_for("c1", principal=ANN, cursor=None, limit=2)

    await begin(records, a_run(5))

    second = await records.runs.list_for("c1", principal=ANN, cursor=first.next_cursor, limit=2)
    assert [run.number for run in [*first.items, *second.items]] == [4, 3, 2, 1]
    assert second.next_cursor is None


async def test_a_cursor_of_another_list_is_refused(records: Records) -> None:
    await conversations(records, "c1", "c2")
    for number in range(1, 4):
        await ended(records, number)
    page = await records.runs.list_for("c1", principal=ANN, cursor=None, limit=1)

    for conversation_id, cursor in [("c2", page.next_cursor), ("c1", "nonsense"), ("c1", "")]:
        with pytest.raises(ValidationFailed):
            await records.runs.list_for(conversation_id, principal=ANN, cursor=cursor, limit=1)
    with pytest.raises(ConversationNotFound):
        await records.runs.list_for("c9", principal=ANN, cursor=None, limit=1)


async def test_a_cancelled_caller_leaves_a_write_whole_or_undone(records: Records) -> None:
    await conversations(records, "c1")
    number = 1
    for attempt in range(20):
        run = a_run(number)
        writing = asyncio.create_task(begin(records, run))
        for _ in range(attempt % 4):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)

        # reads and later writes see one of the two, and stay with it
        await records.projects.update("p1", tenant="acme", name="new")
        live = await records.runs.live()
        questions = [message.run_id for message in await messages(records)]
        begun = (await records.conversations.get("c1", principal=ANN)).runs_begun
        assert (("acme", run.id) in live) == (run.id in questions) == (begun == number)
        if begun == number:
            await end(records, run)
            number += 1


async def test_times_are_kept_to_the_microsecond(records: Records) -> None:
    await conversations(records, "c1")
    run = replace(a_run(), created_at=NOON.replace(microsecond=999_999))

    await begin(records, run)

    assert (await kept(records, run)).created_at == run.created_at


async def test_a_deleted_project_takes_its_runs(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)

    await records.projects.delete("p1", tenant="acme")

    assert await records.runs.live() == {}
    with pytest.raises(RunNotFound):
        await records.runs.get(run.id, principal=ANN)
    await records.projects.create(a_project("p2"))
    with pytest.raises(RunNotFound):
        await end(records, run)
