"""How a run begins, and how one that was queued is admitted.

A run begins with three writes: its place among the tenant's live runs, its number in the
conversation, its row. Who finds a place without a row, and sees it not change for a term, puts a
`void` row there, at which the slow owner's own row fails.
"""

from collections.abc import Sequence

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.memory import Memory
from ibid.adapters.dynamodb.records.places import Places
from ibid.adapters.dynamodb.records.run_rows import (
    OWNED,
    is_live,
    is_run,
    number_of,
)
from ibid.adapters.dynamodb.records.start import (
    Start,
    admissions,
    as_admitted,
    number_taken,
    thread_of,
)
from ibid.adapters.dynamodb.records.table import ConditionFailed, Table
from ibid.adapters.dynamodb.records.threads import THERE, Standing, Thread
from ibid.adapters.dynamodb.records.wire import Item
from ibid.adapters.dynamodb.records.writes import Write
from ibid.domain.conversations import Run, RunState, run_id
from ibid.domain.errors import (
    ConversationNotFound,
    LeaseLost,
    PausePending,
    RunNumberTaken,
    ThreadBusy,
)
from ibid.ports.runs import Begun, PlaceLimits


class Starts:
    """The beginnings of runs."""

    def __init__(self, table: Table, places: Places, memory: Memory) -> None:
        self._table = table
        self._places = places
        self._memory = memory

    def begin(self, start: Start, *, title: str, behind: bool) -> Begun:
        """Do as RunStore.begin says."""
        run = start.run
        thread = thread_of(self._table, start)
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
        return start.begun(self._memory, messages, is_running=is_running)

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
                raise number_taken(run) from error
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
                raise number_taken(run) from error
            # else the reply to an earlier try was lost


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
            condition=f"{THERE} AND #runs = :runs AND {as_admitted(facts)}",
            values={
                "subject": run.subject,
                "runs": facts["runs"],
                "next": facts.get("admitted", 0) + 1,
                **admissions(facts),
            },
        ),
        Write(
            key=keys.run(run.tenant, run.conversation_id, run.number),
            update="SET #state = :running",
            condition=OWNED,
            values={"running": RunState.RUNNING, "owner": run.lease_owner},
        ),
    )
