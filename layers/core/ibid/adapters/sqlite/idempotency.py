"""Idempotency records in the app store; one whose `status` is set has its answer."""

import json
import sqlite3
from datetime import datetime

from ibid.adapters.records import codec
from ibid.adapters.sqlite.database import Database
from ibid.domain.errors import LeaseLost
from ibid.ports.idempotency import KeyRecord, KeyScope, StoredAnswer


class SqliteIdempotency:
    """Implements IdempotencyStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(
        self, scope: KeyScope, *, fingerprint: str, owner: str, now: datetime, expires_at: datetime
    ) -> KeyRecord:
        """Keep a new record, or return the one that is there and has not expired at `now`."""
        key = (scope.tenant, scope.record_id)

        def work(connection: sqlite3.Connection) -> KeyRecord:
            connection.execute(
                "DELETE FROM idempotency WHERE tenant = ? AND id = ? AND expires_at <= ?",
                (*key, codec.moment_to_int(now)),
            )
            connection.execute(
                """
                INSERT INTO idempotency (tenant, id, fingerprint, owner, beat, expires_at)
                VALUES (?, ?, ?, ?, 0, ?) ON CONFLICT DO NOTHING
                """,
                (*key, fingerprint, owner, codec.moment_to_int(expires_at)),
            )
            row = connection.execute(
                "SELECT * FROM idempotency WHERE tenant = ? AND id = ?", key
            ).fetchone()
            return read(row)

        return await self._database.write(work)

    async def take_over(self, record: KeyRecord, *, tenant: str, owner: str) -> bool:
        """Become the owner of a record without an answer whose counter did not move."""

        def work(connection: sqlite3.Connection) -> bool:
            changed = connection.execute(
                """
                UPDATE idempotency SET owner = ?, beat = beat + 1
                WHERE tenant = ? AND id = ? AND owner = ? AND beat = ? AND status IS NULL
                """,
                (owner, tenant, record.id, record.owner, record.beat),
            )
            return changed.rowcount == 1

        return await self._database.write(work)

    async def beat(
        self, record_id: str, *, tenant: str, owner: str, plan: str | None = None
    ) -> None:
        """Raise the counter; with `plan`, also keep the run that is about to begin."""

        def work(connection: sqlite3.Connection) -> None:
            changed = connection.execute(
                """
                UPDATE idempotency SET beat = beat + 1, plan = coalesce(?, plan)
                WHERE tenant = ? AND id = ? AND owner = ?
                """,
                (plan, tenant, record_id, owner),
            )
            _check_changed(changed, record_id)

        await self._database.write(work)

    async def finish(
        self, record_id: str, *, tenant: str, owner: str, answer: StoredAnswer
    ) -> None:
        """Keep the answer; the first one stays."""

        def work(connection: sqlite3.Connection) -> None:
            changed = connection.execute(
                """
                UPDATE idempotency SET
                    body = CASE WHEN status IS NULL THEN ? ELSE body END,
                    headers = CASE WHEN status IS NULL THEN ? ELSE headers END,
                    run_id = CASE WHEN status IS NULL THEN ? ELSE run_id END,
                    status = coalesce(status, ?)
                WHERE tenant = ? AND id = ? AND owner = ?
                """,
                (
                    answer.body,
                    json.dumps(dict(answer.headers)),
                    answer.run_id,
                    answer.status,
                    tenant,
                    record_id,
                    owner,
                ),
            )
            _check_changed(changed, record_id)

        await self._database.write(work)

    async def release(self, record_id: str, *, tenant: str, owner: str) -> None:
        """Forget a claim whose request did nothing."""
        await self._database.write(
            lambda connection: connection.execute(
                """
                DELETE FROM idempotency
                WHERE tenant = ? AND id = ? AND owner = ? AND status IS NULL
                """,
                (tenant, record_id, owner),
            )
        )

    async def get(self, record_id: str, *, tenant: str, now: datetime) -> KeyRecord | None:
        """Return a record, or None if there is none or it has expired."""

        def work(connection: sqlite3.Connection) -> KeyRecord | None:
            row = connection.execute(
                "SELECT * FROM idempotency WHERE tenant = ? AND id = ? AND expires_at > ?",
                (tenant, record_id, codec.moment_to_int(now)),
            ).fetchone()
            return None if row is None else read(row)

        return await self._database.read(work)

    async def delete(self, record_id: str, *, tenant: str) -> None:
        """Remove a record, from the file's bytes too."""
        await self._database.erase(
            lambda connection: connection.execute(
                "DELETE FROM idempotency WHERE tenant = ? AND id = ?", (tenant, record_id)
            )
        )

    async def purge(self, now: datetime) -> int:
        """Remove expired records and return how many."""
        moment = codec.moment_to_int(now)

        def work(connection: sqlite3.Connection) -> int:
            expired = connection.execute("DELETE FROM idempotency WHERE expires_at <= ?", (moment,))
            return expired.rowcount

        return await self._database.write(work)


def read(row: sqlite3.Row) -> KeyRecord:
    """Make the record of a row."""
    return KeyRecord(
        id=row["id"],
        fingerprint=row["fingerprint"],
        owner=row["owner"],
        beat=row["beat"],
        plan=row["plan"],
        answer=None if row["status"] is None else _answer(row),
    )


def _answer(row: sqlite3.Row) -> StoredAnswer:
    return StoredAnswer(
        status=row["status"],
        headers=json.loads(row["headers"]),
        body=row["body"],
        run_id=row["run_id"],
    )


def _check_changed(changed: sqlite3.Cursor, record_id: str) -> None:
    if changed.rowcount == 0:
        raise LeaseLost(f"key record {record_id!r} has another owner, or is gone")
