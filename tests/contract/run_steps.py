"""The steps that the suites of the run store arrange with."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from ibid.domain.answers import FinishReason
from ibid.domain.conversations import Message, Run, RunState
from ibid.domain.events import (
    RESERVED_IDS,
    CitationsFound,
    Done,
    Entry,
    Failed,
    Paused,
    Phase,
    RunEvent,
    StatusChanged,
    Terminator,
    TokenDelta,
)
from ibid.domain.principals import Principal
from ibid.ports.runs import Appended, Begun, PlaceLimits
from tests.fakes.records import Records
from tests.fakes.samples import (
    ANN,
    NOON,
    PLACES,
    a_citation,
    a_conversation,
    a_done,
    a_pause,
    a_project,
    a_question,
    a_run,
    an_answer,
)

WEEK = NOON + timedelta(days=7)
LATER = NOON + timedelta(seconds=1)


def a_failure(*, kept_through_id: int | None = None, message_id: str | None = None) -> Failed:
    """The terminator of a run that did not end as it should, with an odd text."""
    return Failed(
        message_id=message_id,
        code="LLM_UNAVAILABLE",
        message="The model went away. \u2028",
        finish_reason=FinishReason.ERROR,
        kept_through_id=kept_through_id,
    )


def some_events(*tokens: str) -> list[RunEvent]:
    """A phase, citations and these tokens."""
    return [
        StatusChanged(phase=Phase.RETRIEVING),
        CitationsFound(citations=(a_citation(cited=None),)),
        *(TokenDelta(text=token) for token in tokens),
    ]


def numbered(events: Sequence[RunEvent], first_id: int = 1) -> list[Entry]:
    """The entries of these events."""
    return [Entry(id=id_, event=event) for id_, event in enumerate(events, first_id)]


async def conversations(
    records: Records, *conversation_ids: str, principal: Principal = ANN, project: bool = True
) -> None:
    """Make the project, unless it is there, and the principal's conversations."""
    if project:
        await records.projects.create(a_project(principal=principal))
    for conversation_id in conversation_ids:
        await records.conversations.create(a_conversation(conversation_id, principal=principal))


async def begin(
    records: Records,
    run: Run,
    *,
    limits: PlaceLimits = PLACES,
    behind: bool = False,
    history: int = 0,
    idempotency: str | None = None,
) -> Begun:
    """Begin a run with its sample question."""
    return await records.runs.begin(
        run,
        question=a_question(run),
        title=f"title of {run.id}",
        limits=limits,
        behind=behind,
        history=history,
        idempotency=idempotency,
    )


async def resume(
    records: Records,
    run: Run,
    *,
    decision: str = "this one",
    limits: PlaceLimits = PLACES,
    history: int = 0,
    idempotency: str | None = None,
) -> Begun:
    """Resume the run that `run.resumes` names."""
    assert run.resumes is not None
    return await records.runs.resume(
        run,
        paused=run.resumes,
        decision=decision,
        question=a_question(run, f"Where is the app made? ({decision})"),
        limits=limits,
        history=history,
        idempotency=idempotency,
    )


async def append(records: Records, run: Run, beat: int, entries: Sequence[Entry] = ()) -> Appended:
    """Write the journal."""
    return await records.runs.append(run, beat=beat, entries=entries, expires_at=WEEK)


async def end(
    records: Records,
    run: Run,
    terminator: Terminator | None = None,
    *,
    beat: int = 0,
    entries: Sequence[Entry] = (),
    event_id: int | None = None,
    answer: Message | None = None,
    state: RunState | None = None,
) -> Run:
    """End a run well, or with this terminator; without an id, with the one after the entries'."""
    last = entries[-1].id if entries else 0
    terminator = a_done(run) if terminator is None else terminator
    return await records.runs.end(
        run,
        beat=beat,
        state=_state(terminator) if state is None else state,
        terminator=terminator,
        entries=entries,
        event_id=last + 1 if event_id is None else event_id,
        answer=an_answer(run) if answer is None else answer,
        at=LATER,
        expires_at=WEEK,
    )


def _state(terminator: Terminator) -> RunState:
    match terminator:
        case Done():
            return RunState.COMPLETED
        case Failed():
            return RunState.FAILED
        case Paused():
            return RunState.PAUSED


async def pause(records: Records, run: Run) -> Run:
    """Begin a run and end it with a pause; return it as it is kept."""
    await begin(records, run)
    return await end(records, run, a_pause(run))


async def end_dead(records: Records, seen: Run, *, text: str = "") -> bool:
    """End a run whose counter did not move since it was seen."""
    return await records.runs.end_dead(
        seen,
        terminator=a_failure(kept_through_id=seen.last_event_id, message_id=seen.message_id),
        event_id=seen.last_event_id + RESERVED_IDS + 1,
        answer=replace(an_answer(seen, text), finish_reason=FinishReason.ERROR),
        at=LATER,
        expires_at=WEEK,
    )


async def kept(records: Records, run: Run) -> Run:
    """A run as it stands, whoever's it is."""
    found = await records.runs.read_dead(run.id, tenant=run.tenant)
    assert found is not None
    return found


async def journal(records: Records, run: Run, *, after: int = 0, limit: int = 2_000) -> list[Entry]:
    """What the journal keeps above an id, page by page."""
    entries: list[Entry] = []
    while True:
        part = await records.runs.entries(run, after=after, limit=limit)
        assert part.run == await kept(records, run)
        entries.extend(part.entries)
        if not part.has_more:
            return entries
        after = part.entries[-1].id


async def messages(
    records: Records, conversation_id: str = "c1", *, principal: Principal = ANN
) -> list[Message]:
    """The last messages of a conversation."""
    found = await records.conversations.latest_messages(
        conversation_id, principal=principal, limit=200
    )
    return list(found)


async def ended(records: Records, number: int = 1, *, conversation_id: str = "c1") -> Run:
    """Begin a run and end it well; return it as it is kept."""
    run = a_run(number, conversation_id=conversation_id)
    await begin(records, run)
    return await end(records, run)
