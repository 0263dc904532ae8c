"""The state of one turn: plain JSON values, so that a checkpoint gives back what it was given."""

from collections.abc import Mapping
from typing import Any, TypedDict

from ibid.domain.answers import HistoryTurn, Intent, Style, TurnInput
from ibid.domain.passages import Passage


class PassageRow(TypedDict):
    """A `Passage`, field for field."""

    file_path: str
    start_line: int
    end_line: int
    language: str
    symbol: str
    content: str
    commit_sha: str | None
    score: float
    cosine: float | None
    truncated: bool


class HistoryRow(TypedDict):
    """A `HistoryTurn`, field for field."""

    question: str
    answer: str


class StyleRow(TypedDict):
    """A `Style`, field for field."""

    detail: str | None
    familiarity: str | None
    format: str | None


class AnswerState(TypedDict, total=False):
    """All keys of a turn; the input names every one, and none has a reducer.

    Attributes:
        tenant: Who pays.
        project_id: One of the tenant's projects.
        question: The asker's words; what the model answers.
        history: Earlier turns, oldest first.
        reply_language: One of `REPLY_LANGUAGES`.
        style: The asker's dials.
        path_prefix: Only files whose path starts with it; None means all.
        generation: The one searched; changed only where it was found gone.
        intent: A value of `Intent`.
        search_query: What retrieval embeds and looks up.
        passages: Of the last retrieval, best first; after `generate`, those the model saw.
        attempts: Retrievals made.
        evidence_ok: The last verdict; None while nothing was judged.
        gap: What the passages lack by the last verdict; empty if nothing, or not judged.
        answer: The whole text, once there is one.
        degraded: Names of the helpers that fell back, each once, in the order they ran.
    """

    tenant: str
    project_id: str
    question: str
    history: list[HistoryRow]
    reply_language: str
    style: StyleRow
    path_prefix: str | None
    generation: int
    intent: str
    search_query: str
    passages: list[PassageRow]
    attempts: int
    evidence_ok: bool | None
    gap: str
    answer: str
    degraded: list[str]


def first_state(turn: TurnInput) -> AnswerState:
    """Return the graph's input: every key, none left over from another turn."""
    return {
        "tenant": turn.tenant,
        "project_id": turn.project_id,
        "question": turn.question,
        "history": [{"question": past.question, "answer": past.answer} for past in turn.history],
        "reply_language": turn.reply_language,
        "style": {
            "detail": turn.style.detail,
            "familiarity": turn.style.familiarity,
            "format": turn.style.format,
        },
        "path_prefix": turn.path_prefix,
        "generation": turn.generation,
        "intent": Intent.CODEBASE_QUESTION.value,
        "search_query": turn.question,
        "passages": [],
        "attempts": 0,
        "evidence_ok": None,
        "gap": "",
        "answer": "",
        "degraded": [],
    }


def passage_row(passage: Passage) -> PassageRow:
    """Return the plain form of a passage."""
    return {
        "file_path": passage.file_path,
        "start_line": passage.start_line,
        "end_line": passage.end_line,
        "language": passage.language,
        "symbol": passage.symbol,
        "content": passage.content,
        "commit_sha": passage.commit_sha,
        "score": passage.score,
        "cosine": passage.cosine,
        "truncated": passage.truncated,
    }


def passages_of(state: AnswerState) -> tuple[Passage, ...]:
    """Return the state's passages as values, best first."""
    return tuple(Passage(**row) for row in state["passages"])


def history_of(state: AnswerState) -> tuple[HistoryTurn, ...]:
    """Return the state's history as values, oldest first."""
    return tuple(HistoryTurn(**row) for row in state["history"])


def style_of(state: AnswerState) -> Style:
    """Return the asker's dials as a value."""
    dials: Mapping[str, Any] = state["style"]
    return Style(**dials)


def degraded_by(state: AnswerState, helper: str) -> list[str]:
    """Return `degraded` with a helper's name in it once."""
    known = state["degraded"]
    return known if helper in known else [*known, helper]
