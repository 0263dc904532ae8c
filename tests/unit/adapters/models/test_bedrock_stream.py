import asyncio
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ibid.adapters.models.bedrock_stream import EventPump


class Stream:
    """Gives its events, then waits for `more`."""

    def __init__(self, *events: Mapping[str, Any]) -> None:
        self._events = events
        self.more = threading.Event()
        self.waits = threading.Event()
        self.closed = threading.Event()

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        yield from self._events
        self.waits.set()
        self.more.wait(60)

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def workers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as workers:
        yield workers


async def test_events_come_one_by_one_and_then_nothing(workers: ThreadPoolExecutor) -> None:
    stream = Stream({"n": 1}, {})
    stream.more.set()
    pump = EventPump(stream, workers)

    events = [await pump.next_event() for _ in range(3)]
    pump.close()
    pump.close()

    assert events == [{"n": 1}, {}, None]
    assert stream.closed.is_set()


async def test_a_stream_that_can_t_be_woken_is_closed_once_it_speaks(
    workers: ThreadPoolExecutor,
) -> None:
    stream = Stream()
    pump = EventPump(stream, workers)
    pull = asyncio.create_task(pump.next_event())
    await asyncio.to_thread(stream.waits.wait, 20)

    pull.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pull
    pump.close()

    assert not stream.closed.is_set()
    stream.more.set()
    assert await asyncio.to_thread(stream.closed.wait, 20)
