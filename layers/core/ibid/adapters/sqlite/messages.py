"""Message rows: a conversation's, by position from 1."""

import sqlite3
from collections.abc import Sequence

from ibid.adapters.records import codec
from ibid.domain.conversations import Message


def append(connection: sqlite3.Connection, message: Message, *, tenant: str) -> None:
    """Keep a message as the last one of its conversation."""
    connection.execute(
        """
        INSERT INTO messages
        SELECT ?, ?, coalesce(max(position), 0) + 1, ?, ?, ?, ?, ?, ?
        FROM messages WHERE tenant = ? AND conversation_id = ?
        """,
        (
            tenant,
            message.conversation_id,
            message.id,
            message.run_id,
            message.role,
            message.content,
            codec.moment_to_int(message.created_at),
            codec.outcome_to_json(message),
            tenant,
            message.conversation_id,
        ),
    )


def latest(
    connection: sqlite3.Connection, tenant: str, conversation_id: str, *, limit: int
) -> Sequence[Message]:
    """Return a conversation's last messages, oldest first."""
    rows = connection.execute(
        """
        SELECT * FROM messages WHERE tenant = ? AND conversation_id = ?
        ORDER BY position DESC LIMIT ?
        """,
        (tenant, conversation_id, limit),
    ).fetchall()
    return [read(row) for row in reversed(rows)]


def read(row: sqlite3.Row) -> Message:
    """Make the message of a row."""
    return Message(
        id=row["id"],
        conversation_id=row["conversation_id"],
        run_id=row["run_id"],
        role=row["role"],
        content=row["content"],
        created_at=codec.moment_from_int(row["created_at"]),
        **codec.outcome_from_json(row["outcome"]),
    )
