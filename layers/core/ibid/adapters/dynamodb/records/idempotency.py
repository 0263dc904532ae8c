"""Idempotency records in the app table; DynamoDB removes those that have expired."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ibid.adapters.dynamodb.records import blobs, keys
from ibid.adapters.dynamodb.records.deletion import Deletion
from ibid.adapters.dynamodb.records.expiry import TTL, removed_after
from ibid.adapters.dynamodb.records.table import ConditionFailed, Table
from ibid.adapters.dynamodb.records.wire import Item, Value
from ibid.adapters.dynamodb.records.writes import Write
from ibid.adapters.records import codec
from ibid.domain.errors import LeaseLost
from ibid.ports.idempotency import KeyRecord, KeyScope, StoredAnswer

_OWNED = "#owner = :owner"
_OPEN = "attribute_not_exists(#status)"


class DynamoIdempotency:
    """Implements IdempotencyStore."""

    def __init__(self, table: Table, deletion: Deletion) -> None:
        self._table = table
        self._deletion = deletion

    async def claim(
        self, scope: KeyScope, *, fingerprint: str, owner: str, now: datetime, expires_at: datetime
    ) -> KeyRecord:
        """Keep a new record, or return the one that is there and has not expired."""
        item: dict[str, Value] = {
            "fingerprint": fingerprint,
            "owner": owner,
            "beat": 0,
            "until": codec.moment_to_int(expires_at),
            TTL: removed_after(expires_at),
        }
        write = Write(
            key=keys.idempotency(scope.tenant, scope.record_id),
            item=item,
            condition="attribute_not_exists(#pk) OR #until <= :now",
            values={"now": codec.moment_to_int(now)},
        )

        def work() -> KeyRecord:
            while True:
                try:
                    self._table.write(write)
                except ConditionFailed as error:
                    if error.item is None:
                        continue
                    return self._record(scope.tenant, scope.record_id, error.item)
                return self._record(scope.tenant, scope.record_id, item)

        return await self._table.run(work)

    async def take_over(self, record: KeyRecord, *, tenant: str, owner: str) -> bool:
        """Become the owner of a record without an answer that has not moved."""
        try:
            await self._change(
                record.id,
                tenant,
                "SET #owner = :mine, #beat = :next",
                f"{_OWNED} AND #beat = :beat AND {_OPEN}",
                owner=record.owner,
                beat=record.beat,
                mine=owner,
                next=record.beat + 1,
            )
        except ConditionFailed as error:
            there = error.item or {}  # its own: the reply to an earlier try was lost
            return (there.get("owner"), there.get("beat")) == (owner, record.beat + 1)
        return True

    async def beat(
        self, record_id: str, *, tenant: str, owner: str, plan: str | None = None
    ) -> None:
        """Raise the counter; with `plan`, also keep the run that is about to begin."""
        update = "ADD #beat :one"
        values: dict[str, Value] = {"owner": owner, "one": 1}
        if plan is not None:
            update, values = f"{update} SET #plan = :plan", {**values, "plan": plan}
        try:
            await self._change(record_id, tenant, update, _OWNED, **values)
        except ConditionFailed as error:
            raise _lost(record_id) from error

    async def finish(
        self, record_id: str, *, tenant: str, owner: str, answer: StoredAnswer
    ) -> None:
        """Keep the answer; the first one stays."""
        key = keys.idempotency(tenant, record_id)
        body = blobs.blob(_to_bytes(answer))
        update = Write(
            key=key,
            update="SET #status = :status, "
            + ", ".join(f"#{name} = :{name}" for name in body.attributes),
            condition=f"{_OWNED} AND {_OPEN}",
            values={**body.attributes, "status": answer.status, "owner": owner},
        )

        def work() -> None:
            try:
                if body.parts:
                    there = self._table.get(key) or {}
                    check = Write(key=key, condition=_OWNED, values={"owner": owner})
                    expires = {TTL: there[TTL]} if TTL in there else {}
                    body.keep_parts(self._table, key[0], check=check, **expires)
                self._table.write(update)
            except ConditionFailed as error:
                if (error.item or {}).get("owner") != owner:
                    raise _lost(record_id) from error

        await self._table.run(work)

    async def release(self, record_id: str, *, tenant: str, owner: str) -> None:
        """Forget a claim whose request did nothing."""
        write = Write(
            key=keys.idempotency(tenant, record_id),
            deletes=True,
            condition=f"{_OWNED} AND {_OPEN}",
            values={"owner": owner},
        )

        def work() -> None:
            try:
                self._table.write(write)
            except ConditionFailed:
                return

        await self._table.run(work)

    async def get(self, record_id: str, *, tenant: str, now: datetime) -> KeyRecord | None:
        """Return a record, or None if there is none or it has expired."""

        def work() -> KeyRecord | None:
            item = self._table.get(keys.idempotency(tenant, record_id))
            if item is None or item["until"] <= codec.moment_to_int(now):
                return None
            return self._record(tenant, record_id, item)

        return await self._table.run(work)

    async def delete(self, record_id: str, *, tenant: str) -> None:
        """Remove a record; repeatable."""
        await self._table.run(lambda: self._deletion.record(tenant, record_id))

    async def purge(self, now: datetime) -> int:  # noqa: ARG002 - as the port says
        """Leave it to DynamoDB, which removes what has expired."""
        return 0

    async def _change(
        self, record_id: str, tenant: str, update: str, condition: str, **values: Value
    ) -> None:
        write = Write(
            key=keys.idempotency(tenant, record_id),
            update=update,
            condition=condition,
            values=values,
        )
        await self._table.run(lambda: self._table.write(write))

    def _record(self, tenant: str, record_id: str, item: Item) -> KeyRecord:
        answer = None
        if "status" in item:
            partition, _ = keys.idempotency(tenant, record_id)
            answer = _from_bytes(item, blobs.read(self._table, partition, item))
        return KeyRecord(
            id=record_id,
            fingerprint=item["fingerprint"],
            owner=item["owner"],
            beat=item["beat"],
            plan=item.get("plan"),
            answer=answer,
        )


def _to_bytes(answer: StoredAnswer) -> bytes:
    head = json.dumps([dict(answer.headers), answer.run_id, answer.body.decode("latin-1")])
    return blobs.squeeze(head)


def _from_bytes(item: Mapping[str, Any], data: bytes) -> StoredAnswer:
    headers, run_id, body = json.loads(blobs.expand(data))
    return StoredAnswer(
        status=item["status"], headers=headers, body=body.encode("latin-1"), run_id=run_id
    )


def _lost(record_id: str) -> LeaseLost:
    return LeaseLost(f"key record {record_id!r} has another owner, or is gone")
