"""What keeping a run costs a stream: the engine on SQLite beside the engine on a store in memory.

Both make the same events at once, as fast as the engine takes them; the one keeps runs, journal and
messages, the other one's store is a dictionary. What is compared is the time on the processor of
all threads, which other work of the machine does not change.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from ibid.adapters.sqlite.records import SqliteRecords
from ibid.adapters.system_clock import SystemClock
from ibid.runs.engine import RunEngine
from ibid.runs.limits import RunLimits
from tests.fakes.records import FakeRecords, Records
from tests.fakes.run_bench import read
from tests.fakes.samples import a_conversation, a_project, a_turn, scripted_work

TOKENS = 200
STREAMS: Mapping[int, int] = {1: 30, 16: 6, 64: 3}  # and rounds
MANY = 100_000


def ratios() -> Mapping[int, tuple[float, float]]:
    """Return by the number of streams: CPU microseconds an event in memory, the ratio to it."""
    return asyncio.run(_ratios())


async def _ratios() -> Mapping[int, tuple[float, float]]:
    found = {}
    async with _engine(None) as bare, _engine("sqlite") as keeping:
        for streams, rounds in STREAMS.items():
            await _seconds(bare, streams)
            await _seconds(keeping, streams)
            pairs = [
                (await _seconds(bare, streams), await _seconds(keeping, streams))
                for _ in range(rounds)
            ]
            micros = statistics.median(first for first, _ in pairs) / streams / TOKENS * 1e6
            ratio = statistics.median(second / first for first, second in pairs)
            found[streams] = (micros, ratio)
    return found


@asynccontextmanager
async def _engine(store: str | None) -> AsyncIterator[tuple[Records, RunEngine]]:
    with tempfile.TemporaryDirectory() as folder:
        kept = None if store is None else await SqliteRecords.open(Path(folder, "app.sqlite"))
        records: Records = kept or FakeRecords()
        await records.projects.create(a_project())
        engine = RunEngine(
            conversations=records.conversations,
            runs=records.runs,
            clock=SystemClock(),
            limits=RunLimits(process=MANY, tenant=MANY, subject=MANY),
            owner="bench",
        )
        try:
            yield records, engine
        finally:
            await engine.drain(5)
            if kept is not None:
                await kept.close()


_made = iter(range(MANY))


async def _seconds(given: tuple[Records, RunEngine], streams: int) -> float:
    records, engine = given
    conversations = [a_conversation(f"c{next(_made)}") for _ in range(streams)]
    for conversation in conversations:
        await records.conversations.create(conversation)
    tokens = [f"tok{number} " for number in range(TOKENS)]

    async def run(conversation_id: str) -> None:
        turn = a_turn()
        own = replace(turn.conversation, id=conversation_id)
        await read(await engine.start(replace(turn, conversation=own), scripted_work(*tokens)))

    began = time.process_time()
    await asyncio.gather(*(run(conversation.id) for conversation in conversations))
    return time.process_time() - began
