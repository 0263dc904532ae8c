"""The events of the Messages surface as they are sent (design.md §5.1)."""

from collections.abc import Mapping
from typing import Self

from pydantic import Field

from ibid.domain.answers import FinishReason, GroundingWarning, Intent
from ibid.domain.events import Phase
from ibid.domain.passages import Citation
from ibid.web.wire import Wire, is_absent, whole


class CitationBody(Wire):
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


class StatusEvent(Wire):
    """The turn entered a phase; all come before the first token."""

    phase: Phase


class CitationsEvent(Wire):
    """What the first retrieval found, once, before the first token."""

    citations: tuple[CitationBody, ...]


class TokenEvent(Wire):
    """The next piece of the answer, never empty."""

    text: str


class DoneEvent(Wire):
    """The terminator of a turn that ended as it should."""

    message_id: str | None
    model: str
    finish_reason: FinishReason
    cited_indexes: tuple[int, ...]
    grounding_warnings: tuple[GroundingWarning, ...]
    intent: Intent
    retrieval_attempts: int = Field(ge=0)
    citations: tuple[CitationBody, ...]
    degraded: tuple[str, ...]


class ErrorEvent(Wire):
    """The other terminator; `keptThroughId` is sent only where the server's process died."""

    message_id: str | None
    code: str
    message: str
    finish_reason: FinishReason
    kept_through_id: int | None = Field(default=None, exclude_if=is_absent)


MESSAGE_EVENTS: Mapping[str, type[Wire]] = {
    "status": StatusEvent,
    "citations": CitationsEvent,
    "token": TokenEvent,
    "done": DoneEvent,
    "error": ErrorEvent,
}
"""Model by event name."""
