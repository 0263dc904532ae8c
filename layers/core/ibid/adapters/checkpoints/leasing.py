"""Holding a thread's lease for the time of a block, on whichever saver."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from ibid.domain.errors import IbidError, LeaseLost, StoreUnavailable
from ibid.domain.leases import Lease

_BEATS_A_TERM = 3


class Leasing(Protocol):
    """A saver that gives leases; see its methods of these names."""

    async def take_lease(self, thread_id: str, owner: str) -> Lease:
        """Become a thread's only writer."""
        ...

    async def beat(self, lease: Lease) -> None:
        """Show that the holder lives."""
        ...

    async def release(self, lease: Lease) -> None:
        """Give the lease back."""
        ...


@asynccontextmanager
async def leased(
    saver: Leasing, thread_id: str, owner: str, *, term_s: float
) -> AsyncIterator[Lease]:
    """Hold a thread's lease, with a sign of life three times a term, until the block ends.

    A block that is cancelled gives its lease back as well, also while it is still taking it.

    Args:
        saver: Who gives it.
        thread_id: Whose.
        owner: Who asks.
        term_s: Seconds without a sign of life after which a lease is dead.

    Raises:
        ThreadLeased: Somebody holds it, and is not known to be dead.
        ThreadGone: The thread was deleted.
        LeaseLost: At the end: another one has been taken since.
        StoreUnavailable: The store gave no answer.
    """
    lease = await _taken(saver, thread_id, owner)
    beating = asyncio.create_task(_keep(saver, lease, term_s / _BEATS_A_TERM))
    try:
        yield lease
    finally:
        beating.cancel()
        try:
            # not awaited by itself: that would take the caller's cancellation for the task's
            await asyncio.gather(beating, return_exceptions=True)
        finally:
            await saver.release(lease)


async def _taken(saver: Leasing, thread_id: str, owner: str) -> Lease:
    taking = asyncio.ensure_future(saver.take_lease(thread_id, owner))
    try:
        return await asyncio.shield(taking)
    except asyncio.CancelledError:
        with suppress(IbidError):  # then there is no lease to give back
            await saver.release(await taking)
        raise


async def _keep(saver: Leasing, lease: Lease, every_s: float) -> None:
    with suppress(LeaseLost):  # the release says so
        while True:
            await asyncio.sleep(every_s)
            with suppress(StoreUnavailable):  # the next one may get through
                await saver.beat(lease)
