"""A run on the Messages surface as one JSON answer, made of the same events as its stream."""

from typing import assert_never

from ibid.domain.conversations import Run
from ibid.domain.events import (
    CitationsFound,
    Done,
    Entry,
    Failed,
    Paused,
    StatusChanged,
    TokenDelta,
)
from ibid.web.conversation_bodies import AnswerBody
from ibid.web.framing import done_event, error_event
from ibid.web.message_events import CitationBody
from ibid.web.wire import whole


class AnswerParts:
    """What a run has shown so far.

    Attributes:
        body: The whole answer's JSON; None before the terminator.
    """

    def __init__(self) -> None:
        self.body: str | None = None
        self._pieces: list[str] = []
        self._found: tuple[CitationBody, ...] = ()

    def add(self, entry: Entry, run: Run) -> None:
        """Take in the next entry; the terminator makes the `body`."""
        event = entry.event
        match event:
            case StatusChanged():
                pass
            case CitationsFound():
                self._found = tuple(CitationBody.of(citation) for citation in event.citations)
            case TokenDelta():
                self._pieces.append(event.text)
            case Done():
                self.body = self._done(event, run).model_dump_json()
            case Failed() | Paused():
                self.body = self._failed(event, run).model_dump_json()
            case _:
                assert_never(event)

    def _done(self, event: Done, run: Run) -> AnswerBody:
        done = done_event(event)
        return AnswerBody(
            run_id=run.id,
            message_id=done.message_id,
            content=self._content,
            finish_reason=done.finish_reason,
            model=done.model,
            citations=done.citations,
            cited_indexes=done.cited_indexes,
            grounding_warnings=done.grounding_warnings,
            intent=done.intent,
            retrieval_attempts=done.retrieval_attempts,
            degraded=done.degraded,
        )

    def _failed(self, event: Failed | Paused, run: Run) -> AnswerBody:
        error = error_event(event)
        return AnswerBody(
            run_id=run.id,
            message_id=error.message_id,
            content=self._content,
            finish_reason=error.finish_reason,
            code=error.code,
            message=error.message,
            kept_through_id=error.kept_through_id,
            model=None,
            citations=self._found,
            cited_indexes=(),
            grounding_warnings=(),
            intent=None,
            retrieval_attempts=0,
            degraded=(),
        )

    @property
    def _content(self) -> str:
        return whole("".join(self._pieces))
