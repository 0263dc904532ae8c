"""The states of a run as it is kept; its stages within its process are in `stages`.

    begin, resume
      │ no place, or behind another run        a place
      ├───────────▶ QUEUED ──────admit──────┐    │
      │               │                     ▼    │
      └───────────────┼──────────────────▶ RUNNING
                      │ end, end_dead        │ end, end_dead
                      ▼                      ▼
       FAILED  TIMED_OUT  CANCELLED     COMPLETED  FAILED  TIMED_OUT  CANCELLED  PAUSED
                                                                                   │
                                           nobody answered, or it was cancelled    │    an answer
                                               EXPIRED ◀──────────expire───────────┴─resume─▶ PAUSED
                                                                                 with `resumed_by`

A run that was begun for a queue is QUEUED, and nobody's, until a process adopts it; then it is
admitted as any other one. Its counter moves once before that, when its ticket is in the queue.

Each arrow is one conditional write of the store, so of two that race one is refused. A run ends
once; `end_dead`, by another process, makes it FAILED. A pause that was answered stays PAUSED, with
the run that goes on in `resumed_by`, and never expires.
"""

from collections.abc import Mapping
from typing import assert_never

from ibid.domain.answers import FinishReason
from ibid.domain.conversations import RunState
from ibid.domain.events import Done, Failed, Paused, Terminator

_STOPPED = frozenset({RunState.FAILED, RunState.TIMED_OUT, RunState.CANCELLED})

NEXT_STATES: Mapping[RunState, frozenset[RunState]] = {
    RunState.QUEUED: _STOPPED | {RunState.RUNNING},
    RunState.RUNNING: _STOPPED | {RunState.COMPLETED, RunState.PAUSED},
    RunState.PAUSED: frozenset({RunState.EXPIRED}),
    RunState.COMPLETED: frozenset(),
    RunState.FAILED: frozenset(),
    RunState.TIMED_OUT: frozenset(),
    RunState.CANCELLED: frozenset(),
    RunState.EXPIRED: frozenset(),
}


def end_state(terminator: Terminator) -> RunState:
    """Return the state that is kept with a terminator."""
    match terminator:
        case Done():
            return RunState.COMPLETED
        case Paused():
            return RunState.PAUSED
        case Failed(finish_reason=FinishReason.TIMEOUT):
            return RunState.TIMED_OUT
        case Failed(finish_reason=FinishReason.CANCELLED | FinishReason.DISCONNECTED):
            return RunState.CANCELLED
        case Failed():
            return RunState.FAILED
        case _:
            assert_never(terminator)


def finish_reason(terminator: Terminator) -> FinishReason:
    """Return the finish reason that an assistant message is kept with."""
    return FinishReason.PAUSED if isinstance(terminator, Paused) else terminator.finish_reason
