"""An engine on stores, how to read from it, and what must hold of what was read."""

import asyncio
from collections.abc import Sequence
from typing import cast

from ibid.domain.conversations import Message, Run
from ibid.domain.events import Done, Entry, Failed, Terminator, TokenDelta
from ibid.ports.conversations import ConversationStore
from ibid.ports.runs import RunStore
from ibid.runs.engine import RunEngine
from ibid.runs.limits import RunLimits
from ibid.runs.live_run import LiveRun
from ibid.runs.states import end_state, finish_reason
from ibid.runs.turns import NewResumption
from tests.fakes.clock import FakeClock
from tests.fakes.faults import At, Faulty
from tests.fakes.records import FakeRecords, Records
from tests.fakes.samples import ANN, a_conversation, a_project, a_turn, scripted_work

LIMITS = RunLimits(run_timeout_s=60.0, stop_s=0.2, keep_s=0.2, beat_s=5.0, term_s=15.0, unread=8)


class Bench:
    """Stores, a clock, and this process's engine."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self.clock: FakeClock = FakeClock()
        self._engines: list[RunEngine] = []
        self.engine = self.another()

    @classmethod
    async def make(cls, records: Records | None = None) -> "Bench":
        """A project `p1` and Ann's conversation `c1`, on fakes unless there are other stores."""
        bench = cls(records or FakeRecords())
        await bench.records.projects.create(a_project())
        await bench.records.conversations.create(a_conversation())
        return bench

    def another(
        self, *, owner: str = "me", limits: RunLimits = LIMITS, at: At | None = None
    ) -> RunEngine:
        """An engine of another process, or one whose stores have faults."""
        runs: RunStore = self.records.runs
        conversations: ConversationStore = self.records.conversations
        if at is not None:
            runs = cast("RunStore", Faulty(runs, at))
            conversations = cast("ConversationStore", Faulty(conversations, at))
        engine = RunEngine(
            conversations=conversations, runs=runs, clock=self.clock, limits=limits, owner=owner
        )
        self._engines.append(engine)
        return engine

    async def settle(self) -> None:
        """Wait until no end is owed."""
        for task in asyncio.all_tasks():
            if task.get_name().startswith("owed end"):
                await asyncio.wait({task}, timeout=30)

    async def delete(self) -> None:
        """Delete the conversation."""
        await self.records.conversations.delete("c1", principal=ANN)

    async def run_end(self, run_id: str) -> Terminator | None:
        return (await self.run(run_id)).terminator

    async def close(self) -> None:
        """End all that runs."""
        for engine in self._engines:
            await engine.drain(5)

    async def messages(self) -> Sequence[Message]:
        return await self.records.conversations.latest_messages("c1", principal=ANN, limit=200)

    async def run(self, run_id: str) -> Run:
        return await self.records.runs.get(run_id, principal=ANN)

    async def check(self, run_id: str, entries: Sequence[Entry]) -> Terminator:
        """What a reader saw to the end is in order, and is what a reload shows."""
        *before, last = entries
        assert isinstance(last.event, Terminator)
        assert not [entry for entry in before if isinstance(entry.event, Terminator)]
        assert [entry.id for entry in before] == list(range(1, len(entries)))
        run = await self.run(run_id)
        assert (run.terminator, run.last_event_id) == (last.event, last.id)
        assert run.state is end_state(last.event)
        assert (await self.records.runs.entries(run, after=0)).entries == entries
        answers = [
            message
            for message in await self.messages()
            if (message.run_id, message.role) == (run_id, "assistant")
        ]
        assert [answer.content for answer in answers] == [text(before)]
        (answer,) = answers
        assert answer.id == run.message_id
        assert last.event.message_id in {run.message_id, None}
        assert answer.finish_reason is finish_reason(last.event)
        assert answer.error_code == (last.event.code if isinstance(last.event, Failed) else None)
        if isinstance(last.event, Done):
            assert (answer.citations, answer.cited_indexes) == (
                last.event.citations,
                last.event.cited_indexes,
            )
        assert await self.records.runs.live() == {}
        return last.event

    async def resumption(self, run_id: str, answer: str = "the first") -> NewResumption:
        """Ann's answer to a paused run."""
        return NewResumption(
            principal=ANN,
            conversation=await self.records.conversations.get("c1", principal=ANN),
            project=a_project(),
            paused=await self.run(run_id),
            question="Where is the app made?",
            answer=answer,
        )

    async def check_free(self) -> None:
        """The conversation takes another turn, which ends well."""
        live = await self.another(owner="next").start(a_turn(), scripted_work("next"))
        assert isinstance(await self.check(live.id, await read(live)), Done)


def text(entries: Sequence[Entry]) -> str:
    """The tokens that a reader saw."""
    return "".join(entry.event.text for entry in entries if isinstance(entry.event, TokenDelta))


async def followed(
    engine: RunEngine, run_id: str, *, after: int = 0, ping_s: float = 30
) -> list[Entry]:
    """Follow a run to its end; pings are passed over."""
    view = await engine.follow(run_id, principal=ANN, after=after)
    return [entry async for entry in view.events(ping_s) if entry is not None]


async def read(live: LiveRun, *, most: int | None = None) -> list[Entry]:
    """Read to the end, or leave after so many entries; pings are passed over."""
    entries: list[Entry] = []
    events = live.events(30)
    async for entry in events:
        if entry is not None:
            entries.append(entry)
        if len(entries) == most:
            break
    await events.aclose()
    return entries
