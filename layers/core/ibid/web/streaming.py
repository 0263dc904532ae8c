"""A live run as an event stream that always ends, and always lets go of its run."""

import logging
from collections.abc import AsyncGenerator, Mapping
from typing import Protocol

import anyio
from fastapi.sse import EventSourceResponse
from starlette.types import Receive, Scope, Send

from ibid.domain.events import Entry
from ibid.web.framing import PING, message_frame

logger = logging.getLogger(__name__)

STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class Readable(Protocol):
    """A run whose events can be read, as the engine's can."""

    @property
    def id(self) -> str:
        """The run's id."""

    def events(self, ping_s: float) -> AsyncGenerator[Entry | None, None]:
        """Read the events in order, None after each `ping_s` seconds of silence."""


async def message_frames(run: Readable, *, ping_s: float) -> AsyncGenerator[bytes, None]:
    """Yield the run's events as frames, and a comment after each `ping_s` seconds of silence.

    Nothing is raised: what fails here has failed after the first byte, and the run's terminator
    is kept all the same. Closing the iterator tells the run that its client has gone.
    """
    events = run.events(ping_s)
    try:
        async for entry in events:
            yield PING if entry is None else message_frame(entry)
    except Exception as error:  # noqa: BLE001 - an edge: no status can be sent any more
        logger.error("stream failed", extra={"run_id": run.id, "error": type(error).__name__})
    finally:
        with anyio.CancelScope(shield=True):
            await events.aclose()


class EventStream(EventSourceResponse):
    """An event stream that closes its frames however the exchange ends.

    Starlette leaves the iterator to the garbage collector when a client goes while a frame is
    being sent; the run must learn of it at once.
    """

    def __init__(self, frames: AsyncGenerator[bytes, None], *, headers: Mapping[str, str]) -> None:
        super().__init__(frames, headers={**STREAM_HEADERS, **headers})
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await self._frames.aclose()
