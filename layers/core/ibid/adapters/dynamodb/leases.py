"""Leases on threads: one writer each, told apart by rising tokens; no clocks are compared."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from ibid.adapters.dynamodb.fence import IN_DOUBT, Cut, Fence, fence_of, is_fence
from ibid.adapters.dynamodb.fence_rows import FenceRows
from ibid.adapters.dynamodb.place import Place
from ibid.adapters.dynamodb.storage import Storage
from ibid.domain.errors import (
    CheckpointStale,
    LeaseLost,
    Misconfigured,
    StoreUnavailable,
    ThreadGone,
    ThreadLeased,
)
from ibid.domain.leases import Lease

_REMEMBERED = 4_096


@dataclass(slots=True)
class _Watched:
    token: int
    beat: int
    since: float


class Leases:
    """Takes, keeps and gives back leases, and lets only their holders write.

    Args:
        storage: Where.
        term_s: How long a counter must not move before its lease counts as dead, above 0.
        monotonic: Seconds of this process's own clock.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        term_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._storage = storage
        self._fences = FenceRows(storage)
        self._term_s = term_s
        self._monotonic = monotonic
        self._confirmed: dict[tuple[str, int], float] = {}
        self._over: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._watched: OrderedDict[str, _Watched] = OrderedDict()

    def take(self, thread_id: str, owner: str) -> Lease:
        """Take a thread's lease: a free one at once, a dead one by cutting its writer off.

        A lease is dead once a call of this very object has seen its counter unmoved for a term
        since an earlier call did.

        Raises:
            ThreadLeased: Somebody holds it, and is not known to be dead.
            ThreadGone: The thread was deleted.
            StoreUnavailable: The table gave no answer.
        """
        if not self._storage.fencing:
            raise Misconfigured("a saver with `fencing=False` has no leases")
        fence, rows = self._storage.rows(thread_id, page=1)
        if fence.gone:
            raise _gone(thread_id)
        if fence.held and not self._is_dead(thread_id, fence):
            raise _leased(thread_id, fence)
        mine = replace(
            fence,
            token=fence.token + 1,
            owner=owner,
            nonce=uuid4().hex,
            beat=0,
            held=True,
            in_doubt=False,
        )
        if fence.held or fence.in_doubt or not fence.token:
            last = fence.cuts[-1] if fence.cuts else None
            heads: dict[str, str] = {}
            if last is not None and not last.sealed:  # its taker wrote nothing: it never returned
                heads = dict(last.heads)
            else:
                for row in rows:
                    heads.setdefault(row.checkpoint_ns, row.checkpoint_id)
                    if not row.checkpoint_ns:
                        break
            mine = mine.with_cut(Cut(token=mine.token, heads=heads, sealed=not heads))
        self._swap(thread_id, fence, mine)
        if mine.cuts and not mine.cuts[-1].sealed:
            self._swap(thread_id, mine, self._fences.sealed(thread_id, fence, mine))
        self._watched.pop(thread_id, None)
        self._confirmed[thread_id, mine.token] = self._monotonic()
        return Lease(thread_id=thread_id, owner=owner, token=mine.token)

    def beat(self, lease: Lease) -> None:
        """Show that the holder lives.

        Raises:
            LeaseLost: Another one holds it now, it was released, or the thread is gone.
            StoreUnavailable: The table gave no answer.
        """
        self._change(lease, "SET beat = beat + :one", {":one": {"N": "1"}}, held=True)
        self._confirmed[lease.thread_id, lease.token] = self._monotonic()

    def release(self, lease: Lease) -> None:
        """Give a lease back, once no write under it is under way in this process.

        After a write that had no answer the next lease cuts this one off, as if it had died.

        Raises:
            LeaseLost: Another one holds it now, or the thread is gone: nothing that was written
                since counts.
            StoreUnavailable: The table gave no answer, or a write none yet.
        """
        connection = self._storage.connection
        if not connection.settled(
            lease.thread_id, lease.token, timeout_s=2 * connection.budget.seconds
        ):
            raise StoreUnavailable(f"a write to thread {lease.thread_id!r} has no answer yet")
        doubt = connection.is_in_doubt(lease.thread_id, lease.token)
        values = {":no": {"BOOL": False}, ":doubt": {"BOOL": doubt}}
        self._change(lease, f"SET held = :no, {IN_DOUBT} = :doubt", values, held=False)
        self._end(lease.thread_id, lease.token)

    def permit(self, place: Place) -> int:
        """Return the token to write under, 0 for none, if the writer may write at all.

        A holder that has shown no sign of life for a term asks first whether it still is one.

        Raises:
            CheckpointStale: It is not the holder.
            ThreadGone: The thread was deleted.
        """
        if not self._storage.fencing:
            return 0
        if place.token is None:
            if place.seen is not None:
                raise _stale(place, "carries no token")
            return 0
        key = place.thread_id, place.token
        if key in self._over:
            raise _stale(place, "carries a token that is over")
        confirmed = self._confirmed.get(key)
        if confirmed is not None and self._monotonic() - confirmed >= self._term_s:
            try:
                self.beat(Lease(thread_id=key[0], owner="", token=key[1]))
            except LeaseLost as error:
                raise _stale(place, "carries a token that is over") from error
        return place.token

    def end(self, thread_id: str) -> None:
        """Put a tombstone where a thread's fence is; a thread without one stays without."""
        if not self._storage.fencing:
            return
        while True:
            first = next(self._storage.newest_first(thread_id, page=1), None)
            if first is None or not is_fence(first) or fence_of(first).gone:
                return
            old = fence_of(first)
            ended = replace(
                old, token=old.token + 1, nonce=uuid4().hex, held=False, gone=True, cuts=()
            )
            if self._fences.put(thread_id, old, ended) is None:
                return

    def _is_dead(self, thread_id: str, fence: Fence) -> bool:
        now = self._monotonic()
        seen = self._watched.get(thread_id)
        if seen is None or (seen.token, seen.beat) != (fence.token, fence.beat):
            self._watched[thread_id] = _Watched(fence.token, fence.beat, now)
            self._watched.move_to_end(thread_id)
            if len(self._watched) > _REMEMBERED:
                self._watched.popitem(last=False)
            return False
        return now - seen.since >= self._term_s

    def _swap(self, thread_id: str, old: Fence, new: Fence) -> None:
        found = self._fences.put(thread_id, old, new)
        if found is not None:
            raise _gone(thread_id) if found.gone else _leased(thread_id, found)

    def _change(self, lease: Lease, update: str, values: dict[str, Any], *, held: bool) -> None:
        if self._fences.change(lease.thread_id, lease.token, update, values, held=held):
            return
        self._end(lease.thread_id, lease.token)
        raise LeaseLost(f"the lease on thread {lease.thread_id!r} is over")

    def _end(self, thread_id: str, token: int) -> None:
        self._storage.connection.settle(thread_id, token)
        self._confirmed.pop((thread_id, token), None)
        self._over[thread_id, token] = None
        if len(self._over) > _REMEMBERED:
            self._over.popitem(last=False)


def _gone(thread_id: str) -> ThreadGone:
    return ThreadGone(f"thread {thread_id!r} was deleted", thread_id=thread_id)


def _leased(thread_id: str, fence: Fence) -> ThreadLeased:
    return ThreadLeased(
        f"thread {thread_id!r} is leased to {fence.owner!r}",
        thread_id=thread_id,
        token=fence.token,
        beat=fence.beat,
    )


def _stale(place: Place, fault: str) -> CheckpointStale:
    return CheckpointStale(
        f"a write to thread {place.thread_id!r} {fault}",
        thread_id=place.thread_id,
        checkpoint_id=place.checkpoint_id,
    )
