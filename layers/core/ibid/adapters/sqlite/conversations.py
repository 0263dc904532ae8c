"""Conversations and their messages in the app store."""

import sqlite3
from collections.abc import Collection, Sequence

from ibid.adapters.records import codec, cursors
from ibid.adapters.sqlite import keys, messages
from ibid.adapters.sqlite.database import Database
from ibid.domain.conversations import Conversation, Message
from ibid.domain.errors import ConversationNotFound, ProjectNotFound
from ibid.domain.pages import Page
from ibid.domain.principals import Principal

_LIST = """
    SELECT * FROM conversations WHERE tenant = ? AND subject = ?
    ORDER BY created_at DESC, id DESC LIMIT ?
"""
_LIST_ON = """
    SELECT * FROM conversations WHERE tenant = ? AND subject = ? AND (created_at, id) < (?, ?)
    ORDER BY created_at DESC, id DESC LIMIT ?
"""


class SqliteConversations:
    """Implements ConversationStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, conversation: Conversation, *, idempotency: str | None = None) -> None:
        """Keep a new conversation."""

        def work(connection: sqlite3.Connection) -> None:
            project = connection.execute(
                "SELECT 1 FROM projects WHERE tenant = ? AND id = ?",
                (conversation.tenant, conversation.project_id),
            ).fetchone()
            if project is None:
                raise ProjectNotFound(f"no project {conversation.project_id!r}")
            connection.execute(
                """
                INSERT INTO conversations (
                    tenant, subject, id, project_id, title, reply_language, created_at
                ) VALUES (?, ?, ?, ?, ?, ?, ?)
                """,
                (
                    conversation.tenant,
                    conversation.subject,
                    conversation.id,
                    conversation.project_id,
                    conversation.title,
                    conversation.reply_language,
                    codec.moment_to_int(conversation.created_at),
                ),
            )
            keys.bind(connection, idempotency, conversation.tenant, conversation.id)

        await self._database.write(work)

    async def get(self, conversation_id: str, *, principal: Principal) -> Conversation:
        """Return one conversation."""
        return await self._database.read(
            lambda connection: find(connection, conversation_id, principal)
        )

    async def list_for(
        self, *, principal: Principal, cursor: str | None, limit: int
    ) -> Page[Conversation]:
        """List the principal's conversations, newest first."""
        owner = (principal.tenant, principal.subject)
        scope = ("conversations", *owner)
        start = None if cursor is None else cursors.decode(cursor, int, str, scope=scope)

        def work(connection: sqlite3.Connection) -> Sequence[Conversation]:
            if start is None:
                rows = connection.execute(_LIST, (*owner, limit + 1))
            else:
                rows = connection.execute(_LIST_ON, (*owner, *start, limit + 1))
            return [read(row) for row in rows]

        found = await self._database.read(work)
        if len(found) <= limit:
            return Page(items=found, next_cursor=None)
        last = found[limit - 1]
        position = cursors.encode(codec.moment_to_int(last.created_at), last.id, scope=scope)
        return Page(items=found[:limit], next_cursor=position)

    async def rename(
        self, conversation_id: str, *, principal: Principal, title: str
    ) -> Conversation:
        """Give it another title and return it."""

        def work(connection: sqlite3.Connection) -> Conversation:
            connection.execute(
                "UPDATE conversations SET title = ? WHERE tenant = ? AND subject = ? AND id = ?",
                (title, principal.tenant, principal.subject, conversation_id),
            )
            return find(connection, conversation_id, principal)

        return await self._database.write(work)

    async def delete(self, conversation_id: str, *, principal: Principal) -> Collection[str]:
        """Remove the conversation and all that hangs on it, from the file's bytes too."""

        def work(connection: sqlite3.Connection) -> Collection[str]:
            find(connection, conversation_id, principal)
            turns = connection.execute(
                "SELECT DISTINCT turn_id FROM runs WHERE tenant = ? AND conversation_id = ?",
                (principal.tenant, conversation_id),
            ).fetchall()
            connection.execute(
                "DELETE FROM conversations WHERE tenant = ? AND subject = ? AND id = ?",
                (principal.tenant, principal.subject, conversation_id),
            )
            return {row["turn_id"] for row in turns}

        return await self._database.erase(work)

    async def messages(
        self, conversation_id: str, *, principal: Principal, cursor: str | None, limit: int
    ) -> Page[Message]:
        """List its messages in the order they were kept."""
        scope = ("messages", principal.tenant, principal.subject, conversation_id)

        def work(connection: sqlite3.Connection) -> Page[Message]:
            find(connection, conversation_id, principal)
            after = [0] if cursor is None else cursors.decode(cursor, int, scope=scope)
            rows = connection.execute(
                """
                SELECT * FROM messages
                WHERE tenant = ? AND conversation_id = ? AND position > ?
                ORDER BY position LIMIT ?
                """,
                (principal.tenant, conversation_id, *after, limit + 1),
            ).fetchall()
            page = [messages.read(row) for row in rows[:limit]]
            if len(rows) <= limit:
                return Page(items=page, next_cursor=None)
            position = cursors.encode(rows[limit - 1]["position"], scope=scope)
            return Page(items=page, next_cursor=position)

        return await self._database.read(work)

    async def latest_messages(
        self, conversation_id: str, *, principal: Principal, limit: int
    ) -> Sequence[Message]:
        """Return its last messages, oldest first."""

        def work(connection: sqlite3.Connection) -> Sequence[Message]:
            find(connection, conversation_id, principal)
            return messages.latest(connection, principal.tenant, conversation_id, limit=limit)

        return await self._database.read(work)


def find(
    connection: sqlite3.Connection, conversation_id: str, principal: Principal
) -> Conversation:
    """Return the principal's conversation of this id.

    Raises:
        ConversationNotFound: There is none.
    """
    row = connection.execute(
        "SELECT * FROM conversations WHERE tenant = ? AND subject = ? AND id = ?",
        (principal.tenant, principal.subject, conversation_id),
    ).fetchone()
    if row is None:
        raise ConversationNotFound(f"no conversation {conversation_id!r}")
    return read(row)


def read(row: sqlite3.Row) -> Conversation:
    """Make the conversation of a row."""
    return Conversation(
        tenant=row["tenant"],
        subject=row["subject"],
        id=row["id"],
        project_id=row["project_id"],
        title=row["title"],
        reply_language=row["reply_language"],
        created_at=codec.moment_from_int(row["created_at"]),
        runs_begun=row["runs_begun"],
    )
