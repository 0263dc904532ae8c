"""Many streams at once on one server: what becomes of their events, and of its memory."""

import asyncio
import threading
import time
from dataclasses import dataclass
from typing import Self

import psutil

from tests.bench.run_client import Client, Seen

STREAMS, RATE, TOKENS = 200, 20, 100
TEXT = "".join(f"tok{number} " for number in range(TOKENS))
MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """What came of the streams.

    Attributes:
        store: Of the server.
        number: From 1; all waves are on one server.
        streams: At once.
        events: That came, over all streams.
        faults: Streams with a lost event, a lost token, or not one terminator.
        errors: Streams whose one terminator is an error.
        unlike_text: Streams whose text is not what a reload shows.
        unlike_end: Streams whose terminator is not the one that is kept, as another process reads
            it.
        seconds: From the first request to the last end.
        before_mib: Resident before it.
        peak_mib: The most meanwhile.
        after_mib: Resident after it.
    """

    store: str
    number: int
    streams: int
    events: int
    faults: int
    errors: int
    unlike_text: int
    unlike_end: int
    seconds: float
    before_mib: float
    peak_mib: float
    after_mib: float


async def wave(store: str, one: Client, other: Client, project: str, number: int) -> Wave:
    """Ask one server so many questions at once, then see what is kept of the answers."""
    conversations = [await one.conversation(project) for _ in range(STREAMS)]
    loop = asyncio.get_running_loop()
    with _Memory(_server_of(one)) as memory:
        before, began = memory.now(), time.monotonic()
        asked = [
            one.ask(conversation, rate=RATE, tokens=TOKENS, begun=loop.create_future())
            for conversation in conversations
        ]
        seen = await asyncio.gather(*asked)
        seconds = time.monotonic() - began
    after = memory.now()
    unlike_text = unlike_end = 0
    for conversation, stream in zip(conversations, seen, strict=True):
        # first, as it waits for an end that is still owed
        kept = await other.follow(stream.run_id, after=stream.ids[-1] - 1)
        unlike_end += kept.frames != stream.frames[-1:]
        unlike_text += (await other.messages(conversation))[-1]["content"] != stream.text
    return Wave(
        store=store,
        number=number,
        streams=len(seen),
        events=sum(len(stream.ids) for stream in seen),
        faults=sum(map(_is_faulty, seen)),
        errors=sum(stream.ends == ["error"] for stream in seen),
        unlike_text=unlike_text,
        unlike_end=unlike_end,
        seconds=seconds,
        before_mib=before / MEBIBYTE,
        peak_mib=memory.peak / MEBIBYTE,
        after_mib=after / MEBIBYTE,
    )


def _is_faulty(stream: Seen) -> bool:
    return bool(stream.faults()) or stream.text != TEXT


def _server_of(client: Client) -> psutil.Process:
    port = client.http.base_url.port
    (found,) = [
        process
        for process in psutil.Process().children(recursive=True)
        if str(port) in process.cmdline()
    ]
    return found


class _Memory:
    """Watches the resident bytes of a process in a thread, so that a busy loop hides no peak."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def now(self) -> int:
        """Return them as they are."""
        return int(self._process.memory_info().rss)

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            self.peak = max(self.peak, self.now())
