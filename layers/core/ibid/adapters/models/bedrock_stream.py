"""Read boto3's blocking event stream from an event loop, and stop reading at once."""

import asyncio
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, Future
from typing import Any, Final, Protocol

_END: Final[Mapping[str, Any]] = {}


class ClosableStream(Protocol):
    """What boto3 returns as the `stream` of a response."""

    def __iter__(self) -> Iterator[Any]:
        """Yield events; blocks."""

    def close(self) -> None:
        """Close the connection; does not wake whoever reads."""


class EventPump:
    """Pulls one event at a time on a worker thread, so a slow reader holds the server back.

    `close` wakes a thread that waits for the server, then closes the connection.
    """

    def __init__(self, stream: ClosableStream, workers: Executor) -> None:
        self._stream = stream
        self._events = iter(stream)
        self._workers = workers
        self._pull: Future[Mapping[str, Any]] | None = None

    async def next_event(self) -> Mapping[str, Any] | None:
        """Return the next event, None at the end; raises what boto3 raises."""
        self._pull = self._workers.submit(next, self._events, _END)
        event = await asyncio.wrap_future(self._pull)
        return None if event is _END else event

    def close(self) -> None:
        """Stop at once; repeatable. The thread frees itself a moment later."""
        pull, self._pull = self._pull, None
        if pull is None or pull.done():
            self._stream.close()
            return
        # A close alone leaves the thread in its read until the server says something
        raw = getattr(self._stream, "_raw_stream", None)
        shutdown = getattr(raw, "shutdown", None)
        if shutdown is not None:
            shutdown()
        pull.add_done_callback(lambda _: self._stream.close())
