"""What a run is begun with, whether it begins a turn or resumes one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.memory import Known, Memory
from ibid.adapters.dynamodb.records.run_rows import attributes_of
from ibid.adapters.dynamodb.records.table import Table
from ibid.adapters.dynamodb.records.threads import Thread
from ibid.adapters.dynamodb.records.wire import Item
from ibid.adapters.dynamodb.records.writes import Write
from ibid.domain.conversations import Message, Run, RunState
from ibid.domain.errors import RunNumberTaken
from ibid.domain.principals import Principal
from ibid.ports.runs import Begun, PlaceLimits


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

    def begun(self, memory: Memory, messages: Sequence[Message], *, is_running: bool) -> Begun:
        """Return what the caller is told, once it is kept; the process knows its run from now."""
        run = self.kept(is_running=is_running)
        memory.keep(run, Known(owner=run.lease_owner))
        return Begun(run=run, messages=messages)


def thread_of(table: Table, start: Start) -> Thread:
    """Read the thread that a run is to be begun on.

    Raises:
        ConversationNotFound: The run's principal has none.
        RunNumberTaken: The run's number is not the next one.
    """
    run = start.run
    thread = Thread(table, run.tenant, run.conversation_id)
    facts = thread.check(run.conversation_id, start.principal)
    if facts["runs"] != run.number - 1:
        raise number_taken(run)
    return thread


def as_admitted(facts: Item) -> str:
    """Return the condition that no run was admitted since the conversation was read."""
    return "#admitted = :admitted" if "admitted" in facts else "attribute_not_exists(#admitted)"


def admissions(facts: Item) -> Mapping[str, int]:
    """Return the values of `as_admitted`."""
    return {"admitted": facts["admitted"]} if "admitted" in facts else {}


def number_taken(run: Run) -> RunNumberTaken:
    """Return the refusal of a number that is not the next one."""
    return RunNumberTaken(f"conversation {run.conversation_id!r} has begun another run")
