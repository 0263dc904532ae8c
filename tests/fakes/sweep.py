"""Something that users do, a fault somewhere on its way, and what must hold afterwards."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace

from ibid.domain.conversations import LIVE_STATES
from ibid.domain.events import Done, Entry, Failed, Paused, Terminator
from ibid.runs.live_run import LiveRun
from ibid.runs.turns import NewTurn, Work
from tests.fakes.faults import InjectedError, Injector
from tests.fakes.run_bench import LIMITS, Bench, read, text
from tests.fakes.samples import ANN, a_turn
from tests.fakes.works import asking_work, stepped_work

EAGER = replace(LIMITS, flush_s=0.0, boundary_s=0.0, fresh_s=0.0, poll_s=0.001)
"""Each event is written as soon as it is shown, and each model call asks the store."""


class Asked:
    """What came of what was asked, as far as each reader got.

    Attributes:
        shown: By run, in the order that they began.
    """

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.shown: dict[LiveRun, list[Entry]] = {}

    @property
    def entries(self) -> list[Entry]:
        """What the first run has shown."""
        return next(iter(self.shown.values()), [])

    async def ask(self, work: Work, turn: NewTurn | None = None) -> None:
        """Start a run and read it to its end."""
        await self._read(await self.bench.engine.start(turn or a_turn(), work))

    async def answer(self, work: Work) -> None:
        """Answer the pause of the run that was asked last, if it has paused, and read on."""
        asked = list(self.shown)[-1].run
        if isinstance(asked.terminator, Paused):
            resumption = await self.bench.resumption(asked.id)
            await self._read(await self.bench.engine.resume(resumption, work))

    async def _read(self, live: LiveRun) -> None:
        entries = self.shown[live] = []
        async for entry in live.events(30):
            entries += [entry] if entry is not None else []  # at once: the next may fail

    async def check(self) -> None:
        """Whatever a reader saw is what a reload shows, and the conversation is free."""
        bench = self.bench
        for live in self.shown:
            await live.wait_ended()
        await bench.settle()
        assert await bench.records.runs.live() == {}
        for live, entries in self.shown.items():
            ends = [entry for entry in entries if isinstance(entry.event, Terminator)]
            if ends:
                await bench.check(live.id, entries)
            else:  # its reader met the fault
                assert await self._kept(live.id) == text(entries)
                assert [entry.id for entry in entries] == list(range(1, len(entries) + 1))
        await self._check_rows()
        await self._check_free()

    async def _kept(self, run_id: str) -> str:
        messages = await self.bench.messages()
        (answer,) = [one for one in messages if (one.run_id, one.role) == (run_id, "assistant")]
        return answer.content

    async def _check_rows(self) -> None:
        """Every run that was kept has one question, one answer, and a journal that says it."""
        bench = self.bench
        page = await bench.records.runs.list_for("c1", principal=ANN, cursor=None, limit=200)
        messages = await bench.messages()
        assert len(messages) == 2 * len(page.items)
        for run in page.items:
            assert run.state not in LIVE_STATES
            assert sum(one.run_id == run.id for one in messages) == 2
            entries = (await bench.records.runs.entries(run, after=0)).entries
            assert [entry.event for entry in entries if isinstance(entry.event, Terminator)] == [
                run.terminator
            ]
            assert text(entries) == await self._kept(run.id)

    async def _check_free(self) -> None:
        """The conversation takes another turn, or the answer to its pause."""
        bench = self.bench
        page = await bench.records.runs.list_for("c1", principal=ANN, cursor=None, limit=200)
        waiting = [run for run in page.items if isinstance(run.terminator, Paused)]
        if waiting and (run := waiting[-1]).resumed_by is None:
            resumption = await bench.resumption(run.id)
            live = await bench.another(owner="next").resume(resumption, asking_work("next"))
            assert isinstance(await bench.check(live.id, await read(live)), Done)
        await bench.check_free()


Deed = Callable[[Asked], Coroutine[None, None, None]]


def asking(work: Work) -> Deed:
    """One question, read to its end."""
    return lambda asked: asked.ask(work)


async def asking_and_answering(asked: Asked) -> None:
    """A question, which is asked back, and its answer."""
    await asked.ask(asking_work())
    await asked.answer(asking_work("a", "b"))


async def cancelled_elsewhere(asked: Asked) -> None:
    """A question that another process cancels between two model calls."""
    other = asked.bench.another(owner="other")
    calls: list[str] = []

    async def cancel() -> None:
        await other.cancel_run("c1-1", principal=ANN)
        calls.append("cancelled")

    step = "one", lambda: asyncio.ensure_future(cancel()), "two"
    await asked.ask(stepped_work(*step, calls=calls))
    assert "cancelled" not in calls or "two" not in calls


async def one_behind_the_other(asked: Asked) -> None:
    """Two questions on one thread, the second behind the first."""
    turn = replace(a_turn(), strategy="enqueue")
    both = [
        asyncio.create_task(asked.ask(stepped_work("a", "b"), turn)),
        asyncio.create_task(asked.ask(stepped_work("c"), turn)),
    ]
    try:
        await asyncio.wait(both)
    finally:
        await asyncio.wait(both)  # if the fault was met in the line above
    for one in both:
        await one


async def sweep_once(bench: Bench, deed: Deed, injector: Injector) -> Asked:
    """Do it with the injector's fault in some task, and check what came of it."""
    loop = asyncio.get_running_loop()
    asked = Asked(bench)
    loop.set_task_factory(injector)
    try:
        doing = loop.create_task(deed(asked))
        await asyncio.wait({doing})
        for live in asked.shown:
            await live.wait_ended()
    finally:
        loop.set_task_factory(None)
    if not doing.cancelled():
        error = doing.exception()
        assert error is None or isinstance(error, InjectedError | asyncio.CancelledError), error
    await asked.check()
    return asked


def failed(entries: list[Entry]) -> Failed:
    """The failure that a reader saw last."""
    end = entries[-1].event
    assert isinstance(end, Failed)
    return end
