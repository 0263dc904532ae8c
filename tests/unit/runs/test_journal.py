"""What was shown is kept in time, in few writes; each write tells if the run may go on."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import cast

import pytest

from ibid.domain.errors import StoreUnavailable
from ibid.domain.events import RESERVED_IDS, Entry, Phase, StatusChanged, TokenDelta
from ibid.ports.runs import RunStore
from ibid.runs.journal import Journal
from ibid.runs.limits import RunLimits
from ibid.runs.live_run import LiveRun
from ibid.runs.terminator import Stop
from ibid.runs.transcript import Transcript
from tests.fakes.faults import Faulty, Gate
from tests.fakes.run_bench import LIMITS, Bench, read
from tests.fakes.samples import ANN, PLACES, a_question, a_run, a_turn, scripted_work
from tests.fakes.works import stepped_work

POLICY = RunLimits()


class Writer:
    """A journal of a run that nobody else moves, and what it asked of the store."""

    def __init__(
        self,
        bench: Bench,
        journal: Journal,
        transcript: Transcript,
        told: list[Stop | None],
    ) -> None:
        self._bench = bench
        self.journal = journal
        self.transcript = transcript
        self.calls: list[str] = []
        self.told = told
        self.error: Exception | None = None

    @classmethod
    async def make(cls, bench: Bench) -> "Writer":
        run = a_run()
        begun = await bench.records.runs.begin(
            run, question=a_question(run), title="t", limits=PLACES
        )
        transcript = Transcript()
        told: list[Stop | None] = []

        async def at(point: str) -> None:
            await writer.at(point)

        journal = Journal(
            begun.run,
            transcript,
            runs=cast("RunStore", Faulty(bench.records.runs, at)),
            clock=bench.clock,
            limits=POLICY,
            told=told.append,
        )
        writer = cls(bench, journal, transcript, told)
        return writer

    async def at(self, point: str) -> None:
        name, when = point.split(":")
        if when == "before":
            self.calls.append(name)
            if self.error is not None:
                raise self.error

    async def show(self, *texts: str, phase: Phase | None = None) -> None:
        if phase is not None:
            self.transcript.show(StatusChanged(phase=phase))
        for said in texts:
            self.transcript.show(TokenDelta(text=said))
        self.journal.shown(self.transcript.last_id)
        await self.journal.wait_written(5)

    async def wait(self, seconds: float) -> None:
        self._bench.clock.move(seconds)
        self.journal.tick()
        await self.journal.wait_written(5)

    async def kept(self) -> int:
        return (await self._bench.run(self.journal.run.id)).last_event_id


async def test_what_was_shown_is_kept_after_four_fifths_of_a_second(bench: Bench) -> None:
    writer = await Writer.make(bench)
    await writer.wait(0.5)
    await writer.show("a")

    await writer.wait(0.79)
    assert "append" not in writer.calls
    await writer.wait(0.02)

    assert writer.calls[-1] == "append"
    assert await writer.kept() == writer.journal.kept_id == 2


async def test_much_text_is_kept_at_once_and_in_one_write(bench: Bench) -> None:
    writer = await Writer.make(bench)

    await writer.show("é" * 4_000)
    assert writer.calls == []
    await writer.show("é" * 96)

    assert writer.calls == ["append"]


async def test_a_boundary_is_kept_at_once_unless_there_was_a_write_just_now(bench: Bench) -> None:
    writer = await Writer.make(bench)

    await writer.show(phase=Phase.CLASSIFYING)
    await writer.wait(0.2)
    assert writer.calls == []
    await writer.wait(0.06)
    await writer.wait(0.1)
    await writer.show(phase=Phase.RETRIEVING)
    assert writer.calls == ["append"]
    await writer.wait(0.3)

    assert writer.calls == ["append", "append"]


async def test_five_hundred_tokens_at_125_a_second_take_five_writes(bench: Bench) -> None:
    writer = await Writer.make(bench)
    for _ in range(500):
        await writer.show("token ")
        await writer.wait(0.008)

    assert writer.calls.count("append") in {4, 5}
    assert writer.calls.count("is_cancelled") == 0


async def test_a_run_that_is_silent_looks_for_a_cancel_and_beats(bench: Bench) -> None:
    writer = await Writer.make(bench)
    for _ in range(160):
        await writer.wait(0.1)

    assert writer.calls.count("append") == 3
    assert 15 <= writer.calls.count("is_cancelled") <= 19
    assert (await bench.run("c1-1")).beat == 3


async def test_who_asks_keeps_what_was_shown_or_only_looks(bench: Bench) -> None:
    writer = await Writer.make(bench)

    await writer.journal.ask()  # begun just now
    bench.clock.move(0.03)
    await writer.journal.ask()
    await writer.journal.ask()  # told just now
    bench.clock.move(0.3)
    await writer.show("a")
    await writer.journal.ask()

    assert writer.calls == ["is_cancelled", "append"]


async def test_a_cancel_is_told_by_whatever_is_written_next(bench: Bench) -> None:
    writer = await Writer.make(bench)
    await bench.records.runs.request_cancel("c1-1", principal=ANN)

    bench.clock.move(0.03)
    await writer.journal.ask()
    await writer.show("a")
    await writer.wait(0.81)

    assert writer.calls == ["is_cancelled", "append"]
    assert writer.told == [Stop.CANCELLED, Stop.CANCELLED]


async def test_a_write_under_way_does_not_answer_who_asks_after_it_began(bench: Bench) -> None:
    writer = await Writer.make(bench)
    bench.clock.move(1.0)
    writer.journal.tick()
    bench.clock.move(0.1)

    await writer.journal.ask()

    assert writer.calls == ["is_cancelled", "is_cancelled"]


async def test_a_store_that_is_away_is_tried_again_and_lets_the_run_go_on(bench: Bench) -> None:
    writer = await Writer.make(bench)
    writer.error = StoreUnavailable("away")
    await writer.show("a")
    await writer.wait(0.81)
    await writer.show("b")
    await writer.journal.ask()
    assert writer.calls == ["append"]

    writer.error = None
    await writer.wait(0.81)

    assert writer.calls == ["append", "append"]
    assert writer.told == [None, None]
    assert await writer.kept() == 3


async def test_a_lease_that_is_lost_is_told_once_and_nothing_more_is_written(bench: Bench) -> None:
    writer = await Writer.make(bench)
    await bench.delete()

    await writer.wait(5.0)
    await writer.wait(5.0)
    await writer.journal.ask()

    assert writer.calls == ["append"]
    assert writer.told == [Stop.LEASE_LOST]


async def test_a_write_is_finished_though_who_waits_for_it_is_cancelled(bench: Bench) -> None:
    writer = await Writer.make(bench)
    await writer.show("a")
    bench.clock.move(0.5)
    asking = asyncio.create_task(writer.journal.ask())
    await asyncio.sleep(0)

    asking.cancel()
    await writer.journal.wait_written(5)

    assert await writer.kept() == 2


async def test_no_more_is_shown_above_what_is_kept_than_ids_are_reserved(bench: Bench) -> None:
    gate = Gate("append:before")
    gate.shut()
    engine = bench.another(at=gate)
    turn = replace(a_turn(), attended=False)
    live = await engine.start(turn, scripted_work(*("x" for _ in range(RESERVED_IDS + 50))))

    await asyncio.wait_for(gate.met.wait(), 60)
    for _ in range(4 * RESERVED_IDS):
        await asyncio.sleep(0)
    shown = [entry async for entry in _shown_now(live)]
    gate.open()
    await live.wait_ended()

    assert len(shown) == RESERVED_IDS
    run = await bench.run(live.id)
    assert (run.last_event_id, run.state) == (RESERVED_IDS + 53, "completed")


async def _shown_now(live: LiveRun) -> AsyncIterator[Entry]:
    events = live.follow(0.001, after=0)
    async for entry in events:
        if entry is None:
            break
        yield entry
    await events.aclose()


async def test_a_run_goes_on_while_its_journal_is_away(bench: Bench) -> None:
    async def away(point: str) -> None:
        if point in {"append:before", "is_cancelled:before"}:
            raise StoreUnavailable("away")

    engine = bench.another(at=away, limits=replace(LIMITS, flush_s=0.0, fresh_s=0.0))
    live = await engine.start(a_turn(), stepped_work("a", "b", "c"))

    await bench.check(live.id, await read(live))


@pytest.mark.parametrize("error", [StoreUnavailable("away"), RuntimeError()])
async def test_a_write_whose_answer_is_lost_is_not_kept_twice(
    bench: Bench, error: Exception
) -> None:
    faults = 1

    async def lose(point: str) -> None:
        nonlocal faults
        if point == "append:after" and faults:
            faults -= 1
            raise error

    limits = replace(LIMITS, flush_s=0.0, boundary_s=0.0)
    live = await bench.another(at=lose, limits=limits).start(a_turn(), scripted_work(*"abcd"))

    await bench.check(live.id, await read(live))
    assert faults == 0
