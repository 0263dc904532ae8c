"""Being the only writer of a turn's checkpoints, also after a run that died with them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Protocol

from ibid.domain.errors import ThreadLeased
from ibid.domain.leases import Lease

_LOOKS = 40


class LeasingSaver(Protocol):
    """A checkpoint saver that gives leases; both of ours do."""

    def leased(self, thread_id: str, owner: str) -> AbstractAsyncContextManager[Lease]:
        """Hold a thread's lease for the time of a block."""


@asynccontextmanager
async def holding(
    saver: LeasingSaver, turn_id: str, *, owner: str, wait_s: float
) -> AsyncIterator[Lease]:
    """Hold a turn's checkpoints for the time of a block.

    A dead run's lease is taken over once the saver has watched it for a term.

    Args:
        saver: Who keeps them.
        turn_id: The checkpoint thread.
        owner: The run's id.
        wait_s: Seconds to wait while another run holds them, 0 or more.

    Raises:
        ThreadLeased: Another run lives and holds them.
        ThreadGone: The turn was deleted.
        LeaseLost: At the end: another run has taken them since.
        StoreUnavailable: The store gave no answer.
    """
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + wait_s
    async with AsyncExitStack() as stack:
        lease: Lease | None = None
        while lease is None:
            try:
                lease = await stack.enter_async_context(saver.leased(turn_id, owner))
            except ThreadLeased:
                if loop.time() >= give_up_at:
                    raise
                await asyncio.sleep(wait_s / _LOOKS)
        yield lease
