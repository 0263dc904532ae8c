"""One writer a thread: leases, the tokens that fence writes, and how a dead lease is told.

A lease is an owner and a counter in the thread's row. Each time one is taken, its token is one
that was never used in the file before; a write that carries another token than the thread's is
refused in its own transaction. Nobody's clock is compared with anybody's: a lease is dead when
its counter has not moved for a full term on the monotonic clock of one that watched it.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from ibid.domain.errors import CheckpointStale, LeaseLost, ThreadGone
from ibid.domain.leases import Lease

_FORGET_AFTER_TERMS = 20


@dataclass(frozen=True, slots=True)
class Held:
    """Somebody's lease as it was seen: its token and its counter."""

    token: int
    beat: int


def check(
    connection: sqlite3.Connection, thread_id: str, token: int | None, checkpoint_id: str
) -> None:
    """Let a write pass if its token is the thread's, or if neither has one.

    Raises:
        CheckpointStale: The lease is another's now, or was given back; or the thread has a token
            and the write none.
        ThreadGone: The thread was deleted; or the write has a token and the thread none.
    """
    row = connection.execute(
        "SELECT token, owner, is_gone FROM threads WHERE thread_id = ?", (thread_id,)
    ).fetchone()
    has_token = row is not None and row["token"] is not None
    if (row is not None and row["is_gone"]) or (token is not None and not has_token):
        msg = f"thread {thread_id!r} was deleted, or has expired"
        raise ThreadGone(msg, thread_id=thread_id, checkpoint_id=checkpoint_id)
    if not has_token:
        return
    if row["token"] == token and row["owner"] is not None:
        return
    fault = "carries no token" if token is None else "carries a token that is over"
    msg = f"a write to thread {thread_id!r}, checkpoint {checkpoint_id!r}, {fault}"
    raise CheckpointStale(msg, thread_id=thread_id, checkpoint_id=checkpoint_id)


def take(
    connection: sqlite3.Connection, thread_id: str, owner: str, *, dead: Held | None
) -> Lease | Held:
    """Take the thread's lease with a new token, or return the one that is in the way.

    Args:
        connection: In a transaction that writes.
        thread_id: Whose; it must be there.
        owner: Who will hold it.
        dead: A lease that may be taken away, if it still is as it was seen.

    Raises:
        ThreadGone: The thread was deleted.
    """
    check_not_gone(connection, thread_id)
    row = connection.execute(
        "SELECT token, owner, beat FROM threads WHERE thread_id = ?", (thread_id,)
    ).fetchone()
    if row["owner"] is not None:
        held = Held(row["token"], row["beat"])
        if held != dead:
            return held
    token = int(
        connection.execute("UPDATE tokens SET last = last + 1 RETURNING last").fetchone()[0]
    )
    connection.execute(
        "UPDATE threads SET token = ?, owner = ? WHERE thread_id = ?", (token, owner, thread_id)
    )
    return Lease(thread_id=thread_id, owner=owner, token=token)


def beat(connection: sqlite3.Connection, lease: Lease) -> None:
    """Raise the lease's counter.

    Raises:
        LeaseLost: It is another's now, or was given back, or the thread is gone.
    """
    changed = connection.execute(
        """
        UPDATE threads SET beat = beat + 1
        WHERE thread_id = ? AND token = ? AND owner IS NOT NULL
        """,
        (lease.thread_id, lease.token),
    )
    if changed.rowcount == 0:
        raise LeaseLost(f"the lease on thread {lease.thread_id!r} is over")


def release(connection: sqlite3.Connection, lease: Lease) -> None:
    """Give the lease back; its token is worth nothing any more. Repeatable.

    Raises:
        LeaseLost: Another one has been taken since, or the thread is gone.
    """
    changed = connection.execute(
        "UPDATE threads SET owner = NULL WHERE thread_id = ? AND token = ? AND NOT is_gone",
        (lease.thread_id, lease.token),
    )
    if changed.rowcount == 0:
        raise LeaseLost(f"the lease on thread {lease.thread_id!r} is another's")


def check_not_gone(connection: sqlite3.Connection, thread_id: str) -> None:
    """Let a read pass unless the thread was leased once, and deleted.

    Raises:
        ThreadGone: It was.
    """
    gone = connection.execute(
        "SELECT 1 FROM threads WHERE thread_id = ? AND is_gone", (thread_id,)
    ).fetchone()
    if gone is not None:
        raise ThreadGone(f"thread {thread_id!r} was deleted", thread_id=thread_id)


class Watch:
    """Remembers since when other writers' leases have not moved."""

    def __init__(self, *, term_s: float, monotonic: Callable[[], float]) -> None:
        self.term_s = term_s
        self._monotonic = monotonic
        self._seen: dict[str, tuple[Held, float, float]] = {}  # lease, first and last look

    def dead(self, thread_id: str) -> Held | None:
        """Return the lease that has been watched unmoved for a full term, if there is one."""
        found = self._seen.get(thread_id)
        if found is None or self._monotonic() - found[1] < self.term_s:
            return None
        return found[0]

    def saw(self, thread_id: str, held: Held) -> None:
        """Note how a lease looks now."""
        now = self._monotonic()
        kept = self._seen.get(thread_id)
        since = kept[1] if kept is not None and kept[0] == held else now
        oldest = now - _FORGET_AFTER_TERMS * self.term_s
        self._seen = {name: seen for name, seen in self._seen.items() if seen[2] >= oldest}
        self._seen[thread_id] = (held, since, now)

    def forget(self, thread_id: str) -> None:
        """Stop watching a thread."""
        self._seen.pop(thread_id, None)
