"""Runs in the app table."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.adoptions import Adoptions
from ibid.adapters.dynamodb.records.conversations import find
from ibid.adapters.dynamodb.records.ends import End, Ends
from ibid.adapters.dynamodb.records.expiry import TOMBSTONE, Expiry
from ibid.adapters.dynamodb.records.following import Following
from ibid.adapters.dynamodb.records.journal import Journals, partition_of
from ibid.adapters.dynamodb.records.places import Places
from ibid.adapters.dynamodb.records.resumptions import Resumptions
from ibid.adapters.dynamodb.records.run_rows import (
    LIVE,
    RunRows,
    is_live,
    is_pending,
    is_run,
)
from ibid.adapters.dynamodb.records.start import Start
from ibid.adapters.dynamodb.records.starts import Starts
from ibid.adapters.dynamodb.records.table import ConditionFailed, Table
from ibid.adapters.dynamodb.records.wire import Item
from ibid.adapters.dynamodb.records.writes import Write
from ibid.adapters.dynamodb.tables import DUE, PAUSE, PAUSED_RUNS
from ibid.adapters.records import codec, cursors
from ibid.domain.conversations import Message, Run, RunState, parse_run_id
from ibid.domain.errors import LeaseLost, RunNotFound
from ibid.domain.events import Entry, Terminator
from ibid.domain.pages import Page
from ibid.domain.principals import Principal
from ibid.ports.runs import Appended, Begun, Kept, PlaceLimits

_AT_ONCE = 4  # counters read at the same time; the other threads are for runs that live


class DynamoRuns:
    """Implements RunStore."""

    def __init__(
        self,
        table: Table,
        *,
        journals: Journals,
        places: Places,
        starts: Starts,
        resumptions: Resumptions,
        adoptions: Adoptions,
        ends: Ends,
        expiry: Expiry,
    ) -> None:
        self._table = table
        self._journals = journals
        self._places = places
        self._starts = starts
        self._resumptions = resumptions
        self._adoptions = adoptions
        self._ends = ends
        self._expiry = expiry
        self._following = Following(table, journals, expiry)

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
        start = Start(
            run=run, question=question, limits=limits, history=history, idempotency=idempotency
        )
        return await self._table.run(lambda: self._starts.begin(start, title=title, behind=behind))

    async def admit(self, run: Run, *, limits: PlaceLimits) -> bool:
        """Make a queued run `running` if there is a place and nothing before it on its thread."""
        return await self._table.run(lambda: self._starts.admit(run, limits))

    async def adopt(self, run: Run, *, beat: int, owner: str) -> Run:
        """Give a queued run that nobody works on to a process, and move its counter."""
        return await self._table.run(lambda: self._adoptions.adopt(run, beat=beat, owner=owner))

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
        """Keep the run that resumes a paused one, which from then on carries `resumed_by`."""
        start = Start(
            run=run, question=question, limits=limits, history=history, idempotency=idempotency
        )
        return await self._table.run(
            lambda: self._resumptions.resume(start, paused=paused, decision=decision)
        )

    async def append(
        self, run: Run, *, beat: int, entries: Sequence[Entry], expires_at: datetime
    ) -> Appended:
        """Keep the next entries of the journal and move the counter; none only moves it."""
        return await self._table.run(
            lambda: self._journals.append(run, beat=beat, entries=entries, expires_at=expires_at)
        )

    async def is_cancelled(self, run: Run, *, beat: int) -> bool:  # noqa: ARG002 - the row tells
        """Tell if somebody asked to stop the run."""
        row = await self._table.run(lambda: self._row(run.tenant, run.id))
        if row is None or not is_live(row) or row["owner"] != run.lease_owner:
            raise LeaseLost(f"run {run.id!r} has ended, or has another owner")
        return "cancel" in row

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
        """Keep the last entries, the terminator and the assistant message in one write."""
        end = End(
            state=state,
            terminator=terminator,
            event_id=event_id,
            answer=answer,
            at=at,
            expires_at=expires_at,
        )
        return await self._table.run(lambda: self._ends.end(run, end, beat=beat, entries=entries))

    async def request_cancel(self, run_id: str, *, principal: Principal) -> Run:
        """Ask the owner of a live run to stop."""

        def work() -> Run:
            try:
                row, rows = self._mine(run_id, principal)
            except RunNotFound:
                unbegun = self._ends.unbegun(run_id, principal.tenant)
                if unbegun is None or unbegun.subject != principal.subject:
                    raise
                return unbegun  # who waits for its end watches it
            if not is_live(row):
                return rows.run(row)
            write = Write(
                key=(row["pk"], row["sk"]),
                update="SET #cancel = :true",
                condition=LIVE,
                values={"true": True},
            )
            try:
                row = self._table.write(write)
            except ConditionFailed as error:
                if not is_run(error.item):
                    raise _missing(run_id) from error
                return rows.run(error.item or row)
            run = rows.run(row)
            expires = self._expiry.after(TOMBSTONE)
            self._journals.mark(partition_of(run), "cancel", expires=expires)
            return self._journals.complete(run)

        return await self._table.run(work)

    async def get(self, run_id: str, *, principal: Principal) -> Run:
        """Return one run."""

        def work() -> Run:
            row, rows = self._mine(run_id, principal)
            run = rows.run(row)
            return self._journals.complete(run) if is_live(row) else run

        return await self._table.run(work)

    async def list_for(
        self, conversation_id: str, *, principal: Principal, cursor: str | None, limit: int
    ) -> Page[Run]:
        """List a conversation's runs, newest first."""
        scope = ("runs", principal.tenant, principal.subject, conversation_id)

        def work() -> Page[Run]:
            find(self._table, conversation_id, principal)
            below = None
            if cursor is not None:
                (position,) = cursors.decode(cursor, int, scope=scope)
                _, below = keys.run(principal.tenant, conversation_id, max(int(position), 0))
            partition, _ = keys.conversation(principal.tenant, conversation_id)
            query = self._table.query(
                partition, prefix=keys.RUNS, below=below, newest_first=True, page=limit + 1
            )
            found = list(islice((row for row in query if is_run(row)), limit + 1))
            rows = RunRows(self._table, principal.tenant, conversation_id)
            runs = [
                self._journals.complete(rows.run(row)) if is_live(row) else rows.run(row)
                for row in found[:limit]
            ]
            more = len(found) > limit
            return Page(
                items=runs,
                next_cursor=cursors.encode(runs[-1].number, scope=scope) if more else None,
            )

        return await self._table.run(work)

    async def entries(self, run: Run, *, after: int, limit: int = 2_000) -> Kept:
        """Return the entries of a run with ids above `after`, in order."""
        return await self._table.run(lambda: self._following.entries(run, after=after, limit=limit))

    async def live(self) -> Mapping[tuple[str, str], int]:
        """Return the counter of every live run of every tenant, by (tenant, run id)."""
        places = {
            (tenant, run_id): place
            for tenant, run_id in await self._table.run(lambda: list(self._places.all()))
            if (place := parse_run_id(run_id)) is not None
        }
        beats: dict[tuple[str, str], int] = {}
        names = list(places)
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            found = await asyncio.gather(*(self._beat(name[0], *places[name]) for name in some))
            beats.update(zip(some, found, strict=True))
        return beats

    async def _beat(self, tenant: str, conversation_id: str, number: int) -> int:
        key = keys.journal(tenant, conversation_id, number)
        return await self._table.run(lambda: self._journals.beat(key))

    async def read_dead(self, run_id: str, *, tenant: str) -> Run | None:
        """Return a run of any subject, for who ends it; None if it is gone."""
        return await self._table.run(lambda: self._ends.read_dead(run_id, tenant))

    async def try_write(self, run_id: str, *, tenant: str) -> None:
        """Write to the run's journal on a condition that never holds."""
        place = parse_run_id(run_id)
        if place is not None:
            key = (keys.journal(tenant, *place), keys.slot(0))
            await self._table.run(lambda: self._table.try_write(key))

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
        """End a live run as `failed` if its counter still is `run.beat`."""
        end = End(
            state=RunState.FAILED,
            terminator=terminator,
            event_id=event_id,
            answer=answer,
            at=at,
            expires_at=expires_at,
        )
        return await self._table.run(lambda: self._ends.end_dead(run, end))

    async def due_pauses(self, now: datetime, *, limit: int = 100) -> Sequence[Run]:
        """Return paused runs of every tenant whose time is over."""

        def work() -> Sequence[Run]:
            until = keys.moment(codec.moment_to_int(now))
            due = self._table.keys_due(PAUSED_RUNS, (PAUSE, DUE), keys.PAUSES, until)
            found = self._table.get_many(list(islice(due, limit)))
            return [self._of_any(row) for row in found.values() if is_run(row) and is_pending(row)]

        return await self._table.run(work)

    async def expire(self, run: Run) -> bool:
        """Make a paused run `expired` unless it was resumed; say if it is expired now."""
        return await self._table.run(lambda: self._ends.expire(run))

    async def purge(self, now: datetime, *, limit: int = 1_000) -> int:  # noqa: ARG002 - as the port says
        """Leave it to DynamoDB, which removes what has expired."""
        return 0

    def _row(self, tenant: str, run_id: str) -> Item | None:
        place = parse_run_id(run_id)
        row = None if place is None else self._table.get(keys.run(tenant, *place))
        return row if is_run(row) else None

    def _mine(self, run_id: str, principal: Principal) -> tuple[Item, RunRows]:
        place = parse_run_id(run_id)
        row = self._row(principal.tenant, run_id)
        if place is None or row is None or row["subject"] != principal.subject:
            raise _missing(run_id)
        return row, RunRows(self._table, principal.tenant, place[0])

    def _of_any(self, row: Item) -> Run:
        return RunRows(self._table, row["tenant"], row["thread"]).run(row)


def _missing(run_id: str) -> RunNotFound:
    return RunNotFound(f"no run {run_id!r}")
