"""An end is kept before it is shown, and what can't be kept is owed."""

import asyncio
from dataclasses import replace
from datetime import datetime

import pytest

from ibid.domain.answers import FinishReason
from ibid.domain.errors import LeaseLost, StoreUnavailable
from ibid.domain.events import Done, Entry, Failed
from tests.fakes.clock import FakeClock
from tests.fakes.faults import Gate
from tests.fakes.run_bench import LIMITS, Bench, read, text
from tests.fakes.samples import a_turn, scripted_work


class Outage:
    """Faults at one point: so many times, or until it is over."""

    def __init__(self, point: str, error: Exception, *, times: float = float("inf")) -> None:
        self._point = point
        self._error = error
        self.times = times
        self.met = asyncio.Event()

    async def __call__(self, point: str) -> None:
        if point == self._point and self.times > 0:
            self.times -= 1
            self.met.set()
            raise self._error


AWAY = StoreUnavailable("away")
BROKEN = TypeError("def secret(): ...")


def _failed(entries: list[Entry]) -> Failed:
    end = entries[-1].event
    assert isinstance(end, Failed)
    return end


@pytest.mark.parametrize("point", ["end:before", "end:after"])
async def test_a_store_that_comes_back_in_time_costs_nothing(bench: Bench, point: str) -> None:
    engine = bench.another(at=Outage(point, AWAY, times=1))
    live = await engine.start(a_turn(), scripted_work("a"))

    entries = await read(live)

    assert isinstance(await bench.check(live.id, entries), Done)


async def test_an_end_that_cant_be_kept_in_time_is_kept_later_as_it_was_shown(
    bench: Bench,
) -> None:
    outage = Outage("end:before", AWAY)
    engine = bench.another(at=outage)
    live = await engine.start(a_turn(), scripted_work("a", "b"))

    entries = await read(live)
    assert len(await bench.messages()) == 1
    assert len(await bench.records.runs.live()) == 1
    outage.times = 0
    assert await engine.drain(10)

    end = await bench.check(live.id, entries)
    assert isinstance(end, Failed)
    assert (end.code, end.message_id) == ("STORE_UNAVAILABLE", None)
    assert text(entries) == "ab"
    await bench.check_free()


async def test_an_owed_run_keeps_its_lease_and_its_place_goes_on(bench: Bench) -> None:
    outage = Outage("end:before", AWAY)
    engine = bench.another(at=outage, limits=replace(LIMITS, process=1))
    live = await engine.start(a_turn(), scripted_work("a"))
    await read(live)

    for _ in range(6):
        await engine.look()
        await bench.another(owner="other").look()
        bench.clock.move(5.0)

    assert (await bench.run(live.id)).beat >= 5
    outage.times = 0
    await engine.drain(10)
    assert _code(await bench.run_end(live.id)) == "STORE_UNAVAILABLE"


def _code(end: object) -> str:
    assert isinstance(end, Failed)
    return end.code


async def test_an_owed_end_of_a_conversation_that_goes_is_forgotten(bench: Bench) -> None:
    outage = Outage("end:before", AWAY)
    engine = bench.another(at=outage)
    live = await engine.start(a_turn(), scripted_work("a"))
    await read(live)
    await bench.delete()

    outage.times = 0

    assert await engine.drain(10)


async def test_a_drain_does_not_wait_for_a_store_for_ever(bench: Bench) -> None:
    outage = Outage("end:before", AWAY)
    engine = bench.another(at=outage, limits=replace(LIMITS, keep_s=60.0))
    live = await engine.start(a_turn(), scripted_work("a"))
    reading = asyncio.create_task(read(live))
    await outage.met.wait()

    all_kept = await engine.drain(1.0)

    assert not all_kept
    assert _failed(await reading).code == "STORE_UNAVAILABLE"
    outage.times = 0


@pytest.mark.parametrize("point", ["end:before", "end:after"])
async def test_a_result_that_cant_be_kept_becomes_a_failure_with_the_same_text(
    bench: Bench, point: str
) -> None:
    engine = bench.another(at=Outage(point, BROKEN, times=1))
    live = await engine.start(a_turn(), scripted_work("a"))

    entries = await read(live)

    end = await bench.check(live.id, entries)
    if point == "end:after":
        assert isinstance(end, Done)
    else:
        assert isinstance(end, Failed)
        assert (end.code, end.message_id) == ("INTERNAL_ERROR", live.message_id)
        assert "secret" not in end.message


async def test_a_store_that_always_breaks_leaves_one_terminator(bench: Bench) -> None:
    engine = bench.another(at=Outage("end:before", BROKEN))
    live = await engine.start(a_turn(), scripted_work("a"))

    entries = await read(live)

    end = _failed(entries)
    assert (end.code, end.message_id, text(entries)) == ("INTERNAL_ERROR", None, "a")
    assert await engine.drain(10)  # given up: a watcher ends the run


async def test_a_store_that_never_answers_leaves_one_terminator(bench: Bench) -> None:
    never = asyncio.Event()

    async def hang(point: str) -> None:
        if point == "end:before":
            await never.wait()

    engine = bench.another(at=hang, limits=replace(LIMITS, keep_s=0.4))
    live = await engine.start(a_turn(), scripted_work("a"))

    entries = await read(live)

    assert _failed(entries).code == "STORE_UNAVAILABLE"
    never.set()
    await engine.drain(10)


class BrokenClock(FakeClock):
    """Fails so many times."""

    failures = 0

    def now(self) -> datetime:
        if self.failures:
            self.failures -= 1
            raise OSError
        return super().now()


@pytest.mark.parametrize("failures", [1, 5, 6])
async def test_an_end_that_fails_before_it_is_tried_is_tried_again(
    bench: Bench, failures: int
) -> None:
    clock = bench.clock = BrokenClock()
    engine = bench.another()
    live = await engine.start(a_turn(), scripted_work("a"))
    clock.failures = failures

    entries = await read(live)
    await bench.settle()

    end = await bench.check(live.id, entries)
    if failures == 6:
        assert (_code(end), end.message_id) == ("INTERNAL_ERROR", None)
    else:
        assert isinstance(end, Done)


async def test_a_run_of_another_owner_shows_that_it_was_lost(bench: Bench) -> None:
    engine = bench.another(at=Outage("end:before", LeaseLost("another owner")))
    live = await engine.start(a_turn(), scripted_work("a"))

    end = _failed(await read(live))

    assert (end.code, end.message_id) == ("LEASE_LOST", None)


@pytest.mark.parametrize("is_owed", [False, True])
async def test_an_end_that_waits_while_its_run_beats_on_is_kept(
    bench: Bench, *, is_owed: bool
) -> None:
    gate = Gate("end:before")
    gate.shut()
    outage = Outage("end:before", AWAY)

    async def at(point: str) -> None:
        if is_owed:
            await outage(point)
        await gate(point)

    engine = bench.another(at=at, limits=replace(LIMITS, keep_s=0.2 if is_owed else 60.0))
    live = await engine.start(a_turn(), scripted_work("a"))
    reading = asyncio.create_task(read(live))
    if is_owed:
        await reading
        outage.times = 0
    await gate.met.wait()

    for _ in range(3):
        bench.clock.move(LIMITS.beat_s)
        await engine.look()
    gate.open()

    entries = await reading
    await bench.settle()
    end = await bench.check(live.id, entries)
    assert isinstance(end, Failed if is_owed else Done)


@pytest.mark.parametrize("error", [AWAY, BROKEN])
@pytest.mark.parametrize("point", ["begin:before", "begin:after"])
async def test_a_start_that_fails_leaves_no_live_run(
    bench: Bench, point: str, error: Exception
) -> None:
    engine = bench.another(at=Outage(point, error))

    with pytest.raises(type(error)):
        await engine.start(a_turn(), scripted_work("a"))
    await engine.drain(10)

    assert await bench.records.runs.live() == {}
    kept = [(message.content, message.finish_reason) for message in await bench.messages()]
    failed = [("Where is the app made?", None), ("", FinishReason.ERROR)]
    assert kept == (failed if point == "begin:after" else [])
    await bench.check_free()


async def test_a_start_that_is_cancelled_leaves_no_live_run(bench: Bench) -> None:
    for steps in range(6):
        starting = asyncio.create_task(bench.engine.start(a_turn(), scripted_work("a")))
        for _ in range(steps):
            await asyncio.sleep(0)
        starting.cancel()
        (outcome,) = await asyncio.gather(starting, return_exceptions=True)
        if not isinstance(outcome, BaseException):
            await read(outcome)

        await bench.settle()

        assert await bench.records.runs.live() == {}
    await bench.check_free()
