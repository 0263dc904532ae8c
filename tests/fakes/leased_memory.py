"""LangGraph's saver in memory, with leases that end when their block does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from langgraph.checkpoint.memory import InMemorySaver

from ibid.domain.errors import ThreadLeased
from ibid.domain.leases import Lease


class LeasedMemorySaver(InMemorySaver):
    """Knows who holds which thread; a thread of `dead` stays held until it was asked for so often.

    Args:
        dead: For a thread whose holder died, how often a lease is refused before it is given.
    """

    def __init__(self, dead: dict[str, int] | None = None) -> None:
        super().__init__()
        self.holders: dict[str, str] = {}
        self.owners: list[str] = []
        self._dead = dead or {}
        self._tokens = count(1)

    @asynccontextmanager
    async def leased(self, thread_id: str, owner: str) -> AsyncIterator[Lease]:
        refusals = self._dead.get(thread_id, 0)
        if refusals or thread_id in self.holders:
            self._dead[thread_id] = max(0, refusals - 1)
            raise ThreadLeased(f"thread {thread_id!r} has a writer", thread_id=thread_id)
        self.holders[thread_id] = owner
        self.owners.append(owner)
        try:
            yield Lease(thread_id=thread_id, owner=owner, token=next(self._tokens))
        finally:
            del self.holders[thread_id]
