"""What must hold of one run is checked on its values alone."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ibid.domain.answers import FinishReason
from ibid.domain.conversations import Message, Run, RunState
from ibid.domain.events import (
    RESERVED_IDS,
    CitationsFound,
    Entry,
    Failed,
    Phase,
    RunEvent,
    StatusChanged,
    TokenDelta,
)
from ibid.ports.inventory import KeptJournal, KeptRun
from ibid.runs.findings import FindingKind
from ibid.runs.run_checks import check_run
from tests.fakes.samples import NOON, a_done, a_question, a_run, an_answer

STATUS = StatusChanged(phase=Phase.RETRIEVING)
FOUND = CitationsFound(citations=())
A, B = TokenDelta(text="a"), TokenDelta(text="b")


def _over(events: Sequence[RunEvent]) -> Run:
    run = a_run()
    return replace(
        run,
        state=RunState.COMPLETED,
        terminator=a_done(run),
        ended_at=NOON,
        last_event_id=len(events) + 1,
    )


def _messages(run: Run, text: str) -> list[Message]:
    done = a_done(run)
    answer = replace(
        an_answer(run, text),
        citations=done.citations,
        cited_indexes=done.cited_indexes,
        grounding_warnings=done.grounding_warnings,
    )
    return [a_question(run), answer]


def _check(run: Run, events: Sequence[RunEvent], *, text: str = "ab") -> list[FindingKind]:
    entries = [Entry(id=id_, event=event) for id_, event in enumerate(events, 1)]
    kept = KeptRun(run=run, is_journal_removed=False)
    return list(check_run(kept, KeptJournal(run_id=run.id, entries=entries), _messages(run, text)))


@pytest.mark.parametrize(
    "events", [[STATUS, FOUND, A, B], [FOUND, STATUS, A, B], [FOUND, A, B], [STATUS, FOUND]]
)
def test_events_in_order_have_no_finding(events: Sequence[RunEvent]) -> None:
    text = "".join(event.text for event in events if isinstance(event, TokenDelta))

    assert _check(_over(events), events, text=text) == []


@pytest.mark.parametrize(
    "events",
    [
        [FOUND, A, STATUS, B],
        [A, FOUND, B],
        [A, B],
        [FOUND, FOUND, A, B],
        [FOUND, A, TokenDelta(text=""), B],
    ],
)
def test_events_out_of_order_are_found(events: Sequence[RunEvent]) -> None:
    assert _check(_over(events), events) == [FindingKind.JOURNAL_ORDER]


def test_a_second_terminator_in_the_journal_is_found() -> None:
    events: list[RunEvent] = [FOUND, A, B, a_done(a_run())]

    assert _check(_over(events), events) == [FindingKind.TERMINATOR_TWICE]


@pytest.mark.parametrize(("kept_through", "above"), [(3, 0), (2, 0), (3, 1)])
def test_a_dead_runs_terminator_stands_above_all_that_its_process_can_have_shown(
    kept_through: int, above: int
) -> None:
    events: list[RunEvent] = [FOUND, A, B]
    lost = Failed(
        message_id=None,
        code="RUN_LOST",
        message="m",
        finish_reason=FinishReason.ERROR,
        kept_through_id=kept_through,
    )
    run = replace(
        _over(events),
        state=RunState.FAILED,
        terminator=lost,
        last_event_id=3 + RESERVED_IDS + 1 + above,
    )

    findings = _check(run, events)

    assert (FindingKind.TERMINATOR_ID in findings) == ((kept_through, above) != (3, 0))


def test_a_run_from_before_numbers_may_have_kept_no_answer() -> None:
    older = replace(_over([]), id="5f1c", turn_id="5f1c")
    kept = KeptRun(run=older, is_journal_removed=True)

    assert list(check_run(kept, None, [a_question(older)])) == []
