"""What every ConversationStore does."""

from dataclasses import replace
from datetime import timedelta

import pytest

from ibid.domain.conversations import Message
from ibid.domain.errors import (
    ConversationNotFound,
    ProjectNotFound,
    RunNotFound,
    ValidationFailed,
)
from ibid.domain.principals import Principal
from tests.contract.odd import ODD
from tests.contract.run_steps import append, begin, ended, journal, numbered, some_events
from tests.fakes.records import Records
from tests.fakes.samples import (
    ANN,
    NOON,
    a_conversation,
    a_project,
    a_question,
    a_run,
    an_answer,
)

STRANGERS = [
    Principal(tenant="acme", subject="bob"),
    Principal(tenant="acme", subject="Ann"),
    Principal(tenant="rival", subject="ann"),
]


async def _talk(records: Records, number: int = 1, *, conversation_id: str = "c1") -> list[Message]:
    """Keep a whole turn, and return its two messages."""
    run = await ended(records, number, conversation_id=conversation_id)
    return [a_question(run), an_answer(run)]


async def test_a_conversation_comes_back_as_it_was_kept(records: Records) -> None:
    await records.projects.create(a_project())
    conversation = replace(a_conversation(), title="Hé", reply_language="pt-BR")

    await records.conversations.create(conversation)

    assert await records.conversations.get("c1", principal=ANN) == conversation


@pytest.mark.parametrize("odd", ODD)
async def test_any_text_serves_as_principal_id_and_title(records: Records, odd: str) -> None:
    principal = Principal(tenant=odd, subject=odd)
    conversation = replace(a_conversation(odd, principal=principal), title=odd)
    await records.projects.create(a_project(principal=principal))

    await records.conversations.create(conversation)

    assert await records.conversations.get(odd, principal=principal) == conversation
    page = await records.conversations.list_for(principal=principal, cursor=None, limit=1)
    assert list(page.items) == [conversation]


async def test_a_conversation_needs_its_project(records: Records) -> None:
    await records.projects.create(replace(a_project(), tenant="rival"))

    with pytest.raises(ProjectNotFound):
        await records.conversations.create(a_conversation())


@pytest.mark.parametrize("stranger", STRANGERS)
async def test_to_a_stranger_it_does_not_exist(records: Records, stranger: Principal) -> None:
    await records.projects.create(a_project())
    await records.conversations.create(a_conversation())
    kept = await _talk(records, 1)
    store = records.conversations

    for call in (
        store.get("c1", principal=stranger),
        store.rename("c1", principal=stranger, title="mine"),
        store.delete("c1", principal=stranger),
        store.messages("c1", principal=stranger, cursor=None, limit=1),
        store.latest_messages("c1", principal=stranger, limit=1),
    ):
        with pytest.raises(ConversationNotFound):
            await call
    page = await store.list_for(principal=stranger, cursor=None, limit=9)

    assert (list(page.items), page.next_cursor) == ([], None)
    assert (await store.get("c1", principal=ANN)).title == "title of c1-1"
    assert list(await store.latest_messages("c1", principal=ANN, limit=9)) == kept


async def test_a_list_is_newest_first_with_ties_by_falling_id(records: Records) -> None:
    await records.projects.create(a_project())
    for conversation_id, age in [("old", 9), ("a", 0), ("c", 0), ("b", 0)]:
        conversation = a_conversation(conversation_id)
        created_at = NOON - timedelta(microseconds=age)
        await records.conversations.create(replace(conversation, created_at=created_at))

    first = await records.conversations.list_for(principal=ANN, cursor=None, limit=3)
    rest = await records.conversations.list_for(principal=ANN, cursor=first.next_cursor, limit=3)
    whole = await records.conversations.list_for(principal=ANN, cursor=None, limit=4)

    assert [one.id for one in first.items] == ["c", "b", "a"]
    assert [one.id for one in rest.items] == ["old"]
    assert rest.next_cursor is None
    assert [one.id for one in whole.items] == ["c", "b", "a", "old"]
    assert whole.next_cursor is None


async def test_a_cursor_serves_its_own_list_only(records: Records) -> None:
    await records.projects.create(a_project())
    for conversation_id in ("c1", "c2"):
        await records.conversations.create(a_conversation(conversation_id))
        await _talk(records, conversation_id=conversation_id)
    page = await records.conversations.list_for(principal=ANN, cursor=None, limit=1)
    messages = await records.conversations.messages("c1", principal=ANN, cursor=None, limit=1)

    for cursor in (messages.next_cursor, "", "garbage", "e30", "\ud800"):
        with pytest.raises(ValidationFailed):
            await records.conversations.list_for(principal=ANN, cursor=cursor, limit=1)
    for cursor in (page.next_cursor, "", "garbage"):
        with pytest.raises(ValidationFailed):
            await records.conversations.messages("c1", principal=ANN, cursor=cursor, limit=1)
    with pytest.raises(ValidationFailed):
        await records.conversations.messages(
            "c2", principal=ANN, cursor=messages.next_cursor, limit=1
        )


async def test_a_new_title_is_kept(records: Records) -> None:
    await records.projects.create(a_project())
    await records.conversations.create(a_conversation())
    await records.conversations.create(a_conversation("c2"))

    renamed = await records.conversations.rename("c1", principal=ANN, title="🧭" * 200)

    assert renamed == replace(a_conversation(), title="🧭" * 200)
    assert await records.conversations.get("c1", principal=ANN) == renamed
    assert await records.conversations.get("c2", principal=ANN) == a_conversation("c2")


async def test_messages_come_in_the_order_they_were_kept_and_whole(records: Records) -> None:
    await records.projects.create(a_project())
    await records.conversations.create(a_conversation())
    kept = [message for number in range(1, 12) for message in await _talk(records, number)]
    store = records.conversations

    whole = await store.messages("c1", principal=ANN, cursor=None, limit=22)
    paged: list[Message] = []
    cursor = None
    for _ in range(3):
        page = await store.messages("c1", principal=ANN, cursor=cursor, limit=8)
        paged += page.items
        cursor = page.next_cursor

    assert (list(whole.items), whole.next_cursor) == (kept, None)
    assert (paged, cursor) == (kept, None)
    for limit in (1, 3, 22, 200):
        assert list(await store.latest_messages("c1", principal=ANN, limit=limit)) == kept[-limit:]


async def test_a_page_goes_on_with_what_was_kept_after_it(records: Records) -> None:
    await records.projects.create(a_project())
    await records.conversations.create(a_conversation())
    kept = await _talk(records, 1)
    first = await records.conversations.messages("c1", principal=ANN, cursor=None, limit=1)
    kept += await _talk(records, 2)

    rest = await records.conversations.messages(
        "c1", principal=ANN, cursor=first.next_cursor, limit=9
    )

    assert list(rest.items) == kept[1:]


async def test_a_conversation_without_messages_has_an_empty_page(records: Records) -> None:
    await records.projects.create(a_project())
    await records.conversations.create(a_conversation())

    page = await records.conversations.messages("c1", principal=ANN, cursor=None, limit=9)

    assert (list(page.items), page.next_cursor) == ([], None)
    assert list(await records.conversations.latest_messages("c1", principal=ANN, limit=9)) == []


async def test_a_deletion_takes_messages_and_runs_and_nothing_can_be_added(
    records: Records,
) -> None:
    await records.projects.create(a_project())
    await records.conversations.create(a_conversation())
    await records.conversations.create(a_conversation("c2"))
    others = await _talk(records, conversation_id="c2")
    await _talk(records, 1)
    await begin(records, a_run(2))

    assert set(await records.conversations.delete("c1", principal=ANN)) == {"c1-1", "c1-2"}

    with pytest.raises(ConversationNotFound):
        await records.conversations.delete("c1", principal=ANN)
    with pytest.raises(ConversationNotFound):
        await records.conversations.messages("c1", principal=ANN, cursor=None, limit=1)
    with pytest.raises(RunNotFound):
        await records.runs.get("c1-1", principal=ANN)
    with pytest.raises(ConversationNotFound):
        await _talk(records, 3)
    assert await records.runs.live() == {}
    assert list(await records.conversations.latest_messages("c2", principal=ANN, limit=9)) == others


async def test_a_deletion_takes_journals_and_leaves_those_of_others(records: Records) -> None:
    await records.projects.create(a_project())
    await records.conversations.create(a_conversation())
    await records.conversations.create(a_conversation("c2"))
    for conversation_id in ("c1", "c2"):
        run = a_run(conversation_id=conversation_id)
        await begin(records, run)
        await append(records, run, 0, numbered(some_events("planted")))

    await records.conversations.delete("c1", principal=ANN)

    with pytest.raises(RunNotFound):
        await records.runs.entries(a_run(), after=0)
    assert len(await journal(records, a_run(conversation_id="c2"))) == 3
