"""How a run resumes a paused one: a decision and the run that carries it out, in one write."""

import contextlib

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.memory import Memory
from ibid.adapters.dynamodb.records.places import Places
from ibid.adapters.dynamodb.records.run_rows import is_run, number_of
from ibid.adapters.dynamodb.records.start import Start, admissions, as_admitted, thread_of
from ibid.adapters.dynamodb.records.table import ConditionFailed, Table
from ibid.adapters.dynamodb.records.threads import THERE
from ibid.adapters.dynamodb.records.wire import Item
from ibid.adapters.dynamodb.records.writes import Write
from ibid.domain.conversations import Run, RunState, parse_run_id
from ibid.domain.errors import (
    ConversationNotFound,
    NothingPending,
    PauseExpired,
    PauseResolved,
    RunNotFound,
    RunNumberTaken,
)
from ibid.ports.runs import Begun

_RUN_ROW = 2  # its position among the writes of a resumption
_MAY_BE_RESUMED_AGAIN = {RunState.FAILED, RunState.CANCELLED, RunState.TIMED_OUT}


class Resumptions:
    """The resumptions of paused runs."""

    def __init__(self, table: Table, places: Places, memory: Memory) -> None:
        self._table = table
        self._places = places
        self._memory = memory

    def resume(self, start: Start, *, paused: str, decision: str) -> Begun:
        """Do as RunStore.resume says."""
        run = start.run
        while True:
            asked = self._paused(start, paused)
            before = self._check_unresolved(run, paused, asked, decision)
            try:
                thread = thread_of(self._table, start)
            except ConversationNotFound as error:
                raise RunNotFound(f"no run {paused!r}") from error
            except RunNumberTaken:  # since the paused run was read; perhaps by another decision
                self._check_unresolved(run, paused, self._paused(start, paused), decision)
                raise
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
                if _RUN_ROW in error.items:
                    self._pass_over(run)
                continue
            return start.begun(self._memory, messages, is_running=is_running)

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


def _next_number(run: Run, facts: Item) -> Write:
    return Write(
        key=keys.conversation(run.tenant, run.conversation_id),
        update="SET #runs = :number, #claim = :claim",
        condition=f"{THERE} AND #runs = :before AND {as_admitted(facts)}",
        values={
            "subject": run.subject,
            "number": run.number,
            "before": run.number - 1,
            "claim": run.message_id,
            **admissions(facts),
        },
    )


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
