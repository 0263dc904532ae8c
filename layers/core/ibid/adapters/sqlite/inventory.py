"""Every row of the app store, for a checker; and every thread of the checkpoint file."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from ibid.adapters.records.journal import unpack
from ibid.adapters.sqlite import conversations, feedback, idempotency, messages, run_rows
from ibid.adapters.sqlite.database import Database
from ibid.adapters.sqlite.run_journal import pack_of
from ibid.domain.conversations import parse_run_id
from ibid.ports.inventory import KeptConversation, KeptJournal, KeptRun, LooseKey

T = TypeVar("T")
Key = tuple[str, str]  # tenant, id

_MOST_FAULTS = 100
_NAMED = """
    SELECT tenant, id FROM conversations
    UNION SELECT tenant, conversation_id FROM runs
    UNION SELECT tenant, conversation_id FROM messages
    UNION SELECT tenant, conversation_id FROM feedback
    UNION SELECT tenant, conversation_id FROM idempotency WHERE conversation_id IS NOT NULL
"""
_STRAY_JOURNALS = """
    SELECT DISTINCT tenant, run_id FROM journal
    WHERE NOT EXISTS (
        SELECT 1 FROM runs WHERE runs.tenant = journal.tenant AND runs.id = journal.run_id
    )
"""
_THREADS = """
    SELECT thread_id FROM threads WHERE NOT is_gone
    UNION SELECT thread_id FROM checkpoints
    UNION SELECT thread_id FROM writes
"""


class SqliteInventory:
    """Implements Inventory."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def faults(self) -> Sequence[str]:
        """Return what SQLite finds wrong with the file, and rows whose parent is not there."""
        return await self._database.read(_faults)

    async def conversations(self) -> AsyncIterator[KeptConversation]:
        """Return every conversation that any row names, by tenant and id."""
        strays = await self._database.read(_strays)
        for key in await self._database.read(partial(_named, strays=strays)):
            run_ids = strays.get(key, [])
            kept = await self._database.read(partial(_kept, key=key, strays=run_ids))
            if not _is_empty(kept):  # deleted since its name was read
                yield kept

    async def loose_keys(self) -> AsyncIterator[LooseKey]:
        """Return the idempotency records that belong to no conversation."""
        found = await self._database.read(
            lambda connection: [
                LooseKey(tenant=row["tenant"], record=idempotency.read(row))
                for row in connection.execute(
                    "SELECT * FROM idempotency WHERE conversation_id IS NULL"
                )
            ]
        )
        for loose in found:
            yield loose


class SqliteCheckpointInventory:
    """Implements CheckpointInventory on the checkpoint file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def faults(self) -> Sequence[str]:
        """Return what SQLite finds wrong with the file."""
        return await self._database.read(_faults)

    async def threads(self) -> AsyncIterator[str]:
        """Return every thread that holds anything."""
        found = await self._database.read(
            lambda connection: [row["thread_id"] for row in connection.execute(_THREADS)]
        )
        for thread in found:
            yield thread


def _faults(connection: sqlite3.Connection) -> Sequence[str]:
    found = connection.execute(f"PRAGMA integrity_check({_MOST_FAULTS})")
    faults = [str(row[0]) for row in found]
    # rows of the other tables are told as what is left of a conversation
    strays = connection.execute("PRAGMA foreign_key_check").fetchall()
    faults += [
        f"row {row['rowid']} of {row['table']} has no {row['parent']}"
        for row in strays
        if row["parent"] == "projects" and row["table"] != "conversations"
    ]
    return [fault for fault in faults if fault != "ok"]


def _strays(connection: sqlite3.Connection) -> dict[Key, list[str]]:
    """Return the runs that have a journal and nothing else, by the conversation they name."""
    strays: dict[Key, list[str]] = {}
    for row in connection.execute(_STRAY_JOURNALS):
        parsed = parse_run_id(row["run_id"])
        conversation_id = row["run_id"] if parsed is None else parsed[0]
        strays.setdefault((row["tenant"], conversation_id), []).append(row["run_id"])
    return strays


def _named(connection: sqlite3.Connection, strays: Iterable[Key]) -> Sequence[Key]:
    named = {(row["tenant"], row["id"]) for row in connection.execute(_NAMED)}
    return sorted(named.union(strays))


def _kept(connection: sqlite3.Connection, key: Key, strays: Sequence[str]) -> KeptConversation:
    rows = _Rows(connection, key)
    found = rows.read("conversation", conversations.read, "SELECT * FROM conversations", "id")
    runs = rows.read("run", _kept_run, "SELECT * FROM runs", order="ORDER BY number")
    journals = (_journal(connection, key[0], run_id) for run_id in [*rows.run_ids, *strays])
    return KeptConversation(
        tenant=key[0],
        id=key[1],
        conversation=found[0] if found else None,
        has_project=bool(found) and _has_project(connection, key[0], found[0].project_id),
        runs=runs,
        journals=[journal for journal in journals if journal is not None],
        messages=rows.read(
            "message", messages.read, "SELECT * FROM messages", order="ORDER BY position"
        ),
        feedback=rows.read("feedback", feedback.read, "SELECT *, run_id AS id FROM feedback"),
        keys=rows.read("key", idempotency.read, "SELECT * FROM idempotency"),
        unreadable=rows.unreadable,
    )


def _is_empty(kept: KeptConversation) -> bool:
    rows = (kept.runs, kept.journals, kept.messages, kept.feedback, kept.keys, kept.unreadable)
    return kept.conversation is None and not any(rows)


class _Rows:
    """The rows that name one conversation, and which of them can't be read."""

    def __init__(self, connection: sqlite3.Connection, key: Key) -> None:
        self._connection = connection
        self._key = key
        self.unreadable: list[str] = []

    @property
    def run_ids(self) -> Sequence[str]:
        rows = self._connection.execute(
            "SELECT id FROM runs WHERE tenant = ? AND conversation_id = ?", self._key
        )
        return [row["id"] for row in rows]

    def read(
        self,
        kind: str,
        read: Callable[[sqlite3.Row], T],
        select: str,
        column: str = "conversation_id",
        *,
        order: str = "",
    ) -> Sequence[T]:
        """Read the rows of one table; all of the statement is this module's own text."""
        statement = f"{select} WHERE tenant = ? AND {column} = ? {order}"
        found = []
        for row in self._connection.execute(statement, self._key):
            try:
                found.append(read(row))
            except (ValueError, KeyError, TypeError):
                self.unreadable.append(f"{kind} {row['id']}")
        return found


def _kept_run(row: sqlite3.Row) -> KeptRun:
    return KeptRun(run=run_rows.read(row), is_journal_removed=bool(row["is_journal_removed"]))


def _journal(connection: sqlite3.Connection, tenant: str, run_id: str) -> KeptJournal | None:
    rows = connection.execute(
        "SELECT * FROM journal WHERE tenant = ? AND run_id = ? ORDER BY first_id, part",
        (tenant, run_id),
    ).fetchall()
    if not rows:
        return None
    try:
        entries = list(unpack(map(pack_of, rows)))
    except (ValueError, KeyError, TypeError):
        return KeptJournal(run_id=run_id, entries=None)
    return KeptJournal(run_id=run_id, entries=entries)


def _has_project(connection: sqlite3.Connection, tenant: str, project_id: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM projects WHERE tenant = ? AND id = ?", (tenant, project_id)
    ).fetchone()
    return row is not None
