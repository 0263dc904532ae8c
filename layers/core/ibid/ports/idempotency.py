"""Where the answers to requests with an Idempotency-Key are kept."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyScope:
    """One key of one caller on one route; equal requests have equal scopes.

    Attributes:
        key: The header, 1 to 255 visible ASCII characters.
    """

    tenant: str
    subject: str
    method: str
    path: str
    key: str

    @property
    def record_id(self) -> str:
        """The id of its record: a digest, so that it tells nothing and fits anywhere."""
        parts = json.dumps([self.tenant, self.subject, self.method, self.path, self.key])
        return hashlib.sha256(parts.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """What the first request was answered.

    Attributes:
        status: The HTTP status.
        headers: Those that belong to the answer, by lower-case name.
        body: The bytes of a whole answer; empty where the answer is a run's.
        run_id: The run whose events are the answer, replayed from its journal.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """One key as it is kept.

    Attributes:
        id: `KeyScope.record_id`, safe to keep elsewhere.
        fingerprint: A digest of the request's body and of what else makes it another request.
        owner: The request that works on it; random.
        beat: Raised by the owner while it works, so that a dead one is found out.
        plan: The run that the owner is about to begin; it may never have begun.
        answer: None while the first request is under way.
    """

    id: str
    fingerprint: str
    owner: str
    beat: int
    plan: str | None
    answer: StoredAnswer | None


class IdempotencyStore(Protocol):
    """One record a scope; every method is one conditional write or a read that sees all writes.

    Records are no longer found after they expire. Every method may raise StoreUnavailable.
    """

    async def claim(
        self, scope: KeyScope, *, fingerprint: str, owner: str, now: datetime, expires_at: datetime
    ) -> KeyRecord:
        """Keep a new record, or return the one that is there and has not expired at `now`.

        The caller has claimed the key if the record's owner is its own.
        """

    async def take_over(self, record: KeyRecord, *, tenant: str, owner: str) -> bool:
        """Become the owner of a record without an answer whose counter still is `record.beat`."""

    async def beat(
        self, record_id: str, *, tenant: str, owner: str, plan: str | None = None
    ) -> None:
        """Raise the counter; with `plan`, also keep the run that is about to begin.

        Raises:
            LeaseLost: Another owner has it, or it is gone.
        """

    async def finish(
        self, record_id: str, *, tenant: str, owner: str, answer: StoredAnswer
    ) -> None:
        """Keep the answer; repeatable with the same one.

        Raises:
            LeaseLost: Another owner has it, or it is gone.
        """

    async def release(self, record_id: str, *, tenant: str, owner: str) -> None:
        """Forget a claim whose request did nothing (it was refused); repeatable."""

    async def get(self, record_id: str, *, tenant: str, now: datetime) -> KeyRecord | None:
        """Return a record, or None if there is none or it has expired."""

    async def delete(self, record_id: str, *, tenant: str) -> None:
        """Remove a record; repeatable."""

    async def purge(self, now: datetime) -> int:
        """Remove expired records and return how many; 0 from a store that does so by itself."""
