"""The events of a run: a closed union that every surface translates with one `match`.

    0..n StatusChanged, CitationsFound once before the first TokenDelta, 0..n TokenDelta,
    then exactly one terminator: Done, Failed or Paused.

Each becomes an `Entry` with an id that rises by one within the run, from 1. One exception: the
terminator that another process writes, since it can't know what a dead one showed last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from ibid.domain.answers import Clarification, FinishReason, GroundingWarning, Intent
from ibid.domain.passages import Citation


class Phase(StrEnum):
    """What a turn is doing before its first token."""

    QUEUED = "queued"
    CLASSIFYING = "classifying"
    RETRIEVING = "retrieving"
    GRADING = "grading"
    GENERATING = "generating"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChanged:
    """The turn entered a phase."""

    phase: Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationsFound:
    """What the first retrieval found, best first; empty where nothing was searched or found."""

    citations: Sequence[Citation]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenDelta:
    """The next piece of the answer, never empty."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The terminator of a turn that ended as it should (`finish_reason` is `stop`)."""

    message_id: str | None
    model: str
    finish_reason: FinishReason
    cited_indexes: Sequence[int]
    grounding_warnings: Sequence[GroundingWarning]
    intent: Intent
    retrieval_attempts: int
    citations: Sequence[Citation]
    degraded: Sequence[str]
    clarification: Clarification | None = None
    assumptions: Sequence[str] = ()
    suggestions: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """The terminator of a run that stopped to ask; a resumption is another run of its turn.

    Attributes:
        message_id: The assistant message that holds what was shown before.
        node: The graph's node that waits.
        expires_at: After it the pause can't be answered any more.
    """

    message_id: str | None
    interrupt_id: str
    node: str
    clarification: Clarification
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The terminator of a run that did not end as it should.

    Attributes:
        message_id: The assistant message that holds what was shown; None if nothing was kept.
        code: Stable, UPPER_SNAKE.
        message: For people; holds no question, answer, excerpt or secret.
        finish_reason: error, timeout, cancelled or disconnected.
        kept_through_id: Given only where the process died: the last event id that was kept.
    """

    message_id: str | None
    code: str
    message: str
    finish_reason: FinishReason
    kept_through_id: int | None = None


Terminator = Done | Failed | Paused
TurnEvent = StatusChanged | CitationsFound | TokenDelta
RunEvent = TurnEvent | Terminator


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One numbered event of a run; ids rise by one, from 1."""

    id: int
    event: RunEvent


RESERVED_IDS = 10_000
"""Ids that a run may show above the last one that its journal keeps.

The terminator of a dead run gets the id `kept + RESERVED_IDS + 1`, above any that it showed.
"""
