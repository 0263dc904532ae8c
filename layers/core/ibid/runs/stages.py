"""The stages of a run in its process; its states as it is kept are in `states`.

                  begun
                    ▼
                  QUEUED ──a place in the store and in the process──▶ RUNNING
                    │                                                    │
       the first of: result, pause, failure, stop (cancel, disconnect, time-out, shutdown, lease)
                    │                                                    │
                    └──────────────────▶ ENDING ◀────────────────────────┘
                                           │ the terminator was kept, or can't be for now
                                           ▼
                                         ENDED: the terminator is shown

ENDING is entered once: whatever comes later changes nothing. ENDED is entered once, by the
terminator. Nothing is shown between the two.
"""

from enum import StrEnum


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
