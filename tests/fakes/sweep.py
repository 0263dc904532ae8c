"""One question, a fault somewhere on its way, and what must hold afterwards."""

import asyncio

from ibid.domain.events import Done, Entry, Failed
from ibid.runs.live_run import LiveRun
from ibid.runs.turns import Work
from tests.fakes.faults import InjectedError, Injector
from tests.fakes.run_bench import Bench, text
from tests.fakes.samples import a_turn


class Asked:
    """What came of a question, as far as the reader got."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.entries: list[Entry] = []
        self.runs: list[LiveRun] = []

    async def ask(self, work: Work) -> None:
        """Start a run and read it to its end."""
        live = await self._bench.engine.start(a_turn(), work)
        self.runs.append(live)
        async for entry in live.events(30):
            self.entries += [entry] if entry is not None else []  # at once: the next may fail

    async def check(self) -> None:
        """Whatever the reader saw is what a reload shows, and the conversation is free."""
        bench = self._bench
        for live in self.runs:
            await live.wait_ended()
        await bench.settle()
        assert await bench.records.runs.live() == {}
        ends = [entry for entry in self.entries if isinstance(entry.event, Done | Failed)]
        assert len(ends) <= 1
        if ends:
            await bench.check(self.runs[0].id, self.entries)
        else:  # the start or the reader met the fault: nobody reads any more
            messages = await bench.messages()
            assert [message.role for message in messages] in ([], ["user", "assistant"])
            assert "".join(message.content for message in messages[1:]) == text(self.entries)
            numbers = list(range(1, len(self.entries) + 1))
            assert [entry.id for entry in self.entries] == numbers
        await bench.check_free()


async def sweep_once(bench: Bench, work: Work, injector: Injector) -> Asked:
    """Ask with the injector's fault in some task, and check what came of it."""
    loop = asyncio.get_running_loop()
    asked = Asked(bench)
    loop.set_task_factory(injector)
    try:
        asking = loop.create_task(asked.ask(work))
        await asyncio.wait({asking})
        for live in asked.runs:
            await live.wait_ended()
    finally:
        loop.set_task_factory(None)
    if not asking.cancelled():
        error = asking.exception()
        assert error is None or isinstance(error, InjectedError)
    await asked.check()
    return asked
