"""A server that queues a run, and the worker that takes it, die on the way; others go on.

`python -m tests.integration.queue_kill_sweep SWEEP` prints one JSON line a death. Each child posts
a background run under a key of its own, and then its ticket, twice at once, as SQS may; it dies at
one place of all that. Then a last process does what goes on in the world: the tickets of half of
the dead come again, every client asks again under its key, dead runs are found by followers and by
a sweep, and at last all tickets come twice more. SWEEP is JSON, a `Sweep` without a deed.
"""

import asyncio
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from ibid.adapters.system_clock import SystemClock
from ibid.domain.conversations import LIVE_STATES
from ibid.domain.events import CitationsFound, Done, TokenDelta
from ibid.domain.projects import Project
from ibid.domain.tickets import RunTicket
from ibid.ports.conversations import ConversationStore
from ibid.ports.idempotency import IdempotencyStore
from ibid.ports.queue import RunQueue
from ibid.ports.runs import RunStore
from ibid.runs.engine import RunEngine
from ibid.runs.sweep import Sweep as Tidying
from ibid.runs.turns import Work
from ibid.web.claimant import KeyLimits
from tests.fakes.app import ANN, FakeApp, citation, scripted_work
from tests.fakes.faults import At, Faulty, Injector, die
from tests.fakes.records import Records
from tests.fakes.run_bench import followed
from tests.fakes.samples import a_conversation, a_project
from tests.integration.dying_children import Tell, dying, forked
from tests.integration.flawed_stores import FLAWS
from tests.integration.run_kill_sweep import (
    LIMITS,
    STORES,
    TOKENS,
    Check,
    Death,
    Sweep,
    as_shown,
)
from tests.integration.sweep_turns import Turns
from tests.unit.web.test_internal_events import EVENTS, NOTHING, batch

KEYS = KeyLimits(beat_s=LIMITS.beat_s, term_s=LIMITS.term_s, wait_s=3 * LIMITS.term_s, poll_s=0.05)
QUESTION = {"question": "Where is the app made?"}
DEED = "queue"


async def _a_moment() -> None:
    """Let the follower see what was said before, and the journal keep it or not."""
    await asyncio.sleep(0.002)


class TellingQueue:
    """A queue that outlives its processes: what it takes is told at once."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    async def send(self, ticket: RunTicket) -> None:
        """Take a ticket."""
        await asyncio.sleep(0)
        self._tell("ticket", ticket.to_json())


@dataclass(frozen=True, kw_only=True)
class _Ports:
    """The app records, some of whose ports have faults."""

    records: Records
    runs: RunStore
    conversations: ConversationStore
    idempotency: IdempotencyStore

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the other ports
        return getattr(self.records, name)


class QueueApp(FakeApp):
    """One process: it queues runs, works on tickets, and tells of each run that it works on."""

    def __init__(self, records: Records, queue: RunQueue, tell: Tell) -> None:
        super().__init__(
            change=lambda services: replace(
                services,
                queue=queue,
                queue_events=True,
                key_limits=KEYS,
                embedding_signature=lambda: None,
            ),
            records=records,
            limits=LIMITS,
            clock=SystemClock(),
        )
        self._tell = tell
        self._following: set[asyncio.Task[None]] = set()

    def make_work(self, project: Project, *, graph: str = "messages") -> Work:
        """Make what tells that it begins, and has a follower that tells what it sees."""
        del project, graph
        found = citation()
        said = [step for token in TOKENS for step in (_a_moment, TokenDelta(text=token))]
        inner = scripted_work(CitationsFound(citations=[found]), *said, citations=[found])

        def work(turn: Any, proceed: Any) -> Any:  # noqa: ANN401 - a Work's
            self._tell("worked", turn.run_id)
            task = asyncio.create_task(self._follow(turn.run_id))
            self._following.add(task)
            return inner(turn, proceed)

        return work

    async def begin(self, conversation_id: str) -> int:
        """Post a background run under the conversation's key; return the status."""
        async with self.client(headers={"Idempotency-Key": f"key-{conversation_id}"}) as client:
            answer = await client.post(f"/conversations/{conversation_id}/runs", json=QUESTION)
        self._tell("begun", answer.status_code, answer.headers.get("ibid-run-id"))
        return answer.status_code

    async def deliver(self, tickets: Sequence[str]) -> None:
        """Post tickets as the adapter does; all of them are through."""
        async with self.client(None) as adapter:
            answer = await adapter.post(EVENTS, json=batch(tickets))
        assert answer.json() == NOTHING

    async def settle(self) -> None:
        """End what runs, and what is told."""
        await self.engine.drain(5)
        if self._following:
            await asyncio.wait(self._following)

    async def _follow(self, run_id: str) -> None:
        view = await self.engine.follow(run_id, principal=ANN)
        async for entry in view.events(30):
            if entry is not None:
                self._tell("shown", run_id, *as_shown(entry))


class Doomed:
    """Queues a run and works on it, and dies at the k-th place, if `dies_at_place` is k."""

    def __init__(self, sweep: Sweep, conversation_id: str, *, dies_at_place: int) -> None:
        self._sweep = sweep
        self._conversation_id = conversation_id
        self._dies_at_place = dies_at_place
        self._places = 0

    async def main(self, tell: Tell) -> None:
        """Do it."""
        tickets: list[str] = []

        def note(*what: Any) -> None:  # noqa: ANN401 - JSON
            if what[0] == "ticket":
                tickets.append(what[1])
            tell(*what)

        async with STORES[self._sweep.store](self._sweep.place) as records:
            is_call = self._sweep.dies_at == "call"
            ports, queue = records, cast("RunQueue", TellingQueue(note))
            if is_call:
                ports, queue = _faulty(records, self._at), cast("RunQueue", Faulty(queue, self._at))
            ports = cast(
                "Records", replace(_whole(ports), runs=FLAWS[self._sweep.flaw](ports.runs))
            )
            app = QueueApp(ports, queue, note)
            injector = Injector(0 if is_call else self._dies_at_place, "kill")
            loop = asyncio.get_running_loop()
            if not is_call:
                loop.set_task_factory(injector)
            await loop.create_task(self._deed(app, tickets))
            loop.set_task_factory(None)
            await app.settle()
            tell("places", self._places if is_call else injector.suspensions)

    async def _deed(self, app: QueueApp, tickets: list[str]) -> None:
        assert await app.begin(self._conversation_id) == 202
        await app.deliver(tickets * 2)

    async def _at(self, _: str) -> None:
        self._places += 1
        if self._places == self._dies_at_place:
            die()


def _whole(records: Records) -> _Ports:
    return _Ports(
        records=records,
        runs=records.runs,
        conversations=records.conversations,
        idempotency=records.idempotency,
    )


def _faulty(records: Records, at: At) -> Records:
    ports = _Ports(
        records=records,
        runs=cast("RunStore", Faulty(records.runs, at)),
        conversations=cast("ConversationStore", Faulty(records.conversations, at)),
        idempotency=cast("IdempotencyStore", Faulty(records.idempotency, at)),
    )
    return cast("Records", ports)


@dataclass(frozen=True, kw_only=True)
class QueueDeath(Death):
    """What else a child has told: its tickets, and the runs that it began to work on."""

    tickets: Sequence[str]
    worked: Sequence[str]


class Recovery:
    """What goes on after the deaths, and the check of what has come of it."""

    def __init__(self, sweep: Sweep, deaths: Sequence[QueueDeath]) -> None:
        self._sweep = sweep
        self._deaths = deaths
        self._tickets: list[str] = [one for death in deaths for one in death.tickets]
        self._worked = Counter(run_id for death in deaths for run_id in death.worked)

    async def main(self) -> None:
        """Print a line for each death: what was wrong afterwards, if anything."""
        async with STORES[self._sweep.store](self._sweep.place) as records:
            app = QueueApp(records, TellingQueue(self._note), self._note)
            left = await self._go_on(app, records)
            await app.settle()
            for death in self._deaths:
                lost, cut, problem = 0, 0, f"still live: {left}" if left else None
                check = Check(records, death, Turns())
                try:
                    lost = await self._check(check)
                    cut = check.cut
                except Exception as error:  # noqa: BLE001 - the test shows it
                    problem = f"{type(error).__name__}: {error}"
                line = {"place": death.place, "killed": death.was_killed, "lost": lost, "cut": cut}
                line["shown"] = sum(map(len, death.shown.values()))
                print(json.dumps({**line, "problem": problem}), flush=True)  # noqa: T201

    def _note(self, *what: Any) -> None:  # noqa: ANN401 - JSON
        if what[0] == "ticket":
            self._tickets.append(what[1])
        elif what[0] == "worked":
            self._worked[what[1]] += 1

    async def _go_on(self, app: QueueApp, records: Records) -> Sequence[str]:
        """Let the world go on; return the runs that have not ended by then."""
        for death in self._deaths[::2]:
            await app.deliver(death.tickets)
        names = [death.conversation_id for death in self._deaths]
        await self._all_begin(app, names, {202, 409})
        await self._end_dead(app.engine, records)
        await self._all_begin(app, names, {202})
        for _ in range(2):
            await app.deliver(self._tickets)
        return sorted(run_id for _, run_id in await records.runs.live())

    async def _all_begin(self, app: QueueApp, names: Sequence[str], may_be: set[int]) -> None:
        """Let every client ask again; 409 is said where a beginning is not known dead yet."""
        statuses = await asyncio.gather(*(app.begin(name) for name in names))
        assert set(statuses) <= may_be, statuses

    async def _end_dead(self, engine: RunEngine, records: Records) -> None:
        live = sorted(run_id for _, run_id in await records.runs.live())
        sent = {RunTicket.from_json(one).run_id for one in self._tickets}
        unsent = [run_id for run_id in live if run_id not in sent]
        await asyncio.gather(*(self._followed(engine, records, one) for one in unsent[::2]))
        await Tidying(
            runs=records.runs,
            idempotency=records.idempotency,
            clock=SystemClock(),
            limits=LIMITS,
        ).sweep()

    async def _followed(self, engine: RunEngine, records: Records, run_id: str) -> None:
        run = await records.runs.read_dead(run_id, tenant=ANN.tenant)
        if run is not None and run.state in LIVE_STATES:
            await followed(engine, run_id)

    async def _check(self, check: Check) -> int:
        """One run a key, worked on once at most, ended once; the thread takes another turn."""
        runs = await check.runs()
        assert len(runs) == 1, f"one key has begun {len(runs)} runs"
        (run,) = runs
        works = self._worked[run.id]
        assert works <= 1, f"a run was worked on {works} times"
        assert works == 1 or not isinstance(run.terminator, Done)
        return await check.all()


def swept(sweep: Sweep) -> None:
    """Do the sweep and print what became of each death."""

    def fill(names: Sequence[str]) -> Callable[[], Any]:
        async def work() -> None:
            async with STORES[sweep.store](sweep.place) as records:
                if names == ["count"]:
                    await records.projects.create(a_project())
                for name in names:
                    await records.conversations.create(a_conversation(name))

        return work

    forked(fill(["count"]))
    count = dying(Doomed(sweep, "count", dies_at_place=0).main).told[-1][1]
    places: Sequence[int] = range(1, count + 1)
    if count > sweep.most:
        places = sorted(random.Random(5).sample(places, sweep.most))  # noqa: S311 - no secret
    forked(fill([f"c{place}" for place in places]))
    deaths = [_death(sweep, place) for place in places]
    forked(Recovery(sweep, deaths).main)


def _death(sweep: Sweep, place: int) -> QueueDeath:
    child = dying(Doomed(sweep, f"c{place}", dies_at_place=place).main)
    shown: dict[str, list[tuple[int, str, bool]]] = defaultdict(list)
    for kind, *what in child.told:
        if kind == "shown":
            shown[what[0]].append((what[1], what[2], what[3]))
    return QueueDeath(
        conversation_id=f"c{place}",
        place=place,
        was_killed=child.was_killed,
        shown=shown,
        tickets=[what[0] for kind, *what in child.told if kind == "ticket"],
        worked=[what[0] for kind, *what in child.told if kind == "worked"],
    )


def arguments(sweep: Sweep) -> list[str]:
    """Return what this module is run with."""
    return ["-m", "tests.integration.queue_kill_sweep", json.dumps(asdict(sweep))]


if __name__ == "__main__":
    swept(Sweep(**json.loads(sys.argv[1])))
