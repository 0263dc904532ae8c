"""Capacity units of one plain turn in the app table: `python -m tests.bench.turn_cost`.

A real engine answers on real adapters, against ministack. The work shows what a turn shows: its
phases, twelve citations, then 500 tokens of English at an even rate. What else a run may cost is
measured one call of the store at a time. How units are counted is in `tests.fakes.capacity`.
"""

import asyncio
import re
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ibid.adapters.dynamodb.records.records import DynamoRecords
from ibid.adapters.system_clock import SystemClock
from ibid.domain.answers import TurnInput, TurnResult
from ibid.domain.events import CitationsFound, Done, Phase, StatusChanged, TokenDelta, TurnEvent
from ibid.domain.passages import Citation
from ibid.ports.idempotency import KeyScope, StoredAnswer
from ibid.runs.engine import RunEngine
from ibid.runs.limits import RunLimits
from ibid.runs.turns import NewTurn, Proceed, Work
from tests.contract.run_steps import (
    WEEK,
    append,
    begin,
    end,
    end_dead,
    kept,
    numbered,
    resume,
    some_events,
)
from tests.fakes.app_table import AppTable
from tests.fakes.aws_faults import intercepted
from tests.fakes.capacity import PURPOSES, Bill
from tests.fakes.ministack import ministack
from tests.fakes.samples import (
    ANN,
    NOON,
    PLACES,
    a_conversation,
    a_pause,
    a_project,
    a_result,
    a_resumption,
    a_run,
)

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
        for index, name in enumerate(MODULES, 1)
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


async def others(url: str) -> Sequence[str]:
    """Rows of what a plain turn has not."""
    rows: list[str] = []

    async def bill(what: str, *answers: Awaitable[object]) -> None:
        counted = Bill(purpose=what)
        with intercepted(counted.hook):
            for answer in answers:
                await answer
        rows.extend(counted.lines())

    async with AppTable.opened(url) as table:
        records, store = table.records, table.records.runs
        await records.projects.create(a_project())
        await bill("a new conversation", records.conversations.create(a_conversation()))
        first, behind = a_run(1), a_run(2)
        text = "".join(tokens(0))
        await begin(records, first)
        await append(records, first, 0, numbered(some_events(*tokens(0)[:100])))
        await bill("a heartbeat", append(records, first, 1))
        await bill("a look by a follower who has all", store.entries(first, after=102))
        await bill("a look at all live runs, of which there is one", store.live())
        await bill("a cancel", store.request_cancel(first.id, principal=ANN))
        await bill("a run queued behind another", begin(records, behind, behind=True))
        await bill("a try to admit it in vain", store.admit(behind, limits=PLACES))
        dead = await kept(records, first)
        await bill("the end of a dead run", end_dead(records, dead, text=text))
        await bill("an admission", store.admit(behind, limits=PLACES))
        await bill("the end by a pause", end(records, behind, a_pause(behind)))
        third = a_resumption(await kept(records, behind), 3)
        await bill("a resumption", resume(records, third))
        await end(records, third, a_pause(third))
        await bill("an expiry", store.expire(await kept(records, third)))
        scope = KeyScope(tenant="acme", subject="ann", method="POST", path="/ask", key="k")
        mine: Mapping[str, str] = {"tenant": "acme", "owner": "me"}
        key, keys = scope.record_id, records.idempotency
        await bill(
            "an idempotency key: claimed, planned, answered",
            keys.claim(scope, fingerprint="f" * 64, owner="me", now=NOON, expires_at=WEEK),
            keys.beat(key, plan=first.id, **mine),
            keys.finish(key, answer=StoredAnswer(status=202, run_id=first.id), **mine),
        )
        whole = records.conversations.delete("c1", principal=ANN)
        await bill("the deletion of a conversation with three runs", whole)
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainTurn:
    """What one plain turn cost, at so many tokens a second, after so many turns."""

    rate: int
    history: int
    bill: Bill

    @property
    def written(self) -> float:
        """Units written."""
        return sum(self.bill.written.values())

    @property
    def read(self) -> float:
        """Units read; the project is none of run, journal, lease and messages."""
        return sum(self.bill.read.values()) - self.bill.read[PURPOSES["GetItem", "A"]]


async def plain_turns(url: str) -> AsyncIterator[PlainTurn]:
    """Measure a turn at each rate, on a new thread and on one that has a history."""
    for rate in RATES:
        for history in HISTORIES:
            yield PlainTurn(rate=rate, history=history, bill=await measure(url, rate, history))


async def main() -> bool:
    is_within = True
    with ministack() as url:
        async for turn in plain_turns(url):
            print(f"\n{TOKENS} tokens, {turn.rate} a second, after {turn.history} turns\n")
            print("| what for | calls | written | read |\n|---|---|---|---|")
            print("\n".join(turn.bill.lines()))
            print(f"| all, but for the project | | {turn.written:g} | {turn.read:g} |", flush=True)
            if turn.rate == RATES[0]:
                is_within &= turn.written <= MOST_WRITTEN and turn.read <= MOST_READ
        print("\nWhat else there may be\n")
        print("| what for | calls | written | read |\n|---|---|---|---|")
        print("\n".join(await others(url)))
    return is_within


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
