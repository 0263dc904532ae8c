"""Capacity units of one plain turn in the app table: `python -m tests.bench.turn_cost`.

A real engine answers on real adapters, against ministack. The work shows what a turn shows: its
phases, twelve citations, then 500 tokens of English at an even rate. Write units are ministack's
own, read units are reckoned from the items that were read, as DynamoDB reckons them (ministack
tells wrong ones).
"""

import asyncio
import math
import re
import sys
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.records import DynamoRecords
from ibid.adapters.dynamodb.rows import size_of
from ibid.adapters.system_clock import SystemClock
from ibid.domain.answers import TurnInput, TurnResult
from ibid.domain.events import CitationsFound, Done, Phase, StatusChanged, TokenDelta, TurnEvent
from ibid.domain.passages import Citation
from ibid.runs.engine import RunEngine
from ibid.runs.limits import RunLimits
from ibid.runs.turns import NewTurn, Proceed, Work
from tests.fakes.app_table import AppTable
from tests.fakes.aws_faults import Call, intercepted
from tests.fakes.ministack import ministack
from tests.fakes.samples import ANN, a_conversation, a_project, a_result

TOKENS = 500
RATES = (125, 20)
HISTORIES = (0, 6)
FAST = 400  # tokens a second of the turns before
CLASSIFY_S, SEARCH_S, GRADE_S, FIRST_TOKEN_S = 0.5, 0.2, 0.5, 0.5
QUESTION = "How does the session cookie get its signature, and where is the salt of it configured?"
MODULES = ["app", "sessions", "config", "ctx", "helpers", "signals", "wrappers", "views", "cli"]
MODULES += ["globals", "testing", "json"]
MOST_WRITTEN, MOST_READ = 14.0, 8.0  # at the first rate

_TOKEN = re.compile(r"\s*\S{1,5}")


@dataclass
class Bill:
    """Units by what they are for."""

    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    written: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    read: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def hook(self, operation: str, params: dict[str, Any], call: Call) -> Any:  # noqa: ANN401 - botocore's own
        found = call({**params, "ReturnConsumedCapacity": "TOTAL"})
        what = purpose(operation, params)
        with self.lock:
            self.calls[what] += 1
            if operation in {"Query", "GetItem"}:
                self.read[what] += read_units(found, strong=params.get("ConsistentRead", False))
            else:
                told = found["ConsumedCapacity"]
                for one in told if isinstance(told, list) else [told]:
                    self.written[what] += one["CapacityUnits"]
        return found

    def clear(self) -> None:
        for units in (self.calls, self.written, self.read):
            units.clear()

    def lines(self) -> Sequence[str]:
        return [
            f"| {what} | {self.calls[what]} | {self.written[what]:g} | {self.read[what]:g} |"
            for what in sorted(self.calls, key=list(PURPOSES.values()).index)
        ]


PURPOSES = {
    ("GetItem", "A"): "the project",
    ("GetItem", keys.CONVERSATION_FACTS): "the conversation",
    ("Query", "T"): "begin: thread and history",
    ("UpdateItem", keys.LIVE): "a place among the live runs, taken and freed",
    ("UpdateItem", keys.CONVERSATION_FACTS): "begin: the run's number",
    ("PutItem", keys.RUNS): "begin: the run with its question",
    ("PutItem", keys.SLOTS): "journal, which is heartbeat and fence",
    ("GetItem", keys.RUNS): "looks for a cancel",
    ("UpdateItem", keys.RUNS): "end: terminator, answer, last tokens",
}


def purpose(operation: str, params: Mapping[str, Any]) -> str:
    if operation == "Query":
        return PURPOSES[operation, "T"]
    key = params["Item"] if operation == "PutItem" else params["Key"]
    names = [key["pk"]["S"], key["sk"]["S"]]
    return next(
        what
        for (kind, start), what in PURPOSES.items()
        if kind == operation and any(name.startswith(start) for name in names)
    )


def read_units(found: Mapping[str, Any], *, strong: bool) -> float:
    items = found.get("Items", [found["Item"]] if "Item" in found else [])
    blocks = max(1, math.ceil(sum(size_of(item) for item in items) / 4_096))
    return blocks if strong else blocks / 2


def citations() -> tuple[Citation, ...]:
    sha = "5c1a9d0e4f7b8236a1e0c9d4b7f2683e5a9c0d1f"
    return tuple(
        Citation(
            index=index,
            file_path=f"src/flask/{name}.py",
            start_line=37 * index,
            end_line=37 * index + 22 + index,
            language="python",
            symbol=f"{name.title()}Interface.open_{name}",
            commit_sha=sha,
            score=round(1 / index, 6),
            url=f"https://github.com/pallets/flask/blob/{sha}/src/flask/{name}.py"
            f"#L{37 * index}-L{37 * index + 22 + index}",
            cited=None,
        )
        for index, name in enumerate(
            MODULES,
            1,
        )
    )


def tokens(turn: int) -> Sequence[str]:
    """Real English, another piece of it for each turn."""
    text = Path(__file__).parents[2].joinpath("README.md").read_text("utf-8")
    found = _TOKEN.findall(text)
    start = turn * TOKENS % max(1, len(found) - TOKENS)
    return found[start : start + TOKENS]


def plain_work(turn: int, rate: float) -> Work:
    """Work that takes its time."""
    said = tokens(turn)

    async def work(_: TurnInput, proceed: Proceed) -> AsyncIterator[TurnEvent | TurnResult]:
        yield StatusChanged(phase=Phase.CLASSIFYING)
        await proceed()
        await asyncio.sleep(CLASSIFY_S)
        yield StatusChanged(phase=Phase.RETRIEVING)
        await asyncio.sleep(SEARCH_S)
        yield CitationsFound(citations=citations())
        yield StatusChanged(phase=Phase.GRADING)
        await proceed()
        await asyncio.sleep(GRADE_S)
        yield StatusChanged(phase=Phase.GENERATING)
        await proceed()
        await asyncio.sleep(FIRST_TOKEN_S)
        started = time.monotonic()
        for position, token in enumerate(said, 1):
            yield TokenDelta(text=token)
            await asyncio.sleep(max(0.0, started + position / rate - time.monotonic()))
        yield a_result("".join(said), citations=citations())

    return work


async def turn_of(records: DynamoRecords, engine: RunEngine, work: Work) -> None:
    """What a request does with the app table: project, conversation, run."""
    conversation = await records.conversations.get("c" * 32, principal=ANN)
    project = await records.projects.get("p" * 32, tenant=ANN.tenant)
    turn = NewTurn(principal=ANN, conversation=conversation, project=project, question=QUESTION)
    live = await engine.start(turn, work)
    shown = [entry async for entry in live.events(15.0) if entry is not None]
    assert isinstance(shown[-1].event, Done), shown[-1]


async def measure(url: str, rate: int, history: int) -> Bill:
    bill = Bill()
    async with AppTable.opened(url) as table:
        table.now = time.time()
        records = table.records
        await records.projects.create(a_project("p" * 32))
        await records.conversations.create(a_conversation("c" * 32, project_id="p" * 32))
        engine = RunEngine(
            conversations=records.conversations,
            runs=records.runs,
            clock=SystemClock(),
            limits=RunLimits(),
            owner=uuid.uuid4().hex,
        )
        for number in range(history):
            await turn_of(records, engine, plain_work(number, FAST))
        with intercepted(bill.hook):
            await turn_of(records, engine, plain_work(history, rate))
            await engine.drain(5.0)
    return bill


async def main() -> bool:
    is_within = True
    with ministack() as url:
        for rate in RATES:
            for history in HISTORIES:
                bill = await measure(url, rate, history)
                written = sum(bill.written.values())
                # the project is none of run, journal, lease and messages
                read = sum(bill.read.values()) - bill.read[PURPOSES["GetItem", "A"]]
                print(f"\n{TOKENS} tokens, {rate} a second, after {history} turns\n")
                print("| what for | calls | written | read |\n|---|---|---|---|")
                print("\n".join(bill.lines()))
                print(f"| all, but for the project | | {written:g} | {read:g} |", flush=True)
                if rate == RATES[0]:
                    is_within &= written <= MOST_WRITTEN and read <= MOST_READ
    return is_within


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
