"""A run as an event stream that always ends, and always lets go of its run."""

import logging
from collections.abc import AsyncGenerator, Mapping
from typing import Protocol

import anyio
from fastapi.sse import EventSourceResponse
from starlette.types import Receive, Scope, Send

from ibid.domain.conversations import Run
from ibid.domain.events import Entry, Terminator
from ibid.web.framing import PING, frame
from ibid.web.surfaces import surface_of

logger = logging.getLogger(__name__)

EVENT_STREAM = "text/event-stream"
STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class Readable(Protocol):
    """A run whose events can be read: by its one reader, or by a follower."""

    @property
    def run(self) -> Run:
        """The run as it is known; as it is kept with its end, once the terminator was given."""

    def events(self, ping_s: float) -> AsyncGenerator[Entry | None, None]:
        """Read the events in order, None after each `ping_s` seconds of silence."""


async def run_frames(
    reading: Readable, *, ping_s: float, after: int = 0
) -> AsyncGenerator[bytes, None]:
    """Yield the run's events as frames, and a comment after each `ping_s` seconds of silence.

    Nothing is raised: what fails here has failed after the first byte, and the run's terminator
    is kept all the same. Closing the iterator tells the run that its client has gone.

    Args:
        reading: From its first event, where the surface is cumulative.
        ping_s: Above 0.
        after: Events up to this id are left out, but for the terminator.
    """
    tell = surface_of(reading.run).telling()
    events = reading.events(ping_s)
    try:
        async for entry in events:
            if entry is None:
                yield PING
                continue
            name, data = tell(entry, reading.run)
            if entry.id > after or isinstance(entry.event, Terminator):
                yield frame(name, data, entry.id)
    except Exception as error:  # noqa: BLE001 - an edge: no status can be sent any more
        extra = {"run_id": reading.run.id, "error": type(error).__name__}
        logger.error("stream failed", extra=extra)
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
