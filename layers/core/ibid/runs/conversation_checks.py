"""What must hold of a conversation's rows together."""

from collections.abc import Iterator, Mapping, Sequence

from ibid.domain.conversations import Run, RunState, parse_run_id
from ibid.ports.inventory import KeptConversation
from ibid.runs.findings import Finding, FindingKind
from ibid.runs.run_checks import check_run

Found = Iterator[FindingKind]

_CAME_TO_NOTHING = {RunState.FAILED, RunState.CANCELLED, RunState.TIMED_OUT}


def check_conversation(kept: KeptConversation) -> Iterator[Finding]:
    """Return what does not hold of one conversation's rows."""
    place = {"tenant": kept.tenant, "conversation": kept.id}
    runs = {one.run.id: one.run for one in kept.runs}
    for name in kept.unreadable:
        yield Finding(kind=FindingKind.ROW_UNREADABLE, ids=place | {"row": name})
    for kind in _check_whole(kept):
        yield Finding(kind=kind, ids=place)
    journals = {journal.run_id: journal for journal in kept.journals}
    for one in kept.runs:
        run = one.run
        messages = [message for message in kept.messages if message.run_id == run.id]
        of_run = place | {"run": run.id}
        for kind in (
            *check_run(one, journals.get(run.id), messages),
            *_check_place(run, kept),
            *_check_resumption(run, runs),
        ):
            yield Finding(kind=kind, ids=of_run)
    yield from _check_left(kept, runs, place)


def _check_whole(kept: KeptConversation) -> Found:
    if kept.conversation is None:
        yield FindingKind.CONVERSATION_MISSING
    else:
        if not kept.has_project:
            yield FindingKind.PROJECT_MISSING
        begun = kept.conversation.runs_begun
        # one that died before it took its number has made the next one void: it is passed over
        void = [number for number in kept.void_numbers if number != begun + 1]
        if sorted([*(one.run.number for one in kept.runs), *void]) != list(range(1, begun + 1)):
            yield FindingKind.RUN_NUMBERS
    states = [one.run.state for one in kept.runs]
    if states.count(RunState.RUNNING) > 1:
        yield FindingKind.RUNNING_TWICE
    if sum(_is_pending(one.run) for one in kept.runs) > 1:
        yield FindingKind.PAUSED_TWICE


def _is_pending(run: Run) -> bool:
    return run.state is RunState.PAUSED and run.resumed_by is None


def _check_place(run: Run, kept: KeptConversation) -> Found:
    parsed = parse_run_id(run.id)
    # an id from before runs had numbers is no such id at all
    if parsed is not None and parsed != (run.conversation_id, run.number):
        yield FindingKind.RUN_ID
    conversation = kept.conversation
    if conversation is not None and (run.tenant, run.subject, run.project_id) != (
        conversation.tenant,
        conversation.subject,
        conversation.project_id,
    ):
        yield FindingKind.RUN_OWNER


def _check_resumption(run: Run, runs: Mapping[str, Run]) -> Found:
    resumed = None if run.resumes is None else runs.get(run.resumes)
    if run.turn_id != (run.id if resumed is None else resumed.turn_id):
        yield FindingKind.TURN
    if run.resumes is not None and (resumed is None or not _is_answered_by(resumed, run, runs)):
        yield FindingKind.RESUMPTION
    if run.resumed_by is not None:
        by = runs.get(run.resumed_by)
        if by is None or by.resumes != run.id or by.number <= run.number:
            yield FindingKind.RESUMPTION
        if run.state is not RunState.PAUSED:
            yield FindingKind.PAUSE_STATE
    if (run.decision is None) != (run.resumed_by is None):
        yield FindingKind.DECISION


def _is_answered_by(resumed: Run, run: Run, runs: Mapping[str, Run]) -> bool:
    """Tell if a run resumes, or did so in vain before the one that does."""
    if resumed.resumed_by == run.id:
        return True
    later = None if resumed.resumed_by is None else runs.get(resumed.resumed_by)
    return later is not None and later.number > run.number and run.state in _CAME_TO_NOTHING


def _check_left(
    kept: KeptConversation, runs: Mapping[str, Run], place: Mapping[str, str]
) -> Iterator[Finding]:
    """Return what hangs on a run or a conversation that is not there."""

    def left(kind: FindingKind, run_ids: Sequence[str]) -> Iterator[Finding]:
        for run_id in run_ids:
            if run_id not in runs:
                yield Finding(kind=kind, ids={**place, "run": run_id})

    yield from left(FindingKind.JOURNAL_LEFT, [one.run_id for one in kept.journals])
    yield from left(FindingKind.MESSAGE_LEFT, sorted({message.run_id for message in kept.messages}))
    yield from left(FindingKind.FEEDBACK_LEFT, [one.run_id for one in kept.feedback])
    for record in kept.keys:
        run_id = None if record.answer is None else record.answer.run_id
        if kept.conversation is None or (run_id is not None and run_id not in runs):
            yield Finding(kind=FindingKind.KEY_LEFT, ids={**place, "key": record.id})
