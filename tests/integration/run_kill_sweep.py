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
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import cast

from ibid.adapters.dynamodb.records.records import DynamoRecords
from ibid.adapters.sqlite.records import SqliteRecords
from ibid.adapters.system_clock import SystemClock
from ibid.domain.conversations import LIVE_STATES, Run
from ibid.domain.errors import PauseResolved
from ibid.domain.events import RESERVED_IDS, Done, Entry, Failed, Paused, Terminator, TokenDelta
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
from tests.fakes.works import stepped_work
from tests.integration.dying_children import Tell, dying, forked
from tests.integration.flawed_stores import FLAWS
from tests.integration.sweep_turns import Turns, open_turns

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
        flaw: A key of `FLAWS`: what is wrong with the store of those who die, if anything.
    """

    store: str
    place: dict[str, str]
    deed: str
    dies_at: str
    most: int = 1_000
    flaw: str = ""


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


Show = Callable[[str, int, str, bool], None]
"""Given a run's id, an event's id, its text, and whether it is the terminator."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """An engine of this process on a store, and one conversation."""

    records: Records
    engine: RunEngine
    conversation_id: str
    turns: Turns = field(default_factory=Turns)
    show: Show = lambda *_: None

    @classmethod
    def of(
        cls,
        records: Records,
        conversation_id: str,
        *,
        turns: Turns | None = None,
        runs: RunStore | None = None,
        show: Show = lambda *_: None,
    ) -> "Process":
        engine = RunEngine(
            conversations=records.conversations,
            runs=runs or records.runs,
            clock=SystemClock(),
            limits=LIMITS,
            owner=f"process {os.getpid()}",
        )
        return cls(
            records=records,
            engine=engine,
            conversation_id=conversation_id,
            turns=turns or Turns(),
            show=show,
        )

    async def ask(self, work: Work) -> LiveRun:
        conversation = a_conversation(self.conversation_id)
        turn = a_turn(conversation=conversation, question=self.turns.question)
        return await self._read(
            await self.engine.start(replace(turn, graph=self.turns.graph), work)
        )

    async def answer(self, paused: Run, answer: str, *tokens: str) -> LiveRun:
        await self.turns.check(await self.records.runs.get(paused.id, principal=ANN))
        conversation = await self.records.conversations.get(self.conversation_id, principal=ANN)
        resumption = NewResumption(
            principal=ANN,
            conversation=conversation,
            project=a_project(),
            paused=paused,
            question=self.turns.question,
            answer=answer,
        )
        return await self._read(await self.engine.resume(resumption, self.turns.work(*tokens)))

    async def _read(self, live: LiveRun) -> LiveRun:
        async for entry in live.events(30):
            if entry is not None:
                self.show(live.id, *as_shown(entry))
        return live


def as_shown(entry: Entry) -> tuple[int, str, bool]:
    """Return what is noted of an event that somebody was shown."""
    said = entry.event.text if isinstance(entry.event, TokenDelta) else ""
    return entry.id, said, isinstance(entry.event, Terminator)


async def _plain(process: Process) -> None:
    await process.ask(stepped_work(*TOKENS))


async def _pause(process: Process) -> None:
    asked = await process.ask(process.turns.work())
    await process.answer(asked.run, process.turns.answer, *TOKENS)


DEEDS: dict[str, Callable[[Process], Coroutine[None, None, None]]] = {
    "plain": _plain,
    "pause": _pause,
    "ask": _pause,  # by the real graph
}


class Doomed:
    """Does the deed in a forked process, and dies at the k-th place, if `dies_at_place` is k.

    It tells what it shows, and last, if it lives, how many places there were.
    """

    def __init__(self, sweep: Sweep, conversation_id: str, *, dies_at_place: int) -> None:
        self._sweep = sweep
        self._conversation_id = conversation_id
        self._dies_at_place = dies_at_place
        self._places = 0

    async def main(self, tell: Tell) -> None:
        """Do it."""
        sweep = self._sweep
        async with AsyncExitStack() as stack:
            records = await stack.enter_async_context(STORES[sweep.store](sweep.place))
            turns = await stack.enter_async_context(
                open_turns(sweep.store, sweep.deed)(sweep.place)
            )
            is_call = sweep.dies_at == "call"
            runs = cast("RunStore", Faulty(records.runs, self._at)) if is_call else records.runs
            runs = FLAWS[sweep.flaw](runs)
            process = Process.of(records, self._conversation_id, turns=turns, runs=runs, show=tell)
            injector = Injector(0 if is_call else self._dies_at_place, "kill")
            loop = asyncio.get_running_loop()
            if not is_call:
                loop.set_task_factory(injector)
            await loop.create_task(DEEDS[sweep.deed](process))
            loop.set_task_factory(None)
            await process.engine.drain(5)
            if left := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(left)
            tell(self._places if is_call else injector.suspensions)

    async def _at(self, _: str) -> None:
        self._places += 1
        if self._places == self._dies_at_place:
            die()


@dataclass(frozen=True, kw_only=True)
class Death:
    """One child's: where, and what each of its runs had shown, as `as_shown` has it."""

    conversation_id: str
    place: int
    was_killed: bool
    shown: dict[str, list[tuple[int, str, bool]]]


class Recovery:
    """Ends the runs of the dead, checks what they left, and uses their threads."""

    def __init__(self, sweep: Sweep, deaths: Sequence[Death]) -> None:
        self._sweep = sweep
        self._deaths = deaths

    async def main(self) -> None:
        """Print a line for each death: what was wrong afterwards, if anything."""
        sweep = self._sweep
        async with (
            STORES[sweep.store](sweep.place) as records,
            open_turns(sweep.store, sweep.deed)(sweep.place) as turns,
        ):
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
                check = Check(records, death, turns)
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


class Check:
    """What must hold of one death's conversation, and that it can be gone on with."""

    def __init__(self, records: Records, death: Death, turns: Turns) -> None:
        self._records = records
        self._death = death
        self._turns = turns
        self.cut = 0  # events that were shown and not kept

    async def all(self) -> int:
        """Check each run and use the thread; return how many runs were lost."""
        runs = await self.runs()
        lost = [await self._check_run(run) for run in runs]
        await self._use(runs)
        return sum(lost)

    async def runs(self) -> list[Run]:
        """Return the conversation's runs, oldest first."""
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
            assert all(one[0] < run.last_event_id for one in shown)
            assert not [one for one in shown if one[2]], "a terminator was shown and not kept"
            whole = len(shown)
            shown = [one for one in shown if one[0] <= len(kept) - 1]
            self.cut += whole - len(shown)
        assert answer.content == text(kept)
        assert shown == [as_shown(entry) for entry in kept][: len(shown)]
        return is_lost

    async def _use(self, runs: list[Run]) -> None:
        process = Process.of(self._records, self._death.conversation_id, turns=self._turns)
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
                await process.answer(paused, "the second", "never")
            except PauseResolved as resolved:
                assert resolved.state == "failed"  # noqa: PT017 - no pytest in this process
            else:
                raise AssertionError("a second decision was taken")
        live = await process.answer(paused, self._turns.answer, "at last")
        assert isinstance(live.run.terminator, Done)


def _prepare(sweep: Sweep, conversations: Sequence[str]) -> None:
    async def fill() -> None:
        async with STORES[sweep.store](sweep.place) as records:
            await records.projects.create(a_project())
            for conversation_id in conversations:
                await records.conversations.create(a_conversation(conversation_id))

    forked(fill)


def swept(sweep: Sweep) -> None:
    """Do the sweep and print what became of each death."""
    _prepare(sweep, ["count"])
    count = dying(Doomed(sweep, "count", dies_at_place=0).main).told[-1][0]
    places: Sequence[int] = range(1, count + 1)
    if count > sweep.most:
        places = sorted(random.Random(5).sample(places, sweep.most))  # noqa: S311 - no secret

    async def fill() -> None:
        async with STORES[sweep.store](sweep.place) as records:
            for place in places:
                await records.conversations.create(a_conversation(f"c{place}"))

    forked(fill)
    deaths = []
    for place in places:
        child = dying(Doomed(sweep, f"c{place}", dies_at_place=place).main)
        shown: dict[str, list[tuple[int, str, bool]]] = defaultdict(list)
        for line in child.told:
            if len(line) == len(("run", "id", "text", "is end")):
                run_id, *what = line
                shown[run_id].append((what[0], what[1], what[2]))
        deaths.append(
            Death(
                conversation_id=f"c{place}",
                place=place,
                was_killed=child.was_killed,
                shown=shown,
            )
        )
    forked(Recovery(sweep, deaths).main)


def arguments(sweep: Sweep) -> list[str]:
    """Return what this module is run with."""
    return ["-m", "tests.integration.run_kill_sweep", json.dumps(asdict(sweep))]


if __name__ == "__main__":
    swept(Sweep(**json.loads(sys.argv[1])))
