"""Journal rows: a run's events, a row for each append, removed when their time is over."""

import itertools
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime

from ibid.adapters.records import codec
from ibid.adapters.records.journal import Pack, pack, unpack
from ibid.adapters.sqlite import run_rows
from ibid.domain.conversations import Run
from ibid.domain.errors import JournalExpired, RunNotFound
from ibid.domain.events import Entry
from ibid.ports.runs import Kept

MAX_BODY_BYTES = 1_000_000  # a page of the file holds 4,096; a row of any size would be read whole


def extend(
    connection: sqlite3.Connection, run: Run, entries: Sequence[Entry], expires_at: datetime
) -> int:
    """Keep what is new of the entries.

    Args:
        connection: In a transaction.
        run: As it is kept.
        entries: In order; those at or below the last kept id are there already.
        expires_at: Of the whole journal.

    Returns:
        The last id that is kept now.
    """
    last = run.last_event_id
    new = [entry for entry in entries if entry.id > last]
    if new and new[0].id != last + 1:
        raise ValueError(f"id {new[0].id} stands where {last + 1} should")
    for one in pack(new, max_bytes=MAX_BODY_BYTES):
        connection.execute(
            "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?)",
            (run.tenant, run.id, one.first_id, one.part, one.parts, one.last_id, one.body),
        )
    connection.execute(
        "UPDATE runs SET journal_expires_at = ? WHERE tenant = ? AND id = ?",
        (codec.moment_to_int(expires_at), run.tenant, run.id),
    )
    return last + len(new)


def read(connection: sqlite3.Connection, run: Run, *, after: int, limit: int) -> Kept:
    """Do as RunStore.entries says."""
    row = connection.execute(
        "SELECT * FROM runs WHERE tenant = ? AND id = ?", (run.tenant, run.id)
    ).fetchone()
    if row is None:
        raise RunNotFound(f"no run {run.id!r}")
    if row["is_journal_removed"]:
        raise JournalExpired(f"the journal of run {run.id!r} is not kept any more")
    kept = run_rows.read(row)
    entries = (entry for entry in _all(connection, kept, after) if entry.id > after)
    page = list(itertools.islice(entries, limit + 1))
    return Kept(entries=page[:limit], run=kept, has_more=len(page) > limit)


def purge(connection: sqlite3.Connection, now: datetime, *, limit: int) -> int:
    """Remove the journals of ended runs whose time is over; return how many."""
    due = connection.execute(
        """
        SELECT tenant, id FROM runs
        WHERE ended_at IS NOT NULL AND journal_expires_at <= ? LIMIT ?
        """,
        (codec.moment_to_int(now), limit),
    ).fetchall()
    for row in due:
        connection.execute("DELETE FROM journal WHERE tenant = ? AND run_id = ?", tuple(row))
        connection.execute(
            """
            UPDATE runs SET journal_expires_at = NULL, is_journal_removed = 1
            WHERE tenant = ? AND id = ?
            """,
            tuple(row),
        )
    return len(due)


def _all(connection: sqlite3.Connection, run: Run, after: int) -> Iterator[Entry]:
    rows = connection.execute(
        """
        SELECT * FROM journal WHERE tenant = ? AND run_id = ? AND last_id > ?
        ORDER BY first_id, part
        """,
        (run.tenant, run.id, after),
    )
    yield from unpack(pack_of(row) for row in rows)
    if run.terminator is not None:
        yield Entry(id=run.last_event_id, event=run.terminator)


def pack_of(row: sqlite3.Row) -> Pack:
    """Make the pack of a row."""
    return Pack(
        first_id=row["first_id"],
        last_id=row["last_id"],
        part=row["part"],
        parts=row["parts"],
        body=row["body"],
    )
