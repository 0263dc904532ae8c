"""Idempotency records and ratings in memory."""

import asyncio
from dataclasses import replace
from datetime import datetime

from ibid.domain.errors import LeaseLost
from ibid.domain.principals import Principal
from ibid.ports.feedback import Feedback
from ibid.ports.idempotency import KeyRecord, KeyScope, StoredAnswer
from tests.fakes.rows import KeyRow, Rows


class FakeIdempotency:
    """Implements IdempotencyStore."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def claim(
        self, scope: KeyScope, *, fingerprint: str, owner: str, now: datetime, expires_at: datetime
    ) -> KeyRecord:
        await asyncio.sleep(0)
        row = self._rows.keys.get((scope.tenant, scope.record_id))
        if row is None or row.expires_at <= now:
            record = KeyRecord(
                id=scope.record_id,
                fingerprint=fingerprint,
                owner=owner,
                beat=0,
                plan=None,
                answer=None,
            )
            row = KeyRow(record, expires_at)
            self._rows.keys[scope.tenant, scope.record_id] = row
        return row.record

    async def take_over(self, record: KeyRecord, *, tenant: str, owner: str) -> bool:
        await asyncio.sleep(0)
        row = self._rows.keys.get((tenant, record.id))
        if row is None or row.record.answer is not None:
            return False
        if (row.record.owner, row.record.beat) != (record.owner, record.beat):
            return False
        row.record = replace(row.record, owner=owner, beat=record.beat + 1)
        return True

    def _owned(self, record_id: str, tenant: str, owner: str) -> KeyRow:
        row = self._rows.keys.get((tenant, record_id))
        if row is None or row.record.owner != owner:
            raise LeaseLost(f"key record {record_id!r} has another owner, or is gone")
        return row

    async def beat(
        self, record_id: str, *, tenant: str, owner: str, plan: str | None = None
    ) -> None:
        await asyncio.sleep(0)
        row = self._owned(record_id, tenant, owner)
        row.record = replace(
            row.record, beat=row.record.beat + 1, plan=row.record.plan if plan is None else plan
        )

    async def finish(
        self, record_id: str, *, tenant: str, owner: str, answer: StoredAnswer
    ) -> None:
        await asyncio.sleep(0)
        row = self._owned(record_id, tenant, owner)
        if row.record.answer is None:
            row.record = replace(row.record, answer=answer)

    async def release(self, record_id: str, *, tenant: str, owner: str) -> None:
        await asyncio.sleep(0)
        row = self._rows.keys.get((tenant, record_id))
        if row is not None and row.record.owner == owner and row.record.answer is None:
            del self._rows.keys[tenant, record_id]

    async def get(self, record_id: str, *, tenant: str, now: datetime) -> KeyRecord | None:
        await asyncio.sleep(0)
        row = self._rows.keys.get((tenant, record_id))
        return None if row is None or row.expires_at <= now else row.record

    async def delete(self, record_id: str, *, tenant: str) -> None:
        await asyncio.sleep(0)
        self._rows.keys.pop((tenant, record_id), None)

    async def purge(self, now: datetime) -> int:
        await asyncio.sleep(0)
        expired = [key for key, row in self._rows.keys.items() if row.expires_at <= now]
        for key in expired:
            del self._rows.keys[key]
        return len(expired)


class FakeFeedback:
    """Implements FeedbackStore."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def put(self, feedback: Feedback) -> None:
        await asyncio.sleep(0)
        principal = Principal(tenant=feedback.tenant, subject=feedback.subject)
        self._rows.conversation(feedback.conversation_id, principal)
        self._rows.feedback[feedback.tenant, feedback.subject, feedback.run_id] = feedback

    async def get(self, run_id: str, *, tenant: str, subject: str) -> Feedback | None:
        await asyncio.sleep(0)
        return self._rows.feedback.get((tenant, subject, run_id))
