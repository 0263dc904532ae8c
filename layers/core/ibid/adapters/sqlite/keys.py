"""Idempotency rows: which conversation one belongs to, and so goes with."""

import sqlite3


def bind(
    connection: sqlite3.Connection, record_id: str | None, tenant: str, conversation_id: str
) -> None:
    """Let a record be deleted with a conversation, if there is such a record."""
    if record_id is not None:
        connection.execute(
            "UPDATE idempotency SET conversation_id = ? WHERE tenant = ? AND id = ?",
            (conversation_id, tenant, record_id),
        )
