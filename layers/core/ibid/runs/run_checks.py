"""What must hold of one run, its journal and its two messages, whatever died."""

from collections.abc import Iterator, Sequence

from ibid.domain.conversations import LIVE_STATES, Message, Run, RunState, parse_run_id
from ibid.domain.events import (
    RESERVED_IDS,
    CitationsFound,
    Done,
    Entry,
    Failed,
    Paused,
    StatusChanged,
    TokenDelta,
)
from ibid.ports.inventory import KeptJournal, KeptRun
from ibid.runs.findings import FindingKind
from ibid.runs.states import end_state, finish_reason

Found = Iterator[FindingKind]


def check_run(kept: KeptRun, journal: KeptJournal | None, messages: Sequence[Message]) -> Found:
    """Return what does not hold of a run.

    Args:
        kept: The run.
        journal: None if nothing is kept under its id.
        messages: Those that name it.
    """
    run = kept.run
    yield from _check_end(run)
    entries: Sequence[Entry] | None = () if journal is None else journal.entries
    if kept.is_journal_removed:
        if journal is not None or run.state in LIVE_STATES:
            yield FindingKind.JOURNAL_LEFT
        entries = None
    elif entries is None:
        yield FindingKind.JOURNAL_UNREADABLE
    else:
        yield from _check_journal(run, entries)
    yield from _check_messages(run, entries, messages)


def _check_end(run: Run) -> Found:
    if run.state in LIVE_STATES:
        if run.terminator is not None or run.ended_at is not None:
            yield FindingKind.TERMINATOR_EARLY
        return
    if run.terminator is None or run.ended_at is None:
        yield FindingKind.TERMINATOR_MISSING
        return
    is_expired = run.state is RunState.EXPIRED and isinstance(run.terminator, Paused)
    if not is_expired and end_state(run.terminator) is not run.state:
        yield FindingKind.TERMINATOR_STATE


def _check_journal(run: Run, entries: Sequence[Entry]) -> Found:
    if any(isinstance(entry.event, Done | Failed | Paused) for entry in entries):
        yield FindingKind.TERMINATOR_TWICE
    if [entry.id for entry in entries] != list(range(1, len(entries) + 1)):
        yield FindingKind.JOURNAL_GAP
        return
    yield from _check_order(run, entries)
    if run.terminator is None:
        if run.last_event_id != len(entries):
            yield FindingKind.JOURNAL_LENGTH
    elif run.last_event_id != _terminator_id(run, len(entries)):
        yield FindingKind.TERMINATOR_ID


def _terminator_id(run: Run, kept: int) -> int:
    """Return what the terminator's id must be; -1 where it names another length than is kept."""
    if isinstance(run.terminator, Failed) and run.terminator.kept_through_id is not None:
        is_same = run.terminator.kept_through_id == kept
        return kept + RESERVED_IDS + 1 if is_same else -1
    return kept + 1


def _check_order(run: Run, entries: Sequence[Entry]) -> Found:
    """Phases, then citations once among them, then tokens; a `Done` comes after citations."""
    has_citations = has_tokens = False
    for entry in entries:
        match entry.event:
            case StatusChanged():
                is_in_order = not has_tokens
            case CitationsFound():
                is_in_order = not has_citations and not has_tokens
                has_citations = True
            case TokenDelta(text=text):
                is_in_order = has_citations and text != ""
                has_tokens = True
            case _:
                is_in_order = True
        if not is_in_order:
            yield FindingKind.JOURNAL_ORDER
            return
    if isinstance(run.terminator, Done) and not has_citations:
        yield FindingKind.JOURNAL_ORDER


def _check_messages(
    run: Run, entries: Sequence[Entry] | None, messages: Sequence[Message]
) -> Found:
    questions = [message for message in messages if message.role == "user"]
    answers = [message for message in messages if message.role == "assistant"]
    is_numbered = parse_run_id(run.id) == (run.conversation_id, run.number)
    if not questions:
        yield FindingKind.QUESTION_MISSING
    elif len(questions) > 1:
        yield FindingKind.QUESTION_TWICE
    if run.terminator is None:
        if answers:
            yield FindingKind.ANSWER_EARLY
    elif not answers:
        if is_numbered:  # before runs had numbers, one that failed early kept no answer
            yield FindingKind.ANSWER_MISSING
    elif len(answers) > 1:
        yield FindingKind.ANSWER_TWICE
    else:
        yield from _check_answer(run, entries, answers[0])


def _check_answer(run: Run, entries: Sequence[Entry] | None, answer: Message) -> Found:
    if run.terminator is None:
        return
    if answer.id != run.message_id or run.terminator.message_id not in {answer.id, None}:
        yield FindingKind.ANSWER_ID
    if entries is not None and answer.content != "".join(
        entry.event.text for entry in entries if isinstance(entry.event, TokenDelta)
    ):
        yield FindingKind.ANSWER_TEXT
    code = run.terminator.code if isinstance(run.terminator, Failed) else None
    is_same = (answer.finish_reason, answer.error_code) == (finish_reason(run.terminator), code)
    if is_same and isinstance(run.terminator, Done):
        done = run.terminator
        is_same = (
            tuple(answer.citations) == tuple(done.citations)
            and tuple(answer.cited_indexes) == tuple(done.cited_indexes)
            and tuple(answer.grounding_warnings) == tuple(done.grounding_warnings)
        )
    if not is_same:
        yield FindingKind.ANSWER_OUTCOME
