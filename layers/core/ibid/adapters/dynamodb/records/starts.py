"""How a run begins, is admitted, and resumes a paused one.

A run begins with three writes: its place among the tenant's live runs, its number in the
conversation, its row. Who finds a place without a row, and sees it not change for a term, puts a
`void` row there, at which the slow owner's own row fails.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.memory import Known, Memory
from ibid.adapters.dynamodb.records.places import Places
from ibid.adapters.dynamodb.records.run_rows import (
    OWNED,
    attributes_of,
    is_live,
    is_run,
    number_of,
)
from ibid.adapters.dynamodb.records.table import ConditionFailed, Table, Write
from ibid.adapters.dynamodb.records.threads import THERE, Standing, Thread
from ibid.adapters.dynamodb.records.wire import Item
from ibid.domain.conversations import Message, Run, RunState, parse_run_id, run_id
from ibid.domain.errors import (
    ConversationNotFound,
    LeaseLost,
    NothingPending,
    PauseExpired,
    PausePending,
    PauseResolved,
    RunNotFound,
    RunNumberTaken,
    ThreadBusy,
)
from ibid.domain.principals import Principal
from ibid.ports.runs import Begun, PlaceLimits

_MAY_BE_RESUMED_AGAIN = {RunState.FAILED, RunState.CANCELLED, RunState.TIMED_OUT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a new run is kept with; the fields are those of RunStore.begin."""

    run: Run
    question: Message
    limits: PlaceLimits | None
    history: int
    idempotency: str | None

    @property
    def principal(self) -> Principal:
        """Who asks."""
        return Principal(tenant=self.run.tenant, subject=self.run.subject)

    def put(self, *, is_running: bool, clear: bool) -> Write:
        """Return the write of the run's row."""
        run = self.kept(is_running=is_running)
        return Write(
            key=keys.run(run.tenant, run.conversation_id, run.number),
            item=attributes_of(run, self.question, clear=clear, idempotency=self.idempotency),
            condition="attribute_not_exists(#pk)",
        )

    def kept(self, *, is_running: bool) -> Run:
        """Return the run as it is kept."""
        state = RunState.RUNNING if is_running else RunState.QUEUED
        return replace(self.run, state=state, beat=0, last_event_id=0)


class Starts:
    """The beginnings of runs."""

    def __init__(self, table: Table, places: Places, memory: Memory) -> None:
        self._table = table
        self._places = places
        self._memory = memory

    def begin(self, start: Start, *, title: str, behind: bool) -> Begun:
        """Do as RunStore.begin says."""
        run = start.run
        thread = self._thread(start)
        standing = thread.standing()
        if standing.live and not behind:
            busy = run_id(run.conversation_id, standing.live[0])
            raise ThreadBusy(f"run {busy!r} is under way", run_id=busy)
        _check_pause(run, standing)
        messages = thread.latest_messages(start.history)
        is_running = not standing.live and self._places.take(run, start.limits)
        if standing.live:
            self._places.wait(run)
        try:
            self._take_number(run, title)
            self._put(start.put(is_running=is_running, clear=not standing.live), run)
        except (ConversationNotFound, RunNumberTaken):
            self._places.free(run)
            raise
        return self._begun(start, messages, is_running=is_running)

    def admit(self, run: Run, limits: PlaceLimits) -> bool:
        """Do as RunStore.admit says."""
        thread = Thread(self._table, run.tenant, run.conversation_id)
        row = next((row for row in thread.newest_first() if number_of(row) <= run.number), None)
        if thread.facts is None or row is None or not _is_owned(row, run):
            raise LeaseLost(f"run {run.id!r} has ended, or has another owner")
        if row["state"] == RunState.RUNNING:
            return True
        standing = thread.standing()
        if standing.running or standing.live[0] < run.number:
            return False
        _check_pause(run, standing)
        if not self._places.promote(run, limits):
            return False
        try:
            self._table.transact(*_admission(run, thread.facts))
        except ConditionFailed as error:
            if _is_owned(error.items.get(1, row), run):
                self._places.demote(run)  # another run of the thread was begun or admitted
                return False
            self._places.free(run)
            raise LeaseLost(f"run {run.id!r} has ended, or has another owner") from error
        return True

    def resume(self, start: Start, *, paused: str, decision: str) -> Begun:
        """Do as RunStore.resume says."""
        run = start.run
        while True:
            asked = self._paused(start, paused)
            before = self._check_unresolved(run, paused, asked, decision)
            try:
                thread = self._thread(start)
            except ConversationNotFound as error:
                raise RunNotFound(f"no run {paused!r}") from error
            standing = thread.standing()
            messages = thread.latest_messages(start.history)
            if before is not None and before != run.number - 1:
                continue  # begun meanwhile; the next look tells by whom
            is_running = not standing.running and self._places.take(run, start.limits)
            if standing.running:
                self._places.wait(run)
            try:
                self._table.transact(
                    _next_number(run, thread.facts or {}),
                    _resolution(run, asked, decision),
                    start.put(is_running=is_running, clear=not standing.live),
                )
            except ConditionFailed as error:
                self._places.free(run)
                if 2 in error.items:  # noqa: PLR2004 - the run's row
                    self._pass_over(run)
                continue
            return self._begun(start, messages, is_running=is_running)

    def _thread(self, start: Start) -> Thread:
        """Read the thread that a run is to be begun on.

        Raises:
            ConversationNotFound: The run's principal has none.
            RunNumberTaken: The run's number is not the next one.
        """
        run = start.run
        thread = Thread(self._table, run.tenant, run.conversation_id)
        facts = thread.check(run.conversation_id, start.principal)
        if facts["runs"] != run.number - 1:
            raise _taken(run)
        return thread

    def _take_number(self, run: Run, title: str) -> None:
        try:
            self._table.write(
                Write(
                    key=keys.conversation(run.tenant, run.conversation_id),
                    update="SET #runs = :number, #claim = :claim,"
                    " #title = if_not_exists(#title, :title)",
                    condition=THERE + " AND #runs = :before",
                    values={
                        "number": run.number,
                        "before": run.number - 1,
                        "claim": run.message_id,
                        "title": title,
                        "subject": run.subject,
                    },
                )
            )
        except ConditionFailed as error:
            there = error.item
            if there is None or "gone" in there:
                msg = f"no conversation {run.conversation_id!r}"
                raise ConversationNotFound(msg) from error
            if (there["runs"], there.get("claim")) != (run.number, run.message_id):
                raise _taken(run) from error
            # else the reply to an earlier try was lost

    def _put(self, write: Write, run: Run) -> None:
        try:
            self._table.write(write)
        except ConditionFailed as error:
            there = error.item or {}
            if "gone" in there:
                msg = f"no conversation {run.conversation_id!r}"
                raise ConversationNotFound(msg) from error
            if there.get("message") != run.message_id:
                raise _taken(run) from error
            # else the reply to an earlier try was lost

    def _pass_over(self, run: Run) -> None:
        """Count a number that a `void` row has taken as begun."""
        with contextlib.suppress(ConditionFailed):
            self._table.write(
                Write(
                    key=keys.conversation(run.tenant, run.conversation_id),
                    update="SET #runs = :number",
                    condition=THERE + " AND #runs = :before",
                    values={
                        "subject": run.subject,
                        "number": run.number,
                        "before": run.number - 1,
                    },
                )
            )

    def _begun(self, start: Start, messages: Sequence[Message], *, is_running: bool) -> Begun:
        run = start.kept(is_running=is_running)
        self._memory.keep(run, Known(owner=run.lease_owner))
        return Begun(run=run, messages=messages)

    def _paused(self, start: Start, paused: str) -> Item:
        """Return the row of a paused run of the principal's on the run's thread."""
        run, place = start.run, parse_run_id(paused)
        row: Item | None = None
        if place is not None and place[0] == run.conversation_id:
            row = self._table.get(keys.run(run.tenant, *place))
        if row is None or not is_run(row) or row["subject"] != run.subject:
            raise RunNotFound(f"no run {paused!r}")
        if row["state"] == RunState.EXPIRED:
            raise PauseExpired(f"the pause of run {paused!r} has expired")
        if row["state"] != RunState.PAUSED:
            raise NothingPending(f"run {paused!r} waits for no answer")
        return row

    def _check_unresolved(self, run: Run, paused: str, asked: Item, decision: str) -> int | None:
        """Return the number of the run that resumed a paused one and may be resumed again.

        Raises:
            PauseResolved: Another one goes on, or has come to an end that stays.
        """
        if "resumed" not in asked:
            return None
        place = parse_run_id(asked["resumed"])
        before = None if place is None else self._table.get(keys.run(run.tenant, *place))
        if place is None or before is None or not is_run(before):
            raise RunNotFound(f"no run {paused!r}")  # its conversation is being deleted
        facts = self._table.get(keys.conversation(run.tenant, run.conversation_id)) or {}
        if (
            before["state"] not in _MAY_BE_RESUMED_AGAIN
            or facts.get("runs") != place[1]
            or asked["decision"] != decision
        ):
            raise PauseResolved(
                f"run {paused!r} was answered", run_id=asked["resumed"], state=before["state"]
            )
        return place[1]


def _is_owned(row: Item | None, run: Run) -> bool:
    return (
        row is not None
        and is_run(row)
        and is_live(row)
        and number_of(row) == run.number
        and row["owner"] == run.lease_owner
    )


def _check_pause(run: Run, standing: Standing) -> None:
    row = standing.pending
    if row is not None:
        name = run_id(run.conversation_id, number_of(row))
        raise PausePending(
            f"run {name!r} waits for an answer", run_id=name, interrupt_id=row["interrupt"]
        )


def _admission(run: Run, facts: Item) -> Sequence[Write]:
    """Make a run run, if nothing was begun or admitted on the thread since it was read."""
    return (
        Write(
            key=keys.conversation(run.tenant, run.conversation_id),
            update="SET #admitted = :next",
            condition=f"{THERE} AND #runs = :runs AND {_as_admitted(facts)}",
            values={
                "subject": run.subject,
                "runs": facts["runs"],
                "next": facts.get("admitted", 0) + 1,
                **_admissions(facts),
            },
        ),
        Write(
            key=keys.run(run.tenant, run.conversation_id, run.number),
            update="SET #state = :running",
            condition=OWNED,
            values={"running": RunState.RUNNING, "owner": run.lease_owner},
        ),
    )


def _next_number(run: Run, facts: Item) -> Write:
    return Write(
        key=keys.conversation(run.tenant, run.conversation_id),
        update="SET #runs = :number, #claim = :claim",
        condition=f"{THERE} AND #runs = :before AND {_as_admitted(facts)}",
        values={
            "subject": run.subject,
            "number": run.number,
            "before": run.number - 1,
            "claim": run.message_id,
            **_admissions(facts),
        },
    )


def _as_admitted(facts: Item) -> str:
    """Return the condition that no run was admitted since the conversation was read."""
    return "#admitted = :admitted" if "admitted" in facts else "attribute_not_exists(#admitted)"


def _admissions(facts: Item) -> Mapping[str, int]:
    return {"admitted": facts["admitted"]} if "admitted" in facts else {}


def _resolution(run: Run, asked: Item, decision: str) -> Write:
    """Give a paused run the run that resumes it, unless another one came first."""
    before = asked.get("resumed")
    unresolved = "attribute_not_exists(#resumed)" if before is None else "#resumed = :before"
    return Write(
        key=keys.run(run.tenant, run.conversation_id, number_of(asked)),
        update="SET #resumed = :run, #decision = :decision REMOVE #pause, #due",
        condition=f"#state = :paused AND {unresolved}",
        values={
            "run": run.id,
            "decision": decision,
            "paused": RunState.PAUSED,
            **({} if before is None else {"before": before}),
        },
    )


def _taken(run: Run) -> RunNumberTaken:
    return RunNumberTaken(f"conversation {run.conversation_id!r} has begun another run")
