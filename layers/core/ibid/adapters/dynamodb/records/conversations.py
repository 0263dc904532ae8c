"""Conversations in the app table; their messages are those of their runs' rows."""

from collections.abc import Collection, Iterator, Sequence

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.deletion import Deletion
from ibid.adapters.dynamodb.records.pointers import ID, MOMENT, page_of
from ibid.adapters.dynamodb.records.projects import THERE as PROJECT_THERE
from ibid.adapters.dynamodb.records.run_rows import RunRows, number_of
from ibid.adapters.dynamodb.records.table import ConditionFailed, Table
from ibid.adapters.dynamodb.records.threads import THERE, Thread, conversation_of
from ibid.adapters.dynamodb.records.wire import Item, Value
from ibid.adapters.dynamodb.records.writes import Write
from ibid.adapters.records import codec, cursors
from ibid.domain.conversations import Conversation, Message
from ibid.domain.errors import ConversationNotFound, ProjectNotFound
from ibid.domain.pages import Page
from ibid.domain.principals import Principal


class DynamoConversations:
    """Implements ConversationStore."""

    def __init__(self, table: Table, deletion: Deletion) -> None:
        self._table = table
        self._deletion = deletion

    async def create(self, conversation: Conversation, *, idempotency: str | None = None) -> None:
        """Keep a new conversation."""
        tenant, created = conversation.tenant, codec.moment_to_int(conversation.created_at)
        project = keys.project(tenant, conversation.project_id)
        pointer: dict[str, Value] = {ID: conversation.id, MOMENT: created}
        asker = keys.asker(tenant, conversation.subject)
        writes = [
            Write(key=project, condition=PROJECT_THERE),
            Write(
                key=keys.conversation(tenant, conversation.id),
                item={
                    "subject": conversation.subject,
                    "project": conversation.project_id,
                    "title": conversation.title,
                    "language": conversation.reply_language,
                    "created": created,
                    "runs": conversation.runs_begun,
                    "key": idempotency,
                },
                condition="attribute_not_exists(#pk)",
            ),
            Write(
                key=(asker, keys.dated(keys.CONVERSATIONS, created, conversation.id)),
                item=pointer,
            ),
            Write(key=(project[0], keys.project_conversation(conversation.id)), item=pointer),
        ]
        try:
            await self._table.run(lambda: self._table.transact(*writes))
        except ConditionFailed as error:
            if 0 in error.items:
                raise ProjectNotFound(f"no project {conversation.project_id!r}") from error
            raise ValueError("the conversation's id was used before") from error

    async def get(self, conversation_id: str, *, principal: Principal) -> Conversation:
        """Return one conversation."""
        item = await self._table.run(lambda: find(self._table, conversation_id, principal))
        return conversation_of(principal.tenant, conversation_id, item)

    async def list_for(
        self, *, principal: Principal, cursor: str | None, limit: int
    ) -> Page[Conversation]:
        """List the principal's conversations, newest first."""
        tenant, subject = principal.tenant, principal.subject

        def read(conversation_id: str, item: Item) -> Conversation | None:
            if item.get("subject") != subject:
                return None
            return conversation_of(tenant, conversation_id, item)

        return await self._table.run(
            lambda: page_of(
                self._table,
                keys.asker(tenant, subject),
                prefix=keys.CONVERSATIONS,
                key_of=lambda conversation_id: keys.conversation(tenant, conversation_id),
                read=read,
                scope=("conversations", tenant, subject),
                cursor=cursor,
                limit=limit,
            )
        )

    async def rename(
        self, conversation_id: str, *, principal: Principal, title: str
    ) -> Conversation:
        """Give it another title and return it."""
        write = Write(
            key=keys.conversation(principal.tenant, conversation_id),
            update="SET #title = :title",
            condition=THERE,
            values={"title": title, "subject": principal.subject},
        )
        try:
            item = await self._table.run(lambda: self._table.write(write))
        except ConditionFailed as error:
            raise ConversationNotFound(f"no conversation {conversation_id!r}") from error
        return conversation_of(principal.tenant, conversation_id, item)

    async def delete(self, conversation_id: str, *, principal: Principal) -> Collection[str]:
        """Remove the conversation and all that hangs on it."""
        return await self._table.run(
            lambda: self._deletion.conversation(
                principal.tenant, conversation_id, subject=principal.subject
            )
        )

    async def messages(
        self, conversation_id: str, *, principal: Principal, cursor: str | None, limit: int
    ) -> Page[Message]:
        """List its messages, run by run."""
        scope = ("messages", principal.tenant, principal.subject, conversation_id)

        def work() -> Page[Message]:
            find(self._table, conversation_id, principal)
            after = 0
            if cursor is not None:
                (position,) = cursors.decode(cursor, int, scope=scope)
                after = int(position)
            found: list[Message] = []
            last = after
            for position, message in self._messages(conversation_id, principal, after, limit):
                if len(found) == limit:
                    return Page(items=found, next_cursor=cursors.encode(last, scope=scope))
                found.append(message)
                last = position
            return Page(items=found, next_cursor=None)

        return await self._table.run(work)

    def _messages(
        self, conversation_id: str, principal: Principal, after: int, limit: int
    ) -> Iterator[tuple[int, Message]]:
        """Yield the messages above a position, each with its own: two to a run's number."""
        rows = RunRows(self._table, principal.tenant, conversation_id)
        partition, above = keys.run(principal.tenant, conversation_id, max(after // 2 - 1, 0))
        for row in self._table.query(partition, prefix=keys.RUNS, above=above, page=limit // 2 + 2):
            for position, message in enumerate(rows.messages(row), 2 * number_of(row)):
                if position > after:
                    yield position, message

    async def latest_messages(
        self, conversation_id: str, *, principal: Principal, limit: int
    ) -> Sequence[Message]:
        """Return its last messages, oldest first."""

        def work() -> Sequence[Message]:
            thread = Thread(self._table, principal.tenant, conversation_id)
            if thread.facts is None or thread.facts.get("subject") != principal.subject:
                raise ConversationNotFound(f"no conversation {conversation_id!r}")
            return thread.latest_messages(limit)

        return await self._table.run(work)


def find(table: Table, conversation_id: str, principal: Principal) -> Item:
    """Return the item of the principal's conversation of this id.

    Raises:
        ConversationNotFound: There is none.
    """
    item = table.get(keys.conversation(principal.tenant, conversation_id))
    if item is None or item.get("subject") != principal.subject:
        raise ConversationNotFound(f"no conversation {conversation_id!r}")
    return item
