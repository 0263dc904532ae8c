"""Processes of their own that answer a question and die on the way; another one ends their runs.

`python -m tests.integration.run_kill_sweep SWEEP` prints one JSON line a death. The children are
forked from this process, which imports once and opens no file and no loop itself: the first one
counts how many places there are to die at, then one dies at each (or at a seeded sample of them),
each on a conversation of its own, then a last one ends their runs, half of them by following them
and half by a sweep, and checks what is left. SWEEP is JSON, the fields of the class below.
"""

import asyncio
import json
import os
import random
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from ibid.adapters.dynamodb.records.records import DynamoRecords
from ibid.adapters.sqlite.records import SqliteRecords
from ibid.adapters.system_clock import SystemClock
from ibid.domain.conversations import LIVE_STATES, Run
from ibid.domain.errors import PauseResolved
from ibid.domain.events import RESERVED_IDS, Done, Failed, Paused, Terminator, TokenDelta
from ibid.ports.runs import RunStore
from ibid.runs.engine import RunEngine
from ibid.runs.limits import RunLimits
from ibid.runs.live_run import LiveRun
from ibid.runs.sweep import Sweep as Tidying
from ibid.runs.turns import NewResumption, Work
from tests.fakes.faults import Faulty, Injector, die
from tests.fakes.ministack import client_config
from tests.fakes.records import Records
from tests.fakes.run_bench import followed, text
from tests.fakes.samples import ANN, a_conversation, a_project, a_turn
from tests.fakes.works import asking_work, stepped_work

LIMITS = RunLimits(
    process=100_000,
    tenant=100_000,
    subject=100_000,
    beat_s=0.25,
    term_s=1.0,
    flush_s=0.0,
    boundary_s=0.0,
    fresh_s=0.0,
    poll_s=0.1,
)
TOKENS = ("It ", "is ", "he", "re.")


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Who dies where.

    Attributes:
        store: A key of `STORES`.
        place: What the store is opened with.
        deed: A key of `DEEDS`.
        dies_at: `call`: before and after each call of the store; `await`: where any task waits.
        most: Deaths at most; a seeded sample if there are more places.
    """

    store: str
    place: dict[str, str]
    deed: str
    dies_at: str
    most: int = 1_000


@asynccontextmanager
async def _sqlite(place: dict[str, str]) -> AsyncIterator[Records]:
    records = await SqliteRecords.open(Path(place["path"]), busy_s=10.0)
    try:
        yield records
    finally:
        await records.close()


@asynccontextmanager
async def _dynamodb(place: dict[str, str]) -> AsyncIterator[Records]:
    records = await DynamoRecords.open(place["table"], client_config=client_config(place["url"]))
    try:
        yield records
    finally:
        await records.close()


Open = Callable[[dict[str, str]], AbstractAsyncContextManager[Records]]
STORES: dict[str, Open] = {"sqlite": _sqlite, "dynamodb": _dynamodb}


@dataclass(frozen=True, kw_only=True)
class Process:
    """An engine of this process on a store, and one conversation."""

    records: Records
    engine: RunEngine
    conversation_id: str
    show: Callable[[str, int, str], None]

    @classmethod
    def of(
        cls,
        records: Records,
        conversation_id: str,
        *,
        runs: RunStore | None = None,
        show: Callable[[str, int, str], None] = lambda *_: None,
    ) -> "Process":
        engine = RunEngine(
            conversations=records.conversations,
            runs=runs or records.runs,
            clock=SystemClock(),
            limits=LIMITS,
            owner=f"process {os.getpid()}",
        )
        return cls(records=records, engine=engine, conversation_id=conversation_id, show=show)

    async def ask(self, work: Work) -> LiveRun:
        turn = a_turn(conversation=a_conversation(self.conversation_id))
        return await self._read(await self.engine.start(turn, work))

    async def answer(self, paused: Run, answer: str, work: Work) -> LiveRun:
        conversation = await self.records.conversations.get(self.conversation_id, principal=ANN)
        resumption = NewResumption(
            principal=ANN,
            conversation=conversation,
            project=a_project(),
            paused=paused,
            question="Where is the app made?",
            answer=answer,
        )
        return await self._read(await self.engine.resume(resumption, work))

    async def _read(self, live: LiveRun) -> LiveRun:
        async for entry in live.events(30):
            if entry is not None:
                said = entry.event.text if isinstance(entry.event, TokenDelta) else ""
                self.show(live.id, entry.id, said)
        return live


async def _plain(process: Process) -> None:
    await process.ask(stepped_work(*TOKENS))


async def _pause(process: Process) -> None:
    asked = await process.ask(asking_work())
    await process.answer(asked.run, "the first", asking_work(*TOKENS))


DEEDS: dict[str, Callable[[Process], Coroutine[None, None, None]]] = {
    "plain": _plain,
    "pause": _pause,
}


class Child:
    """One forked process: it does the deed, and dies at the k-th place, if `dies_at_place` is k.

    What it shows goes through a pipe at once, so that it outlives it.
    """

    def __init__(self, sweep: Sweep, conversation_id: str, *, dies_at_place: int) -> None:
        self._sweep = sweep
        self._conversation_id = conversation_id
        self._dies_at_place = dies_at_place
        self._places = 0

    def run(self) -> tuple[bool, list[list[object]]]:
        """Fork, wait, and return whether it was killed and what it has written."""
        reading, writing = os.pipe()
        if not (child := os.fork()):
            os.close(reading)
            code = 1
            try:
                asyncio.run(self._main(writing))
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        with os.fdopen(reading) as lines:
            written = [json.loads(line) for line in lines]
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
            raise RuntimeError("a child failed before it was to die")
        return os.WIFSIGNALED(status), written

    async def _main(self, writing: int) -> None:
        def write(*what: object) -> None:
            os.write(writing, (json.dumps(what) + "\n").encode())

        async with STORES[self._sweep.store](self._sweep.place) as records:
            is_call = self._sweep.dies_at == "call"
            runs = cast("RunStore", Faulty(records.runs, self._at)) if is_call else None
            process = Process.of(records, self._conversation_id, runs=runs, show=write)
            injector = Injector(0 if is_call else self._dies_at_place, "kill")
            loop = asyncio.get_running_loop()
            if not is_call:
                loop.set_task_factory(injector)
            await loop.create_task(DEEDS[self._sweep.deed](process))
            loop.set_task_factory(None)
            await process.engine.drain(5)
            write(self._places if is_call else injector.suspensions)

    async def _at(self, _: str) -> None:
        self._places += 1
        if self._places == self._dies_at_place:
            die()


@dataclass(frozen=True, kw_only=True)
class Death:
    """One child's: where, and what each of its runs had shown, as (id, text)."""

    conversation_id: str
    place: int
    was_killed: bool
    shown: dict[str, list[tuple[int, str]]]


class Recovery:
    """Ends the runs of the dead, checks what they left, and uses their threads."""

    def __init__(self, sweep: Sweep, deaths: Sequence[Death]) -> None:
        self._sweep = sweep
        self._deaths = deaths

    async def main(self) -> None:
        """Print a line for each death: what was wrong afterwards, if anything."""
        async with STORES[self._sweep.store](self._sweep.place) as records:
            live = {run_id for _, run_id in await records.runs.live()}
            await self._follow_half(records, sorted(live))
            await Tidying(
                runs=records.runs,
                idempotency=records.idempotency,
                clock=SystemClock(),
                limits=LIMITS,
            ).sweep()
            left = await records.runs.live()
            for death in self._deaths:
                check = _Check(records, death, self._sweep.deed)
                try:
                    lost = await check.all()
                    cut = check.cut
                    problem = f"still live: {sorted(left)}" if left else None
                except Exception as error:  # noqa: BLE001 - the test shows it
                    lost, cut, problem = 0, 0, f"{type(error).__name__}: {error}"
                line = {"place": death.place, "killed": death.was_killed}
                line |= {"lost": lost, "cut": cut}
                print(json.dumps({**line, "problem": problem}), flush=True)  # noqa: T201

    async def _follow_half(self, records: Records, live: list[str]) -> None:
        engine = Process.of(records, "").engine
        await asyncio.gather(*(followed(engine, run_id) for run_id in live[::2]))


class _Check:
    def __init__(self, records: Records, death: Death, deed: str) -> None:
        self._records = records
        self._death = death
        self._deed = deed
        self.cut = 0  # events that were shown and not kept

    async def all(self) -> int:
        """Check each run and use the thread; return how many runs were lost."""
        runs = await self._runs()
        lost = [await self._check_run(run) for run in runs]
        await self._use(runs)
        return sum(lost)

    async def _runs(self) -> list[Run]:
        page = await self._records.runs.list_for(
            self._death.conversation_id, principal=ANN, cursor=None, limit=200
        )
        assert {run.id for run in page.items} >= set(self._death.shown)
        return sorted(page.items, key=lambda run: run.number)

    async def _check_run(self, run: Run) -> bool:
        assert run.state not in LIVE_STATES
        kept = (await self._records.runs.entries(run, after=0)).entries
        ends = [entry for entry in kept if isinstance(entry.event, Terminator)]
        assert [(end.id, end.event) for end in ends] == [(run.last_event_id, run.terminator)]
        assert kept[-1] == ends[0]
        assert [entry.id for entry in kept[:-1]] == list(range(1, len(kept)))
        messages = await self._records.conversations.latest_messages(
            run.conversation_id, principal=ANN, limit=200
        )
        question, answer = [one for one in messages if one.run_id == run.id]
        assert (question.role, answer.role, answer.id) == ("user", "assistant", run.message_id)
        shown = self._death.shown.get(run.id, [])
        is_lost = isinstance(run.terminator, Failed)
        if isinstance(run.terminator, Failed):  # nobody but the dead fails here
            through = run.terminator.kept_through_id
            assert (run.terminator.code, through) == ("RUN_LOST", len(kept) - 1)
            assert run.last_event_id == len(kept) + RESERVED_IDS
            assert all(entry_id < run.last_event_id for entry_id, _ in shown)
            whole = len(shown)
            shown = [(entry_id, said) for entry_id, said in shown if entry_id <= len(kept) - 1]
            self.cut += whole - len(shown)
            assert answer.content == "".join(said for _, said in shown)
        assert answer.content == text(kept)
        told = [
            (entry.id, entry.event.text if isinstance(entry.event, TokenDelta) else "")
            for entry in kept
        ]
        assert shown == told[: len(shown)]
        return is_lost

    async def _use(self, runs: list[Run]) -> None:
        process = Process.of(self._records, self._death.conversation_id)
        if runs and isinstance(paused := runs[0].terminator, Paused):
            if not isinstance(runs[-1].terminator, Done):
                await self._answer_again(process, runs[0], has_decision=len(runs) > 1)
            assert paused.interrupt_id
        live = await process.ask(stepped_work("next"))
        assert isinstance(live.run.terminator, Done)
        await process.engine.drain(5)

    async def _answer_again(self, process: Process, paused: Run, *, has_decision: bool) -> None:
        """The decision that is kept is carried out, and no other one is taken."""
        if has_decision:
            try:
                await process.answer(paused, "the second", asking_work("never"))
            except PauseResolved as resolved:
                assert resolved.state == "failed"  # noqa: PT017 - no pytest in this process
            else:
                raise AssertionError("a second decision was taken")
        live = await process.answer(paused, "the first", asking_work("at last"))
        assert isinstance(live.run.terminator, Done)


def _prepare(sweep: Sweep, conversations: Sequence[str]) -> None:
    async def fill() -> None:
        async with STORES[sweep.store](sweep.place) as records:
            await records.projects.create(a_project())
            for conversation_id in conversations:
                await records.conversations.create(a_conversation(conversation_id))

    _forked(fill)


def _forked(main: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run it in a child, so that this process never has a loop or a thread."""
    sys.stdout.flush()
    if not (child := os.fork()):
        code = 1
        try:
            asyncio.run(main())
            code = 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError("a child failed")


def swept(sweep: Sweep) -> None:
    """Do the sweep and print what became of each death."""
    _prepare(sweep, ["count"])
    _, written = Child(sweep, "count", dies_at_place=0).run()
    count = written[-1][0]
    assert isinstance(count, int)
    places: Sequence[int] = range(1, count + 1)
    if count > sweep.most:
        places = sorted(random.Random(5).sample(places, sweep.most))  # noqa: S311 - no secret

    async def fill() -> None:
        async with STORES[sweep.store](sweep.place) as records:
            for place in places:
                await records.conversations.create(a_conversation(f"c{place}"))

    _forked(fill)
    deaths = []
    for place in places:
        was_killed, written = Child(sweep, f"c{place}", dies_at_place=place).run()
        shown: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for line in written:
            if len(line) == len(("run", "id", "text")):
                shown[str(line[0])].append((cast("int", line[1]), str(line[2])))
        deaths.append(
            Death(conversation_id=f"c{place}", place=place, was_killed=was_killed, shown=shown)
        )
    _forked(Recovery(sweep, deaths).main)


def arguments(sweep: Sweep) -> list[str]:
    """Return what this module is run with."""
    return ["-m", "tests.integration.run_kill_sweep", json.dumps(asdict(sweep))]


if __name__ == "__main__":
    swept(Sweep(**json.loads(sys.argv[1])))
