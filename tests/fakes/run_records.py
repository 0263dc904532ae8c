"""Runs and their journals in memory."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from ibid.domain.conversations import LIVE_STATES, Message, Run, RunState
from ibid.domain.errors import (
    JournalExpired,
    LeaseLost,
    NothingPending,
    PauseExpired,
    PausePending,
    PauseResolved,
    RunNotFound,
    RunNumberTaken,
    ThreadBusy,
)
from ibid.domain.events import Entry, Paused, Terminator
from ibid.domain.pages import Page
from ibid.domain.principals import Principal
from ibid.ports.runs import Appended, Begun, Kept, PlaceLimits
from tests.fakes.rows import Journal, Key, Rows, page

_MAY_BE_RESUMED_AGAIN = {RunState.FAILED, RunState.CANCELLED, RunState.TIMED_OUT}


class FakeRuns:
    """Implements RunStore."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

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
        await asyncio.sleep(0)
        principal = Principal(tenant=run.tenant, subject=run.subject)
        conversation = self._rows.conversation(run.conversation_id, principal)
        self._check_number(run)
        live = self._live_before(run)
        if live and not behind:
            busy = min(live, key=lambda one: one.number)
            raise ThreadBusy(f"run {busy.id!r} is under way", run_id=busy.id)
        self._check_pause(run)
        has_place = not live and limits is not None and self._has_place(run, limits)
        if conversation.title is None:
            titled = replace(conversation, title=title)
            self._rows.conversations[run.tenant, run.conversation_id] = titled
        return self._keep(run, question, history, idempotency, has_place=has_place)

    async def admit(self, run: Run, *, limits: PlaceLimits) -> bool:
        await asyncio.sleep(0)
        kept = self._owned(run, None)
        if kept.state is RunState.RUNNING:
            return True
        if self._live_before(kept) or self._runs_now(kept):
            return False
        self._check_pause(kept)
        if not self._has_place(kept, limits):
            return False
        self._put(replace(kept, state=RunState.RUNNING))
        return True

    async def adopt(self, run: Run, *, beat: int, owner: str) -> Run:
        await asyncio.sleep(0)
        kept = self._owned(run, None)
        if kept.beat != beat or kept.state is not RunState.QUEUED:
            raise LeaseLost(f"run {run.id!r} has another counter, or runs")
        adopted = replace(kept, lease_owner=owner, beat=beat + 1)
        self._put(adopted)
        return adopted

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
        await asyncio.sleep(0)
        asked = self._mine(paused, Principal(tenant=run.tenant, subject=run.subject))
        if asked.state is RunState.EXPIRED:
            raise PauseExpired(f"the pause of run {asked.id!r} has expired")
        if asked.state is not RunState.PAUSED:
            raise NothingPending(f"run {asked.id!r} waits for no answer")
        if asked.resumed_by is not None:
            before = self._rows.runs[run.tenant, asked.resumed_by]
            newest = self._rows.conversations[run.tenant, run.conversation_id].runs_begun
            if (
                before.state not in _MAY_BE_RESUMED_AGAIN
                or before.number != newest
                or asked.decision != decision
            ):
                raise PauseResolved(
                    f"run {asked.id!r} was answered", run_id=before.id, state=before.state
                )
        self._check_number(run)
        self._put(replace(asked, resumed_by=run.id, decision=decision))
        has_place = not self._runs_now(run) and self._has_place(run, limits)
        return self._keep(run, question, history, idempotency, has_place=has_place)

    async def append(
        self, run: Run, *, beat: int, entries: Sequence[Entry], expires_at: datetime
    ) -> Appended:
        await asyncio.sleep(0)
        kept = self._owned(run, beat)
        last = self._extend(kept, entries, expires_at)
        kept = replace(kept, beat=beat + 1, last_event_id=last)
        self._put(kept)
        return Appended(beat=kept.beat, cancel_requested=kept.cancel_requested)

    async def is_cancelled(self, run: Run, *, beat: int) -> bool:
        await asyncio.sleep(0)
        return self._owned(run, beat).cancel_requested

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
        await asyncio.sleep(0)
        kept = self._rows.runs.get((run.tenant, run.id))
        if kept is None:
            raise RunNotFound(f"no run {run.id!r}")
        if kept.state not in LIVE_STATES:
            return kept
        kept = self._owned(run, beat)
        if event_id != self._extend(kept, entries, expires_at) + 1:
            raise ValueError("the terminator's id does not follow the last entry's")
        ended = replace(
            kept, state=state, terminator=terminator, last_event_id=event_id, ended_at=at
        )
        return self._end(ended, answer)

    async def request_cancel(self, run_id: str, *, principal: Principal) -> Run:
        await asyncio.sleep(0)
        run = self._mine(run_id, principal)
        if run.state in LIVE_STATES:
            run = replace(run, cancel_requested=True)
            self._put(run)
        return run

    async def get(self, run_id: str, *, principal: Principal) -> Run:
        await asyncio.sleep(0)
        return self._mine(run_id, principal)

    async def list_for(
        self, conversation_id: str, *, principal: Principal, cursor: str | None, limit: int
    ) -> Page[Run]:
        await asyncio.sleep(0)
        self._rows.conversation(conversation_id, principal)
        runs = self._rows.runs_of(principal.tenant, conversation_id)
        return page(
            sorted(runs, key=lambda run: run.number, reverse=True),
            lambda run: run.number,
            scope=("runs", principal.tenant, principal.subject, conversation_id),
            cursor=cursor,
            limit=limit,
        )

    async def entries(self, run: Run, *, after: int, limit: int = 2_000) -> Kept:
        await asyncio.sleep(0)
        kept = self._rows.runs.get((run.tenant, run.id))
        if kept is None:
            raise RunNotFound(f"no run {run.id!r}")
        journal = self._rows.journals[run.tenant, run.id].entries
        if journal is None:
            raise JournalExpired(f"the journal of run {run.id!r} is gone")
        entries = list(journal)
        if kept.terminator is not None:
            entries.append(Entry(id=kept.last_event_id, event=kept.terminator))
        rest = [entry for entry in entries if entry.id > after]
        return Kept(entries=rest[:limit], run=kept, has_more=len(rest) > limit)

    async def live(self) -> Mapping[Key, int]:
        await asyncio.sleep(0)
        return {key: run.beat for key, run in self._rows.runs.items() if run.state in LIVE_STATES}

    async def read_dead(self, run_id: str, *, tenant: str) -> Run | None:
        await asyncio.sleep(0)
        return self._rows.runs.get((tenant, run_id))

    async def try_write(self, run_id: str, *, tenant: str) -> None:
        self._rows.runs.get((tenant, run_id))
        await asyncio.sleep(0)

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
        await asyncio.sleep(0)
        kept = self._rows.runs.get((run.tenant, run.id))
        if kept is None or kept.state not in LIVE_STATES or kept.beat != run.beat:
            return False
        self._extend(kept, (), expires_at)
        ended = replace(
            kept,
            state=RunState.FAILED,
            terminator=terminator,
            last_event_id=event_id,
            ended_at=at,
        )
        self._end(ended, answer)
        return True

    async def due_pauses(self, now: datetime, *, limit: int = 100) -> Sequence[Run]:
        await asyncio.sleep(0)
        due = [
            run
            for run in self._rows.runs.values()
            if _is_pending(run)
            and isinstance(run.terminator, Paused)
            and run.terminator.expires_at <= now
        ]
        return due[:limit]

    async def expire(self, run: Run) -> bool:
        await asyncio.sleep(0)
        kept = self._rows.runs.get((run.tenant, run.id))
        if kept is None:
            return False
        if _is_pending(kept):
            kept = replace(kept, state=RunState.EXPIRED)
            self._put(kept)
        return kept.state is RunState.EXPIRED

    async def purge(self, now: datetime, *, limit: int = 1_000) -> int:
        await asyncio.sleep(0)
        due = [
            journal
            for key, journal in self._rows.journals.items()
            if journal.entries is not None
            and journal.expires_at is not None
            and journal.expires_at <= now
            and self._rows.runs[key].state not in LIVE_STATES
        ][:limit]
        for journal in due:
            journal.entries = None
        return len(due)

    def _put(self, run: Run) -> None:
        self._rows.runs[run.tenant, run.id] = run

    def _mine(self, run_id: str, principal: Principal) -> Run:
        run = self._rows.runs.get((principal.tenant, run_id))
        if run is None or run.subject != principal.subject:
            raise RunNotFound(f"no run {run_id!r}")
        return run

    def _owned(self, run: Run, beat: int | None) -> Run:
        """The live run as it is kept; `beat` may be one behind: a write whose answer was lost."""
        kept = self._rows.runs.get((run.tenant, run.id))
        if (
            kept is None
            or kept.state not in LIVE_STATES
            or kept.lease_owner != run.lease_owner
            or (beat is not None and kept.beat - beat not in {0, 1})
        ):
            raise LeaseLost(f"run {run.id!r} has ended, or has another owner")
        return kept

    def _check_number(self, run: Run) -> None:
        newest = self._rows.conversations[run.tenant, run.conversation_id].runs_begun
        if run.number != newest + 1:
            raise RunNumberTaken(f"the newest run of {run.conversation_id!r} is {newest}")

    def _check_pause(self, run: Run) -> None:
        for other in self._rows.runs_of(run.tenant, run.conversation_id):
            if _is_pending(other) and isinstance(other.terminator, Paused):
                raise PausePending(
                    f"run {other.id!r} waits for an answer",
                    run_id=other.id,
                    interrupt_id=other.terminator.interrupt_id,
                )

    def _live_before(self, run: Run) -> Sequence[Run]:
        return [
            other
            for other in self._rows.runs_of(run.tenant, run.conversation_id)
            if other.state in LIVE_STATES and other.number < run.number
        ]

    def _runs_now(self, run: Run) -> bool:
        others = self._rows.runs_of(run.tenant, run.conversation_id)
        return any(other.state is RunState.RUNNING for other in others)

    def _has_place(self, run: Run, limits: PlaceLimits) -> bool:
        running = [
            other.subject
            for other in self._rows.runs.values()
            if other.state is RunState.RUNNING and other.tenant == run.tenant
        ]
        return len(running) < limits.tenant and running.count(run.subject) < limits.subject

    def _keep(
        self,
        run: Run,
        question: Message,
        history: int,
        idempotency: str | None,
        *,
        has_place: bool,
    ) -> Begun:
        place = (run.tenant, run.conversation_id)
        conversation = self._rows.conversations[place]
        self._rows.conversations[place] = replace(conversation, runs_begun=run.number)
        kept = replace(run, state=RunState.RUNNING if has_place else RunState.QUEUED)
        self._put(kept)
        self._rows.journals[run.tenant, run.id] = Journal()
        before = self._rows.messages.setdefault(place, [])
        begun = Begun(run=kept, messages=before[len(before) - min(history, len(before)) :])
        before.append(question)
        self._rows.bind_key(idempotency, *place)
        return begun

    def _extend(self, kept: Run, entries: Sequence[Entry], expires_at: datetime) -> int:
        """Keep what is new of the entries, and return the last id that is kept then."""
        new = [entry for entry in entries if entry.id > kept.last_event_id]
        last = kept.last_event_id + len(new)
        if [entry.id for entry in new] != list(range(kept.last_event_id + 1, last + 1)):
            raise ValueError("the ids do not follow the last one that is kept")
        journal = self._rows.journals[kept.tenant, kept.id]
        assert journal.entries is not None
        journal.entries.extend(new)
        journal.expires_at = expires_at
        return last

    def _end(self, ended: Run, answer: Message) -> Run:
        self._put(ended)
        self._rows.messages[ended.tenant, ended.conversation_id].append(answer)
        return ended


def _is_pending(run: Run) -> bool:
    return run.state is RunState.PAUSED and run.resumed_by is None
