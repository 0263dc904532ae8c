"""Runs over HTTP: replay, followers in another process, cancel from another process, many at once.

Servers are processes of their own on one store; the client is this one, and its clock is the only
one that is read.
"""

import asyncio
import random
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from tests.bench.run_client import Client, Seen
from tests.bench.scripted_server import CORPUS
from tests.bench.streams import free_port, serving
from tests.fakes.ministack import KEYS

RATES = (125, 20)
FOLLOWED, FOLLOWED_S = 4, 6  # runs a rate, seconds each
CANCELLED, AT_ONCE = 40, 8
CANCEL_AFTER_S = (0.3, 2.0)
STREAMS, WAVES = 200, 4
MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """By how much a follower in another process is behind, over all events of some runs."""

    store: str
    rate: int
    events: int
    p50_s: float
    p95_s: float
    most_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """From the request to the end of the asker's stream, over some runs."""

    store: str
    rate: int
    runs: int
    p50_s: float
    p95_s: float
    most_s: float
    unlike_reload: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Suffixes of one recorded run, asked of another process."""

    store: str
    events: int
    suffixes: int
    unlike: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Many streams at once on one server."""

    store: str
    number: int
    streams: int
    events: int
    faults: int
    errors: int
    unlike_reload: int
    seconds: float
    peak_mib: float
    after_mib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """All of one store."""

    replay: Replay
    lags: Sequence[Lag]
    cancels: Sequence[Cancel]
    waves: Sequence[Wave]


async def measure(store: str, ministack_url: str | None = None) -> Figures:
    """Measure on `sqlite`, or on `dynamodb` at an address."""
    with tempfile.TemporaryDirectory() as folder:
        data, sources = Path(folder, "data"), Path(folder, "sources")
        sources.mkdir()
        for name, text in CORPUS.items():
            (sources / name).write_text(text)
        environ = {} if ministack_url is None else _in_dynamodb(ministack_url)
        async with (
            _client(data, sources, environ) as one,
            _client(data, sources, environ) as other,
        ):
            project = await one.project(str(sources))
            replay = await _replayed(store, one, other, project)
            lags = [await _followed(store, one, other, project, rate) for rate in RATES]
            cancels = [await _cancelled(store, one, other, project, rate) for rate in RATES]
            waves = [await _wave(store, one, project, number) for number in range(1, WAVES + 1)]
    return Figures(replay=replay, lags=lags, cancels=cancels, waves=waves)


def _in_dynamodb(url: str) -> Mapping[str, str]:
    prefix = f"bench-{uuid.uuid4().hex[:8]}"
    return {
        "IBID_STORE": "dynamodb",
        "IBID_APP_TABLE": f"{prefix}-app",
        "IBID_CHECKPOINTS_TABLE": f"{prefix}-checkpoints",
        "IBID_WRITES_TABLE": f"{prefix}-writes",
        "IBID_BUCKET": prefix,
        "IBID_CREATE_TABLES": "true",
        "AWS_ENDPOINT_URL": url,
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": KEYS["aws_access_key_id"],
        "AWS_SECRET_ACCESS_KEY": KEYS["aws_secret_access_key"],
    }


@asynccontextmanager
async def _client(data: Path, sources: Path, environ: Mapping[str, str]) -> AsyncIterator[Client]:
    port = free_port()
    module = "tests.bench.run_server"
    command = [sys.executable, "-m", module, str(port), str(data), str(sources)]
    async with AsyncExitStack() as stack:
        base = await stack.enter_async_context(
            serving(command, port, "/healthz", cwd=None, **environ)
        )
        client = Client(base)
        stack.push_async_callback(client.http.aclose)
        yield client


async def _asked(client: Client, project: str, rate: int, tokens: int) -> "Asking":
    conversation = await client.conversation(project)
    begun: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(client.ask(conversation, rate=rate, tokens=tokens, begun=begun))
    return Asking(conversation=conversation, run_id=await begun, task=task)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A question whose answer is being read."""

    conversation: str
    run_id: str
    task: asyncio.Task[Seen]


async def _replayed(store: str, one: Client, other: Client, project: str) -> Replay:
    asking = await _asked(one, project, rate=1_000, tokens=200)
    recorded = await asking.task
    unlike = 0
    for after in range(len(recorded.ids) + 1):
        suffix = await other.follow(asking.run_id, after=after)
        unlike += suffix.frames != recorded.frames[after:]
    return Replay(
        store=store, events=len(recorded.ids), suffixes=len(recorded.ids) + 1, unlike=unlike
    )


async def _followed(store: str, one: Client, other: Client, project: str, rate: int) -> Lag:
    async def run() -> list[float]:
        asking = await _asked(one, project, rate=rate, tokens=rate * FOLLOWED_S)
        follower, asker = await asyncio.gather(other.follow(asking.run_id), asking.task)
        if follower.frames != asker.frames:
            raise RuntimeError("a follower saw something else")
        return [follower.at[id_] - at for id_, at in asker.at.items()]

    lags = [lag for lags in await asyncio.gather(*(run() for _ in range(FOLLOWED))) for lag in lags]
    p50, p95, most = _quantiles(lags)
    return Lag(store=store, rate=rate, events=len(lags), p50_s=p50, p95_s=p95, most_s=most)


async def _cancelled(store: str, one: Client, other: Client, project: str, rate: int) -> Cancel:
    chance = random.Random(rate)  # noqa: S311 - seeds make a run repeatable

    async def run(after_s: float) -> tuple[float, bool]:
        asking = await _asked(one, project, rate=rate, tokens=rate * 60)
        await asyncio.sleep(after_s)
        sent_at = time.monotonic()
        await other.cancel(asking.run_id)
        seen = await asking.task
        answer = (await one.messages(asking.conversation))[-1]
        is_like = (answer["content"], answer["finishReason"]) == (seen.text, "cancelled")
        return max(seen.ended_at, seen.last_token_at) - sent_at, is_like

    found: list[tuple[float, bool]] = []
    for _ in range(CANCELLED // AT_ONCE):
        waits = [chance.uniform(*CANCEL_AFTER_S) for _ in range(AT_ONCE)]
        found += await asyncio.gather(*(run(after_s) for after_s in waits))
    p50, p95, most = _quantiles([silence for silence, _ in found])
    return Cancel(
        store=store,
        rate=rate,
        runs=len(found),
        p50_s=p50,
        p95_s=p95,
        most_s=most,
        unlike_reload=sum(not is_like for _, is_like in found),
    )


async def _wave(store: str, client: Client, project: str, number: int) -> Wave:
    conversations = [await client.conversation(project) for _ in range(STREAMS)]
    loop = asyncio.get_running_loop()
    began = time.monotonic()
    with _Memory(_server_of(client)) as memory:
        asked = [
            client.ask(conversation, rate=20, tokens=100, begun=loop.create_future())
            for conversation in conversations
        ]
        seen = await asyncio.gather(*asked)
    seconds = time.monotonic() - began
    unlike = 0
    for conversation, one in zip(conversations, seen, strict=True):
        unlike += (await client.messages(conversation))[-1]["content"] != one.text
    return Wave(
        store=store,
        number=number,
        streams=len(seen),
        events=sum(len(one.ids) for one in seen),
        faults=sum(bool(one.faults()) for one in seen),
        errors=sum(one.ends == ["error"] for one in seen),
        unlike_reload=unlike,
        seconds=seconds,
        peak_mib=memory.peak / MEBIBYTE,
        after_mib=memory.now() / MEBIBYTE,
    )


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


def _quantiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, the 95th percentile and the greatest."""
    ordered = sorted(values)
    return (
        ordered[len(ordered) // 2],
        ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))],
        ordered[-1],
    )
