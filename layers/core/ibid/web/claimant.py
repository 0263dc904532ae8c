"""Gets a request its Idempotency-Key: at once, when the first one lets go, or from a dead one."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from secrets import token_hex
from typing import NamedTuple

from ibid.domain.errors import KeyInUse, KeyReused
from ibid.ports.clock import Clock
from ibid.ports.idempotency import IdempotencyStore, KeyRecord, KeyScope, StoredAnswer
from ibid.web.claims import ABANDONED, Claim


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
