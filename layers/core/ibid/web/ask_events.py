"""The events of the Ask surface as they are sent (design.md §5.3)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, Self

from pydantic import Field

from ibid.domain.answers import FinishReason
from ibid.domain.events import Phase
from ibid.domain.passages import Citation
from ibid.web.wire import SnakeWire, is_absent, whole


class AskCitationBody(SnakeWire):
    """A passage that the answer may cite, by the `index` of a marker `[index]`."""

    index: int = Field(ge=1)
    file_path: str
    start_line: int = Field(ge=1)
    end_line: int = Field(ge=1)
    language: str
    symbol: str | None
    commit_sha: str | None
    score: float
    url: str | None
    cited: bool | None

    @classmethod
    def of(cls, citation: Citation) -> Self:
        """Translate one citation."""
        return cls(
            index=citation.index,
            file_path=whole(citation.file_path),
            start_line=citation.start_line,
            end_line=citation.end_line,
            language=citation.language,
            symbol=None if citation.symbol is None else whole(citation.symbol),
            commit_sha=citation.commit_sha,
            score=citation.score,
            url=citation.url,
            cited=citation.cited,
        )


class AskStatusEvent(SnakeWire):
    """The turn entered a phase, or within one found so many `passages`."""

    phase: Phase
    passages: int | None = Field(default=None, ge=0, exclude_if=is_absent)


class TokenDeltaEvent(SnakeWire):
    """The next piece of the narration, never empty."""

    delta: str


class ClarificationBody(SnakeWire):
    """What the asker is asked back; no options where any words will do."""

    question: str
    options: tuple[str, ...]


class ValueBody(SnakeWire):
    """A figure from a structured source."""

    metric: str
    value: float
    formatted: str
    unit: str | None
    currency: str | None


class AnswerEnvelope(SnakeWire):
    """A whole answer; `narration` is the tokens, joined.

    With `resumable` true the run waits: go on with `POST /resume`. A clarification that is not
    resumable has ended: ask again on the same thread. `values` and `rows` are empty as long as no
    source is a structured one. `trace_id` is the turn's, over all its pauses.
    """

    envelope_version: Literal["1"]
    kind: Literal["answer", "abstention", "clarification"]
    headline: str
    narration: str
    values: tuple[ValueBody, ...]
    rows: tuple[Mapping[str, str | float | None], ...]
    citations: tuple[AskCitationBody, ...]
    confidence: float = Field(ge=0, le=1)
    assumptions: tuple[str, ...]
    suggestions: tuple[str, ...]
    clarification: ClarificationBody | None = Field(default=None, exclude_if=is_absent)
    resumable: bool
    interrupt_id: str | None = Field(default=None, exclude_if=is_absent)
    trace_id: str
    thread_id: str
    run_id: str
    created_at: datetime


class AskErrorEvent(SnakeWire):
    """The other terminator; `kept_through_id` is there only where the server's process died."""

    code: str
    message: str
    run_id: str
    finish_reason: FinishReason
    kept_through_id: int | None = Field(default=None, exclude_if=is_absent)


ASK_EVENTS: Mapping[str, type[SnakeWire]] = {
    "status": AskStatusEvent,
    "token_delta": TokenDeltaEvent,
    "answer": AnswerEnvelope,
    "error": AskErrorEvent,
}
"""Model by event name."""
