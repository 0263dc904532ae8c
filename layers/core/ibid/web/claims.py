"""A request's hold on its Idempotency-Key: taken once, kept alive, answered or let go."""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from secrets import token_hex
from typing import Annotated, NamedTuple

from fastapi import Depends, Request

from ibid.domain.errors import KeyInUse, KeyReused, LeaseLost, Unavailable
from ibid.ports.clock import Clock
from ibid.ports.idempotency import IdempotencyStore, KeyRecord, KeyScope, StoredAnswer

logger = logging.getLogger(__name__)

ABANDONED = "abandoned"
"""The owner of a key whose request failed, and may have done its work all the same."""

CLAIM = "ibid.claim"
"""The name in an ASGI scope under which a request finds its claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLimits:
    """How keys are kept.

    Attributes:
        keep_s: Seconds for which a key and its answer are remembered.
        beat_s: Seconds between two signs of life of a request that works.
        term_s: Seconds without one after which a request is dead.
        wait_s: Seconds for which a second request waits for the first one.
        poll_s: Seconds between two looks of one that waits.
        max_answer_bytes: Of an answer that is no run's.
    """

    keep_s: float = 24 * 3_600.0
    beat_s: float = 5.0
    term_s: float = 15.0
    wait_s: float = 25.0
    poll_s: float = 0.2
    max_answer_bytes: int = 64 * 1024


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


class Answered(NamedTuple):
    """What a key has been answered.

    Attributes:
        owner: The request that did the work; random.
    """

    owner: str
    answer: StoredAnswer


class Claimant:
    """Gets a request its key, or the answer that the key has already.

    Args:
        keys: Where keys are kept.
        clock: Monotonic to find the dead, wall time for when keys end.
        limits: How long.
    """

    def __init__(self, keys: IdempotencyStore, clock: Clock, limits: KeyLimits) -> None:
        self._keys = keys
        self._clock = clock
        self._limits = limits

    async def claim(self, scope: KeyScope, *, fingerprint: str) -> Claim | Answered:
        """Hold the key, or return the first request's answer.

        While the first request is under way this waits for it; one that gives no sign of life for
        a full term is dead, and this one takes its place.

        Raises:
            KeyReused: It was used with another request.
            KeyInUse: The first request lives, and is not through yet.
        """
        owner = token_hex(16)
        give_up_at = self._clock.monotonic() + self._limits.wait_s
        seen: tuple[str, int] | None = None
        seen_at = 0.0
        while True:
            record = await self._look(scope, fingerprint, owner, is_first=seen is None)
            if record.owner == owner:
                return self._held(record, scope, owner)
            if record.fingerprint != fingerprint:
                raise KeyReused("This Idempotency-Key was used with another request.")
            if record.answer is not None:
                return Answered(record.owner, record.answer)
            now = self._clock.monotonic()
            if (record.owner, record.beat) != seen:
                seen, seen_at = (record.owner, record.beat), now
            is_dead = record.owner == ABANDONED or now - seen_at >= self._limits.term_s
            if is_dead and await self._keys.take_over(record, tenant=scope.tenant, owner=owner):
                return self._held(record, scope, owner)
            if now >= give_up_at:
                raise KeyInUse("The first request with this Idempotency-Key is still under way.")
            await asyncio.sleep(self._limits.poll_s)

    async def _look(
        self, scope: KeyScope, fingerprint: str, owner: str, *, is_first: bool
    ) -> KeyRecord:
        """Read the record; claim the key at first, and where the record has gone meanwhile."""
        now = self._clock.now()
        if not is_first:
            record = await self._keys.get(scope.record_id, tenant=scope.tenant, now=now)
            if record is not None:
                return record
        return await self._keys.claim(
            scope,
            fingerprint=fingerprint,
            owner=owner,
            now=now,
            expires_at=now + timedelta(seconds=self._limits.keep_s),
        )

    def _held(self, record: KeyRecord, scope: KeyScope, owner: str) -> Claim:
        return Claim(self._keys, self._clock, record, tenant=scope.tenant, owner=owner)


class NewId(NamedTuple):
    """The id of a thing that a request is about to make.

    Attributes:
        value: Random.
        is_planned: An earlier request under the same key had it, and may have made the thing.
    """

    value: str
    is_planned: bool


def claim_of(request: Request) -> Claim | None:
    """Return the request's claim; None without an Idempotency-Key."""
    claim: Claim | None = request.scope.get(CLAIM)
    return claim


Held = Annotated[Claim | None, Depends(claim_of)]


async def new_id(claim: Held) -> NewId:
    """Return an id for what the request makes: the planned one, or a new one, planned now."""
    if claim is None:
        return NewId(uuid.uuid4().hex, is_planned=False)
    if claim.planned is not None:
        return NewId(claim.planned, is_planned=True)
    await claim.plan(value := uuid.uuid4().hex)
    return NewId(value, is_planned=False)


Minted = Annotated[NewId, Depends(new_id)]
