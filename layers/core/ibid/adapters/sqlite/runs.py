"""Runs, their journals and their pauses in the app store."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from ibid.adapters.records import codec, cursors
from ibid.adapters.sqlite import messages, run_journal, run_rows, run_starts
from ibid.adapters.sqlite.conversations import find as find_conversation
from ibid.adapters.sqlite.database import Database
from ibid.domain.conversations import Message, Run, RunState
from ibid.domain.errors import RunNotFound
from ibid.domain.events import Entry, Terminator
from ibid.domain.pages import Page
from ibid.domain.principals import Principal
from ibid.ports.runs import Appended, Begun, Kept, PlaceLimits


class SqliteRuns:
    """Implements RunStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(
        self,
        run: Run,
        *,
        question: Message,
        title: str,
        limits: PlaceLimits | None,
        behind: bool = False,
        history: int = 0,
        idempotency: str | None = None,
    ) -> Begun:
        """Keep a new run and the asker's message, if the conversation is free."""
        return await self._database.write(
            lambda connection: run_starts.begin(
                connection,
                run,
                question=question,
                title=title,
                limits=limits,
                behind=behind,
                history=history,
                idempotency=idempotency,
            )
        )

    async def admit(self, run: Run, *, limits: PlaceLimits) -> bool:
        """Make a queued run `running` if there is a place and no live run before it."""
        return await self._database.write(
            lambda connection: run_starts.admit(connection, run, limits)
        )

    async def adopt(self, run: Run, *, beat: int, owner: str) -> Run:
        """Give a queued run that nobody works on to a process, and move its counter."""
        return await self._database.write(
            lambda connection: run_starts.adopt(connection, run, beat=beat, owner=owner)
        )

    async def resume(
        self,
        run: Run,
        *,
        paused: str,
        decision: str,
        question: Message,
        limits: PlaceLimits,
        history: int = 0,
        idempotency: str | None = None,
    ) -> Begun:
        """Keep the run that resumes a paused one, which then carries `resumed_by`."""
        return await self._database.write(
            lambda connection: run_starts.resume(
                connection,
                run,
                paused=paused,
                decision=decision,
                question=question,
                limits=limits,
                history=history,
                idempotency=idempotency,
            )
        )

    async def append(
        self, run: Run, *, beat: int, entries: Sequence[Entry], expires_at: datetime
    ) -> Appended:
        """Keep the next entries of the journal and move the counter; none only moves it."""

        def work(connection: sqlite3.Connection) -> Appended:
            kept = run_rows.find_owned(connection, run, beat=beat)
            last = run_journal.extend(connection, kept, entries, expires_at)
            connection.execute(
                "UPDATE runs SET beat = ?, last_event_id = ? WHERE tenant = ? AND id = ?",
                (beat + 1, last, run.tenant, run.id),
            )
            return Appended(beat=beat + 1, cancel_requested=kept.cancel_requested)

        return await self._database.write(work)

    async def is_cancelled(self, run: Run, *, beat: int) -> bool:
        """Tell if somebody asked to stop the run, by a read alone."""
        return await self._database.read(
            lambda connection: run_rows.find_owned(connection, run, beat=beat).cancel_requested
        )

    async def end(
        self,
        run: Run,
        *,
        beat: int,
        state: RunState,
        terminator: Terminator,
        entries: Sequence[Entry],
        event_id: int,
        answer: Message,
        at: datetime,
        expires_at: datetime,
    ) -> Run:
        """Keep the last entries, the terminator and the answer; the first end wins."""

        def work(connection: sqlite3.Connection) -> Run:
            kept = run_rows.find(connection, run.tenant, run.id)
            if kept is None:
                raise RunNotFound(f"no run {run.id!r}")
            if kept.ended_at is not None:
                return kept
            kept = run_rows.find_owned(connection, run, beat=beat)
            last = run_journal.extend(connection, kept, entries, expires_at)
            if event_id != last + 1:
                raise ValueError(f"the terminator has id {event_id}, not {last + 1}")
            ended = replace(
                kept, state=state, terminator=terminator, last_event_id=event_id, ended_at=at
            )
            run_rows.update_end(connection, ended)
            messages.append(connection, answer, tenant=run.tenant)
            return ended

        return await self._database.write(work)

    async def request_cancel(self, run_id: str, *, principal: Principal) -> Run:
        """Ask the owner of a live run to stop."""

        def work(connection: sqlite3.Connection) -> Run:
            connection.execute(
                """
                UPDATE runs SET cancel_requested = 1
                WHERE tenant = ? AND subject = ? AND id = ? AND ended_at IS NULL
                """,
                (principal.tenant, principal.subject, run_id),
            )
            return run_rows.find_mine(connection, run_id, principal)

        return await self._database.write(work)

    async def get(self, run_id: str, *, principal: Principal) -> Run:
        """Return one run."""
        return await self._database.read(
            lambda connection: run_rows.find_mine(connection, run_id, principal)
        )

    async def list_for(
        self, conversation_id: str, *, principal: Principal, cursor: str | None, limit: int
    ) -> Page[Run]:
        """List a conversation's runs, newest first."""
        scope = ("runs", principal.tenant, principal.subject, conversation_id)
        start = None if cursor is None else cursors.decode(cursor, int, scope=scope)

        def work(connection: sqlite3.Connection) -> Sequence[Run]:
            newest = find_conversation(connection, conversation_id, principal).runs_begun
            rows = connection.execute(
                """
                SELECT * FROM runs WHERE tenant = ? AND conversation_id = ? AND number < ?
                ORDER BY number DESC LIMIT ?
                """,
                (
                    principal.tenant,
                    conversation_id,
                    *([newest + 1] if start is None else start),
                    limit + 1,
                ),
            )
            return [run_rows.read(row) for row in rows]

        found = await self._database.read(work)
        if len(found) <= limit:
            return Page(items=found, next_cursor=None)
        position = cursors.encode(found[limit - 1].number, scope=scope)
        return Page(items=found[:limit], next_cursor=position)

    async def entries(self, run: Run, *, after: int, limit: int = 2_000) -> Kept:
        """Return the entries of a run with ids above `after`, in order."""
        return await self._database.read(
            lambda connection: run_journal.read(connection, run, after=after, limit=limit)
        )

    async def live(self) -> Mapping[tuple[str, str], int]:
        """Return the counter of every live run of every tenant, by (tenant, run id)."""

        def work(connection: sqlite3.Connection) -> Mapping[tuple[str, str], int]:
            rows = connection.execute("SELECT tenant, id, beat FROM runs WHERE ended_at IS NULL")
            return {(row["tenant"], row["id"]): row["beat"] for row in rows}

        return await self._database.read(work)

    async def read_dead(self, run_id: str, *, tenant: str) -> Run | None:
        """Return a run of any subject, for who ends it; None if it is gone."""
        return await self._database.read(
            lambda connection: run_rows.find(connection, tenant, run_id)
        )

    async def try_write(self, run_id: str, *, tenant: str) -> None:
        """Write on a condition that never holds; it takes the one lock of all who write."""
        await self._database.write(
            lambda connection: connection.execute(
                "UPDATE runs SET beat = beat WHERE tenant = ? AND id = ? AND beat IS NULL",
                (tenant, run_id),
            )
        )

    async def end_dead(
        self,
        run: Run,
        *,
        terminator: Terminator,
        event_id: int,
        answer: Message,
        at: datetime,
        expires_at: datetime,
    ) -> bool:
        """End a live run as `failed` if its counter still is `run.beat`; say if this call did."""

        def work(connection: sqlite3.Connection) -> bool:
            kept = run_rows.find(connection, run.tenant, run.id)
            if kept is None or kept.ended_at is not None or kept.beat != run.beat:
                return False
            run_journal.extend(connection, kept, (), expires_at)
            ended = replace(
                kept,
                state=RunState.FAILED,
                terminator=terminator,
                last_event_id=event_id,
                ended_at=at,
            )
            run_rows.update_end(connection, ended)
            messages.append(connection, answer, tenant=run.tenant)
            return True

        return await self._database.write(work)

    async def due_pauses(self, now: datetime, *, limit: int = 100) -> Sequence[Run]:
        """Return paused runs of every tenant whose time is over, the longest over first."""

        def work(connection: sqlite3.Connection) -> Sequence[Run]:
            rows = connection.execute(
                """
                SELECT * FROM runs
                WHERE state = 'paused' AND resumed_by IS NULL AND pause_expires_at <= ?
                ORDER BY pause_expires_at LIMIT ?
                """,
                (codec.moment_to_int(now), limit),
            )
            return [run_rows.read(row) for row in rows]

        return await self._database.read(work)

    async def expire(self, run: Run) -> bool:
        """Make a paused run `expired` unless it was resumed; say if it is expired now."""

        def work(connection: sqlite3.Connection) -> bool:
            connection.execute(
                """
                UPDATE runs SET state = 'expired'
                WHERE tenant = ? AND id = ? AND state = 'paused' AND resumed_by IS NULL
                """,
                (run.tenant, run.id),
            )
            kept = run_rows.find(connection, run.tenant, run.id)
            return kept is not None and kept.state is RunState.EXPIRED

        return await self._database.write(work)

    async def purge(self, now: datetime, *, limit: int = 1_000) -> int:
        """Remove the journals whose retention is over; return how many."""
        return await self._database.write(
            lambda connection: run_journal.purge(connection, now, limit=limit)
        )
