"""Runs in the app store; a run is live until it has an `ended_at`."""

import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from ibid.adapters.records import codec
from ibid.adapters.sqlite import messages
from ibid.adapters.sqlite.conversations import find
from ibid.adapters.sqlite.database import Database
from ibid.domain.conversations import Message, Run, RunState
from ibid.domain.errors import LeaseLost, RunNotFound, ThreadBusy
from ibid.domain.events import Terminator
from ibid.domain.principals import Principal


class SqliteRuns:
    """Implements RunStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, run: Run, *, question: Message, title: str) -> None:
        """Keep a new run and the asker's message in one write, if the conversation is free."""

        def work(connection: sqlite3.Connection) -> None:
            find(connection, run.conversation_id, Principal(tenant=run.tenant, subject=run.subject))
            live = connection.execute(
                """
                SELECT id FROM runs
                WHERE tenant = ? AND conversation_id = ? AND ended_at IS NULL
                """,
                (run.tenant, run.conversation_id),
            ).fetchone()
            if live is not None:
                msg = f"run {live['id']!r} is under way on conversation {run.conversation_id!r}"
                raise ThreadBusy(msg, run_id=live["id"])
            connection.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    run.tenant,
                    run.id,
                    run.subject,
                    run.conversation_id,
                    run.project_id,
                    run.message_id,
                    run.state,
                    run.lease_owner,
                    run.beat,
                    codec.moment_to_int(run.created_at),
                    None,
                    0,
                    None,
                ),
            )
            messages.append(connection, question, tenant=run.tenant)
            connection.execute(
                "UPDATE conversations SET title = ? WHERE tenant = ? AND id = ? AND title IS NULL",
                (title, run.tenant, run.conversation_id),
            )

        await self._database.write(work)

    async def beat(self, run_id: str, *, tenant: str, owner: str, state: RunState) -> None:
        """Raise the run's counter and set its live state."""

        def work(connection: sqlite3.Connection) -> None:
            changed = connection.execute(
                """
                UPDATE runs SET beat = beat + 1, state = ?
                WHERE tenant = ? AND id = ? AND lease_owner = ? AND ended_at IS NULL
                """,
                (state, tenant, run_id, owner),
            )
            if changed.rowcount == 0:
                raise LeaseLost(f"run {run_id!r} has ended, or has another owner")

        await self._database.write(work)

    async def end(
        self,
        run_id: str,
        *,
        tenant: str,
        owner: str,
        state: RunState,
        terminator: Terminator,
        event_id: int,
        answer: Message | None,
        at: datetime,
    ) -> Run:
        """Keep the terminator and the assistant message in one write; the first end wins."""

        def work(connection: sqlite3.Connection) -> Run:
            run = _find(connection, tenant, run_id)
            if run is None:
                raise RunNotFound(f"no run {run_id!r}")
            if run.ended_at is not None:
                return run
            if run.lease_owner != owner:
                raise LeaseLost(f"run {run_id!r} has another owner")
            ended = replace(
                run, state=state, terminator=terminator, last_event_id=event_id, ended_at=at
            )
            _keep_end(connection, ended)
            if answer is not None:
                messages.append(connection, answer, tenant=tenant)
            return ended

        return await self._database.write(work)

    async def get(self, run_id: str, *, principal: Principal) -> Run:
        """Return one run."""

        def work(connection: sqlite3.Connection) -> Run:
            run = _find(connection, principal.tenant, run_id)
            if run is None or run.subject != principal.subject:
                raise RunNotFound(f"no run {run_id!r}")
            return run

        return await self._database.read(work)

    async def live(self) -> Mapping[tuple[str, str], int]:
        """Return the beat of every live run of every tenant, by (tenant, run id)."""

        def work(connection: sqlite3.Connection) -> Mapping[tuple[str, str], int]:
            rows = connection.execute("SELECT tenant, id, beat FROM runs WHERE ended_at IS NULL")
            return {(row["tenant"], row["id"]): row["beat"] for row in rows}

        return await self._database.read(work)

    async def end_dead(
        self,
        run_id: str,
        *,
        tenant: str,
        beat: int,
        terminator: Terminator,
        event_id: int,
        answer: Message,
        at: datetime,
    ) -> bool:
        """End a live run as `failed` if its counter still is `beat`; say if this call did."""

        def work(connection: sqlite3.Connection) -> bool:
            run = _find(connection, tenant, run_id)
            if run is None or run.ended_at is not None or run.beat != beat:
                return False
            ended = replace(
                run,
                state=RunState.FAILED,
                terminator=replace(terminator, message_id=run.message_id),
                last_event_id=event_id,
                ended_at=at,
            )
            _keep_end(connection, ended)
            kept = replace(
                answer,
                id=run.message_id,
                conversation_id=run.conversation_id,
                run_id=run.id,
            )
            messages.append(connection, kept, tenant=tenant)
            return True

        return await self._database.write(work)


def _keep_end(connection: sqlite3.Connection, run: Run) -> None:
    connection.execute(
        """
        UPDATE runs SET state = ?, terminator = ?, last_event_id = ?, ended_at = ?
        WHERE tenant = ? AND id = ?
        """,
        (
            run.state,
            codec.terminator_to_json(run.terminator),
            run.last_event_id,
            None if run.ended_at is None else codec.moment_to_int(run.ended_at),
            run.tenant,
            run.id,
        ),
    )


def _find(connection: sqlite3.Connection, tenant: str, run_id: str) -> Run | None:
    row = connection.execute(
        "SELECT * FROM runs WHERE tenant = ? AND id = ?", (tenant, run_id)
    ).fetchone()
    return None if row is None else _run(row)


def _run(row: sqlite3.Row) -> Run:
    return Run(
        tenant=row["tenant"],
        subject=row["subject"],
        id=row["id"],
        conversation_id=row["conversation_id"],
        project_id=row["project_id"],
        message_id=row["message_id"],
        state=RunState(row["state"]),
        lease_owner=row["lease_owner"],
        beat=row["beat"],
        created_at=codec.moment_from_int(row["created_at"]),
        ended_at=codec.optional_moment(row["ended_at"]),
        last_event_id=row["last_event_id"],
        terminator=codec.terminator_from_json(row["terminator"]),
    )
