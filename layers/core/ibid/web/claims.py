"""A request's hold on its Idempotency-Key: what it plans, how it ends, that it lives."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, NamedTuple

from fastapi import Depends, Request

from ibid.domain.errors import KeyInUse, LeaseLost, Unavailable
from ibid.ports.clock import Clock
from ibid.ports.idempotency import IdempotencyStore, KeyRecord, StoredAnswer

logger = logging.getLogger(__name__)

ABANDONED = "abandoned"
"""The owner of a key whose request failed, and may have done its work all the same."""

CLAIM = "ibid.claim"
"""The name in an ASGI scope under which a request finds its claim."""


class RunPlan(NamedTuple):
    """A run that is about to begin: its id, and the one thing of it that nobody else can have."""

    run_id: str
    message_id: str

    @classmethod
    def read(cls, plan: str | None) -> "RunPlan | None":
        """Read a plan that `str` wrote; None for what is no run's."""
        run_id, _, message_id = (plan or "").partition(" ")
        return cls(run_id, message_id) if message_id else None

    def __str__(self) -> str:
        return f"{self.run_id} {self.message_id}"


class Claim:
    """One key that this request holds, and no other.

    What it is about to make is on record (the plan) before it is made: whoever takes over from a
    request that died finds it, or makes it under the same id.

    Attributes:
        record_id: Of the record.
        owner: This request; random.
        planned: What was planned under this key, by this request or by one before it.
        is_answered: The answer is on record: nothing is left to do.
    """

    def __init__(
        self, keys: IdempotencyStore, clock: Clock, record: KeyRecord, *, tenant: str, owner: str
    ) -> None:
        self.record_id = record.id
        self.owner = owner
        self.planned = record.plan
        self.is_answered = False
        self._keys = keys
        self._clock = clock
        self._tenant = tenant

    async def plan(self, thing_id: str) -> None:
        """Put on record what is about to be made, unless it is already.

        Raises:
            KeyInUse: Another request has taken over.
            StoreUnavailable: The record can't be written.
        """
        if thing_id == self.planned:
            return
        try:
            await self._keys.beat(
                self.record_id, tenant=self._tenant, owner=self.owner, plan=thing_id
            )
        except LeaseLost:
            raise KeyInUse("another request with this key has taken over") from None
        self.planned = thing_id

    async def answer(self, answer: StoredAnswer) -> None:
        """Put the answer on record; if that fails, the work is found by its plan later."""
        self.is_answered = True
        try:
            await self._keys.finish(
                self.record_id, tenant=self._tenant, owner=self.owner, answer=answer
            )
        except (LeaseLost, Unavailable) as error:
            logger.warning("idempotent answer not kept", extra={"error": error.code})

    async def let_go(self, *, has_failed: bool) -> None:
        """Let the key be tried again, with the plan if the work may have been done.

        The plan of a run is not left: one that began although its request failed has ended
        without any work.
        """
        try:
            if has_failed and self.planned is not None and RunPlan.read(self.planned) is None:
                await self._abandon()
            else:
                await self._keys.release(self.record_id, tenant=self._tenant, owner=self.owner)
        except Unavailable as error:  # it will be found dead
            logger.warning("idempotency key not let go", extra={"error": error.code})

    async def _abandon(self) -> None:
        record = await self._keys.get(self.record_id, tenant=self._tenant, now=self._clock.now())
        if record is not None and record.owner == self.owner:
            await self._keys.take_over(record, tenant=self._tenant, owner=ABANDONED)

    @asynccontextmanager
    async def kept_alive(self, beat_s: float) -> AsyncIterator[None]:
        """Give a sign of life every so often while the request works."""
        beating = asyncio.create_task(self._beat(beat_s))
        try:
            yield
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _beat(self, beat_s: float) -> None:
        while True:
            await asyncio.sleep(beat_s)
            try:
                if not self.is_answered:
                    await self._keys.beat(self.record_id, tenant=self._tenant, owner=self.owner)
            except LeaseLost:
                return
            except Unavailable as error:
                logger.warning("idempotency key not beaten", extra={"error": error.code})


def claim_of(request: Request) -> Claim | None:
    """Return the request's claim; None without an Idempotency-Key."""
    claim: Claim | None = request.scope.get(CLAIM)
    return claim


Held = Annotated[Claim | None, Depends(claim_of)]
