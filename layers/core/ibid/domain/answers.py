"""What a turn asks for and what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from ibid.domain.passages import Citation, Passage

REPLY_LANGUAGES = ("en", "pt-BR", "es-419")
"""What an answer can be written in; every fixed text exists in each."""


class Intent(StrEnum):
    """What kind of question it is."""

    CODEBASE_QUESTION = "codebase_question"
    CONVERSATIONAL = "conversational"
    OUT_OF_SCOPE = "out_of_scope"


class FinishReason(StrEnum):
    """How an assistant message ended; `disconnected` is stored, never sent."""

    STOP = "stop"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    DISCONNECTED = "disconnected"
    PAUSED = "paused"


class GroundingWarning(StrEnum):
    """What may be wrong with an answer's grounding; `no_context` stands alone."""

    NO_CONTEXT = "no_context"
    UNCITED_ANSWER = "uncited_answer"
    UNKNOWN_PATHS = "unknown_paths"
    UNKNOWN_SYMBOLS = "unknown_symbols"
    WEAK_EVIDENCE = "weak_evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How the asker likes to read; a dial that is None leaves the prompt as it is."""

    detail: Literal["brief", "thorough"] | None = None
    familiarity: Literal["new", "expert"] | None = None
    format: Literal["prose", "bullets"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryTurn:
    """An earlier question and its answer, both whole."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Clarification:
    """What the asker is asked back.

    Attributes:
        question: In the reply language.
        options: What it may mean, at most 8, each once; empty where any words will do.
    """

    question: str
    options: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """The answer to a pause; it goes on where the pause stopped.

    Attributes:
        interrupt_id: Of the pause.
        answer: The asker's words, as they were typed, not empty.
    """

    interrupt_id: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInput:
    """All that a turn starts from.

    Attributes:
        turn_id: Also the checkpoint thread of a graph that can pause; a turn keeps it over its
            pauses.
        run_id: The run that works on it now.
        resumption: None starts the turn; else it goes on from its checkpoint, and of what is here
            only `generation` is new to it.
        question: 1 to 4,000 characters.
        history: Earlier turns, oldest first, at most 6, each ended by `stop`.
        generation: The project's active one as the run began.
        reply_language: `en`, `pt-BR` or `es-419`.
        path_prefix: Only files whose path starts with it; None means all.
    """

    tenant: str
    project_id: str
    question: str
    history: Sequence[HistoryTurn]
    generation: int
    reply_language: str
    style: Style
    path_prefix: str | None
    turn_id: str = ""
    run_id: str = ""
    resumption: Resumption | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPause:
    """What a turn leaves that stopped to ask; nothing of it is lost.

    Attributes:
        interrupt_id: Names the pause; an answer carries it.
        node: The node that waits: a graph without it can't go on.
    """

    interrupt_id: str
    node: str
    clarification: Clarification


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """What a finished turn leaves.

    Attributes:
        answer: The tokens, joined.
        citations: The final passages', with `cited` set; empty where nothing was searched.
        cited_indexes: Rising, each in 1..len(citations).
        warnings: In the order of `GroundingWarning`.
        degraded: Names of the helpers that fell back, in the order they ran.
        retrieval_attempts: Searches made, 0 where none was.
        clarification: Asked without a pause: the turn has ended, and another one may tell.
        assumptions: What was taken for granted where an answer to a pause was not understood.
        suggestions: What might be asked instead, where nothing was found.
    """

    answer: str
    passages: Sequence[Passage]
    citations: Sequence[Citation]
    cited_indexes: Sequence[int]
    warnings: Sequence[GroundingWarning]
    intent: Intent
    retrieval_attempts: int
    degraded: Sequence[str]
    model: str
    clarification: Clarification | None = None
    assumptions: Sequence[str] = ()
    suggestions: Sequence[str] = ()
