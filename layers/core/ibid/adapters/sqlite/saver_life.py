"""What becomes of threads: how long they live, and how they are pruned, copied and deleted.

A thread expires as a whole: no checkpoint can go before its ancestors or its writes. Every write
and every beat of a lease puts the end off, and a pause puts it off for as long as a pause may
last. An expired thread is not read any more; it is removed in one transaction, with the next
sweep or when somebody asks for its newest state.
"""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from langgraph.checkpoint.serde.types import INTERRUPT

from ibid.adapters.sqlite.saver_rows import Place, read_metadata

_GRAVE_S = 30 * 24 * 3600.0
_DELTA_COUNTERS = "counters_since_delta_snapshot"
_TASK_MARK = ":"  # parts a node's name from its task's id in a namespace
_NESTED_MARK = "|"  # parts the namespaces of nested graphs


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """How long a thread lives after the last activity.

    Attributes:
        ttl: Above 0; None for ever.
        pause_ttl: How long a pause may last; less than `ttl` counts as that.
        now: Seconds since 1970.
    """

    ttl: timedelta | None
    pause_ttl: timedelta | None
    now: Callable[[], float]

    def end(self) -> float | None:
        """Return when a thread that is active now expires; None for never."""
        return None if self.ttl is None else self.now() + self.ttl.total_seconds()

    def pause_end(self) -> float | None:
        """Return when a thread that pauses now expires; None for never."""
        if self.ttl is None or self.pause_ttl is None:
            return None
        return self.now() + max(self.ttl, self.pause_ttl).total_seconds()


def touch(
    connection: sqlite3.Connection,
    thread_id: str,
    *,
    end: float | None,
    newest: str = "",
    may_shorten: bool = False,
) -> None:
    """Note a thread's activity.

    Args:
        connection: In a transaction that writes.
        thread_id: Whose; made if it is not there.
        end: When it expires now; None for never.
        newest: An id that its later ones must be above; "" for none.
        may_shorten: Take `end` even if it is before the end so far: a pause is over.
    """
    connection.execute(
        """
        INSERT INTO threads (thread_id, newest, expires_at) VALUES (:thread, :newest, :end)
        ON CONFLICT (thread_id) DO UPDATE SET
            newest = max(newest, :newest),
            expires_at = CASE
                WHEN :may_shorten OR :end IS NULL THEN :end
                WHEN expires_at IS NULL THEN NULL
                ELSE max(expires_at, :end)
            END
        """,
        {"thread": thread_id, "newest": newest, "end": end, "may_shorten": may_shorten},
    )


def newest(connection: sqlite3.Connection, thread_id: str) -> str:
    """Return the highest checkpoint id that a thread ever had, of all namespaces; "" for none."""
    row = connection.execute(
        "SELECT newest FROM threads WHERE thread_id = ?", (thread_id,)
    ).fetchone()
    return "" if row is None else str(row["newest"])


def is_paused(connection: sqlite3.Connection, place: Place) -> bool:
    """Tell if a checkpoint has an interrupt among its writes."""
    found = connection.execute(
        """
        SELECT 1 FROM writes
        WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? AND channel = ? LIMIT 1
        """,
        (place.thread_id, place.ns, place.id, INTERRUPT),
    ).fetchone()
    return found is not None


def is_expired(connection: sqlite3.Connection, thread_id: str, now: float) -> bool:
    """Tell if a thread's time is over; one that is not there never expires."""
    row = connection.execute(
        "SELECT expires_at FROM threads WHERE thread_id = ?", (thread_id,)
    ).fetchone()
    return row is not None and row["expires_at"] is not None and row["expires_at"] <= now


def expired(connection: sqlite3.Connection, now: float, limit: int) -> list[str]:
    """Return at most `limit` threads whose time is over, the longest over first."""
    rows = connection.execute(
        "SELECT thread_id FROM threads WHERE expires_at <= ? ORDER BY expires_at LIMIT ?",
        (now, limit),
    )
    return [row["thread_id"] for row in rows]


def clear(connection: sqlite3.Connection, thread_id: str) -> None:
    """Delete a thread's checkpoints and writes, those without a checkpoint too."""
    connection.execute("DELETE FROM checkpoints WHERE thread_id = ?", (thread_id,))
    connection.execute("DELETE FROM writes WHERE thread_id = ?", (thread_id,))


def forget(connection: sqlite3.Connection, thread_id: str) -> None:
    """Delete all of a thread, its lease included."""
    clear(connection, thread_id)
    connection.execute("DELETE FROM threads WHERE thread_id = ?", (thread_id,))


def delete(connection: sqlite3.Connection, thread_id: str, *, now: float) -> None:
    """Delete all of a thread.

    If it ever had a lease, its id stays for a while, so that nobody who is still about to take
    one brings it to life again.
    """
    clear(connection, thread_id)
    connection.execute("DELETE FROM threads WHERE thread_id = ? AND token IS NULL", (thread_id,))
    connection.execute(
        """
        UPDATE threads SET is_gone = 1, owner = NULL, newest = '', expires_at = ?
        WHERE thread_id = ?
        """,
        (now + _GRAVE_S, thread_id),
    )


def delete_run(connection: sqlite3.Connection, run_id: str) -> None:
    """Delete a run's checkpoints with all their writes, and its writes on other checkpoints."""
    connection.execute(
        """
        DELETE FROM writes WHERE (thread_id, checkpoint_ns, checkpoint_id) IN (
            SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints WHERE run_id = ?
        )
        """,
        (run_id,),
    )
    connection.execute("DELETE FROM checkpoints WHERE run_id = ?", (run_id,))
    connection.execute("DELETE FROM writes WHERE run_id = ?", (run_id,))


def copy(connection: sqlite3.Connection, source: str, target: str, *, end: float | None) -> None:
    """Copy all namespaces, checkpoints and writes; what the target has of the same id goes.

    The copy lives at least as long as the source; it has no lease.
    """
    connection.execute(
        """
        INSERT OR REPLACE INTO checkpoints (
            thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,
            metadata, run_id, digest
        )
        SELECT ?, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata,
            run_id, digest
        FROM checkpoints WHERE thread_id = ?
        """,
        (target, source),
    )
    connection.execute(
        """
        INSERT OR REPLACE INTO writes (
            thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type,
            value, run_id, digest
        )
        SELECT ?, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value,
            run_id, digest
        FROM writes WHERE thread_id = ?
        """,
        (target, source),
    )
    row = connection.execute(
        "SELECT newest, expires_at FROM threads WHERE thread_id = ?", (source,)
    ).fetchone()
    if row is None:
        return
    ends = None if end is None or row["expires_at"] is None else max(end, row["expires_at"])
    touch(connection, target, end=ends, newest=row["newest"])


def prune(connection: sqlite3.Connection, thread_id: str) -> None:
    """Keep each namespace's newest checkpoint, its writes, and what is above it.

    Writes may be stored before their checkpoint is, so those above the newest one stay. Each task
    that runs a subgraph gives it a namespace of its own; they would pile up, so one is dropped
    once the graph that the task belonged to has gone on. A thread with delta channels is left
    alone: they need their history.
    """
    heads: dict[str, str] = {}
    for place, metadata in _heads(connection, thread_id):
        if _DELTA_COUNTERS in metadata:
            return
        heads[place.ns] = place.id
    for ns, head in heads.items():
        owner = _owner(ns)
        gone_on = heads.get(owner, "") if owner is not None else ""
        kept_from = max(head, gone_on)
        for table in ("checkpoints", "writes"):
            connection.execute(
                f"""
                DELETE FROM {table}
                WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id < ?
                """,  # noqa: S608 - of the two words above
                (thread_id, ns, kept_from),
            )
    connection.execute(
        """
        DELETE FROM writes
        WHERE thread_id = :thread AND checkpoint_id < :root AND checkpoint_ns NOT IN (
            SELECT checkpoint_ns FROM checkpoints WHERE thread_id = :thread
        )
        """,
        {"thread": thread_id, "root": heads.get("", "")},
    )


def _owner(ns: str) -> str | None:
    """Return the namespace of the graph whose task ran this one; None if it outlives tasks."""
    parts = ns.split(_NESTED_MARK)
    for depth, part in enumerate(parts):
        if _TASK_MARK in part:
            return _NESTED_MARK.join(parts[:depth])
    return None


def _heads(
    connection: sqlite3.Connection, thread_id: str
) -> Iterator[tuple[Place, dict[str, object]]]:
    # a bare column beside max() comes from the row that has the maximum: SQLite says so
    rows = connection.execute(
        """
        SELECT checkpoint_ns, max(checkpoint_id) AS checkpoint_id,
            CAST(metadata AS BLOB) AS metadata
        FROM checkpoints WHERE thread_id = ? GROUP BY checkpoint_ns
        """,
        (thread_id,),
    ).fetchall()
    for row in rows:
        place = Place(thread_id=thread_id, ns=row["checkpoint_ns"], id=row["checkpoint_id"])
        yield place, read_metadata(row["metadata"], place)
