"""The stages of a run in its process.

    begun
      │ a place is free      no place is free
      ├──────────────────┐   ┌──────────────┐
      │                  ▼   │              ▼
      │               RUNNING ◀──a place── QUEUED
      │                  │                  │
      │   the first of: result, failure, stop (cancel, disconnect, time-out, shutdown, lease)
      │                  ▼                  │
      └───────────────▶ ENDING ◀────────────┘
                         │ the terminator was kept, or can't be for now
                         ▼
                       ENDED: the terminator is shown

ENDING is entered once: whatever comes later changes nothing. ENDED is entered once, by the
terminator. Nothing is shown between the two.
"""

from enum import StrEnum
from typing import assert_never

from ibid.domain.answers import FinishReason
from ibid.domain.conversations import RunState
from ibid.domain.events import Done, Failed, Terminator


class Stage(StrEnum):
    """Where a run is."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDING = "ending"
    ENDED = "ended"


_NEXT = {
    Stage.QUEUED: frozenset({Stage.RUNNING, Stage.ENDING}),
    Stage.RUNNING: frozenset({Stage.ENDING}),
    Stage.ENDING: frozenset({Stage.ENDED}),
    Stage.ENDED: frozenset[Stage](),
}


def can_move(stage: Stage, to: Stage) -> bool:
    """Say if a run that is at `stage` may go to another one."""
    return to in _NEXT[stage]


def live_state(stage: Stage) -> RunState:
    """Return the state that a run's beat keeps while its end is not kept."""
    return RunState.QUEUED if stage is Stage.QUEUED else RunState.RUNNING


def end_state(terminator: Terminator) -> RunState:
    """Return the state that is kept with a terminator."""
    match terminator:
        case Done():
            return RunState.COMPLETED
        case Failed(finish_reason=FinishReason.TIMEOUT):
            return RunState.TIMED_OUT
        case Failed(finish_reason=FinishReason.CANCELLED | FinishReason.DISCONNECTED):
            return RunState.CANCELLED
        case Failed():
            return RunState.FAILED
        case _:
            assert_never(terminator)
