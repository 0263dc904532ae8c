"""A live run as one JSON answer, made of the same events as its stream."""

import asyncio
from typing import assert_never

from starlette.requests import Request
from starlette.types import Receive

from ibid.domain.events import (
    CitationsFound,
    Done,
    Failed,
    RunEvent,
    StatusChanged,
    TokenDelta,
)
from ibid.web.conversation_bodies import AnswerBody
from ibid.web.message_events import CitationBody
from ibid.web.streaming import Readable
from ibid.web.wire import whole


class AnswerParts:
    """What a run has shown so far."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._pieces: list[str] = []
        self._found: tuple[CitationBody, ...] = ()
        self.answer: AnswerBody | None = None

    def add(self, event: RunEvent) -> None:
        """Take in the next event; the terminator makes the `answer`."""
        match event:
            case StatusChanged():
                pass
            case CitationsFound():
                self._found = tuple(CitationBody.of(citation) for citation in event.citations)
            case TokenDelta():
                self._pieces.append(event.text)
            case Done():
                self.answer = AnswerBody(
                    run_id=self._run_id,
                    message_id=event.message_id,
                    content=self._content,
                    finish_reason=event.finish_reason,
                    model=whole(event.model),
                    citations=tuple(CitationBody.of(citation) for citation in event.citations),
                    cited_indexes=tuple(event.cited_indexes),
                    grounding_warnings=tuple(event.grounding_warnings),
                    intent=event.intent,
                    retrieval_attempts=event.retrieval_attempts,
                    degraded=tuple(event.degraded),
                )
            case Failed():
                self.answer = AnswerBody(
                    run_id=self._run_id,
                    message_id=event.message_id,
                    content=self._content,
                    finish_reason=event.finish_reason,
                    code=event.code,
                    message=whole(event.message),
                    model=None,
                    citations=self._found,
                    cited_indexes=(),
                    grounding_warnings=(),
                    intent=None,
                    retrieval_attempts=0,
                    degraded=(),
                )
            case _:
                assert_never(event)

    @property
    def _content(self) -> str:
        return whole("".join(self._pieces))


async def whole_answer(run: Readable, request: Request, *, ping_s: float) -> AnswerBody | None:
    """Wait for the run's end and return its answer; None if the client has gone before.

    The run learns that its client has gone just as a stream's does.
    """
    reading = asyncio.create_task(_read(run, ping_s=ping_s))
    leaving = asyncio.create_task(_gone(request.receive))
    try:
        await asyncio.wait({reading, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return reading.result() if reading.done() else None
    finally:
        reading.cancel()
        leaving.cancel()
        await asyncio.gather(reading, leaving, return_exceptions=True)


async def _read(run: Readable, *, ping_s: float) -> AnswerBody | None:
    parts = AnswerParts(run.id)
    events = run.events(ping_s)
    try:
        async for entry in events:
            if entry is not None:
                parts.add(entry.event)
    finally:
        await events.aclose()
    return parts.answer


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
