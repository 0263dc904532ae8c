"""Runs over HTTP: replay, followers in another process, cancel from another process.

Servers are processes of their own on one store; the client is this one, and its clock is the only
one that is read.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.metrics import quantiles
from tests.bench.run_client import Client, Seen
from tests.bench.run_process import in_dynamodb, serving_client
from tests.bench.run_waves import Wave, wave
from tests.bench.scripted_server import CORPUS

RATES = (125, 20)
FOLLOWED, FOLLOWED_S = 4, 6  # runs a rate, seconds each
CANCELLED, AT_ONCE = 40, 8
CANCEL_AFTER_S = (0.3, 2.0)
WAVES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """By how much a follower in another process is behind, over all events of some runs."""

    store: str
    rate: int
    events: int
    p50_s: float
    p95_s: float
    most_s: float
    unlike: int


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
        environ = {} if ministack_url is None else in_dynamodb(ministack_url)
        async with (
            serving_client(data, sources, environ) as one,
            serving_client(data, sources, environ) as other,
        ):
            project = await one.project(str(sources))
            replay = await _replayed(store, one, other, project)
            lags = [await _followed(store, one, other, project, rate) for rate in RATES]
            cancels = [await _cancelled(store, one, other, project, rate) for rate in RATES]
            waves = [
                await wave(store, one, other, project, number) for number in range(1, WAVES + 1)
            ]
    return Figures(replay=replay, lags=lags, cancels=cancels, waves=waves)


async def _asked(client: Client, project: str, rate: int, tokens: int) -> "Asking":
    conversation = await client.conversation(project)
    begun: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(client.ask(conversation, rate=rate, tokens=tokens, begun=begun))
    either: set[asyncio.Future[Any]] = {begun, task}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not begun.done():
        await task  # it failed
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
    async def run() -> tuple[list[float], bool]:
        asking = await _asked(one, project, rate=rate, tokens=rate * FOLLOWED_S)
        follower, asker = await asyncio.gather(other.follow(asking.run_id), asking.task)
        behind = [follower.at[id_] - at for id_, at in asker.at.items() if id_ in follower.at]
        return behind, follower.frames != asker.frames

    found = await asyncio.gather(*(run() for _ in range(FOLLOWED)))
    lags = [lag for behind, _ in found for lag in behind]
    p50, p95, most = quantiles(lags)
    return Lag(
        store=store,
        rate=rate,
        events=len(lags),
        p50_s=p50,
        p95_s=p95,
        most_s=most,
        unlike=sum(is_unlike for _, is_unlike in found),
    )


async def _cancelled(store: str, one: Client, other: Client, project: str, rate: int) -> Cancel:
    chance = random.Random(rate)  # noqa: S311 - seeds make a run repeatable

    async def run(after_s: float) -> tuple[float, bool]:
        asking = await _asked(one, project, rate=rate, tokens=rate * 60)
        await asyncio.sleep(after_s)
        sent_at = time.monotonic()
        await other.cancel(asking.run_id)
        seen = await asking.task
        answer = (await one.messages(asking.conversation))[-1]
        kept = (answer["content"], answer["finishReason"])
        is_like = kept == (seen.text, "cancelled") and not seen.faults()
        return max(seen.ended_at, seen.last_token_at) - sent_at, is_like

    found: list[tuple[float, bool]] = []
    for _ in range(CANCELLED // AT_ONCE):
        waits = [chance.uniform(*CANCEL_AFTER_S) for _ in range(AT_ONCE)]
        found += await asyncio.gather(*(run(after_s) for after_s in waits))
    p50, p95, most = quantiles([silence for silence, _ in found])
    return Cancel(
        store=store,
        rate=rate,
        runs=len(found),
        p50_s=p50,
        p95_s=p95,
        most_s=most,
        unlike_reload=sum(not is_like for _, is_like in found),
    )
