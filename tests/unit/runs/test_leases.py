"""A lease is dead only after a full term of looks in which its counter did not move."""

import asyncio
from collections.abc import Mapping
from typing import cast

import pytest

from ibid.domain.errors import StoreUnavailable
from ibid.domain.projects import JobState
from ibid.ports.projects import JobStore
from ibid.runs.leases import JobWatch, LeaseObserver
from ibid.runs.limits import RunLimits
from tests.fakes.clock import FakeClock
from tests.fakes.faults import Faulty
from tests.fakes.records import FakeJobs, FakeRecords
from tests.fakes.samples import a_job, a_project

LIMITS = RunLimits(beat_s=5.0, term_s=15.0)
KEY = ("acme", "r1")


async def _look(observer: LeaseObserver, clock: FakeClock, beat: int, after: float) -> bool:
    clock.move(after)
    return list(await observer.look({KEY: beat})) == [(KEY, beat)]


def _observer(clock: FakeClock, *stalls: float) -> LeaseObserver:
    """One whose writes wait so many seconds in turn, then none; a negative stall is no answer."""
    left = list(stalls)

    async def try_write(_: tuple[str, str]) -> None:
        stall = left.pop(0) if left else 0.0
        clock.move(abs(stall))
        if stall < 0:
            raise StoreUnavailable("busy")

    return LeaseObserver(clock, LIMITS, try_write=try_write)


async def test_a_counter_that_stands_still_for_a_term_is_dead() -> None:
    clock = FakeClock()
    observer = _observer(clock)

    looks = [await _look(observer, clock, 7, 5.0) for _ in range(5)]

    assert looks == [False, False, False, True, True]


async def test_a_beat_within_the_term_starts_it_anew() -> None:
    clock = FakeClock()
    observer = _observer(clock)

    looks = [await _look(observer, clock, beat, 5.0) for beat in (0, 0, 0, 1, 1, 1, 1)]

    assert looks == [False, False, False, False, False, False, True]


async def test_where_many_died_together_a_few_at_a_time_are_tried() -> None:
    clock = FakeClock()
    under_way: list[int] = [0]

    async def try_write(_: tuple[str, str]) -> None:
        under_way.append(under_way[-1] + 1)
        await asyncio.sleep(0)
        under_way.append(under_way[-1] - 1)

    observer = LeaseObserver(clock, LIMITS, try_write=try_write)
    live = {("acme", f"r{number}"): 7 for number in range(11)}
    dead: dict[tuple[str, str], int] = {}
    while not dead:
        dead = dict(await observer.look(live))
        clock.move(5.0)

    assert dead == live
    assert max(under_way) == 4


async def test_an_observer_that_was_suspended_has_not_watched() -> None:
    clock = FakeClock()
    observer = _observer(clock)
    await _look(observer, clock, 0, 5.0)

    after_the_night = await _look(observer, clock, 0, 30_000.0)

    assert not after_the_night
    assert await _look(observer, clock, 0, 5.0)


async def test_who_found_the_store_away_has_not_watched() -> None:
    clock = FakeClock()
    observer = _observer(clock)
    for _ in range(4):
        await _look(observer, clock, 0, 5.0)

    observer.forget()

    looks = [await _look(observer, clock, 0, 5.0) for _ in range(4)]
    assert looks == [False, False, False, True]


async def test_a_lease_that_comes_again_is_watched_anew() -> None:
    clock = FakeClock()
    observer = _observer(clock)
    for _ in range(3):
        await _look(observer, clock, 0, 5.0)

    await observer.look({})

    assert not await _look(observer, clock, 0, 5.0)


async def test_a_term_in_which_no_write_went_through_ends_nobody() -> None:
    """Reads are answered all along, and the lock that held up the beats goes as the end is due."""
    clock = FakeClock()
    observer = _observer(clock, 30.0)
    looks = [await _look(observer, clock, 0, 5.0) for _ in range(3)]

    may_beat_again = await _look(observer, clock, 0, 0.9)

    assert looks == [False, False, False]
    assert not may_beat_again
    assert not await _look(observer, clock, 1, 4.1)


async def test_who_has_not_beaten_an_interval_after_writes_went_through_is_dead() -> None:
    clock = FakeClock()
    observer = _observer(clock, 30.0)

    looks = [await _look(observer, clock, 0, 5.0) for _ in range(4)]

    assert looks == [False, False, False, True]


async def test_who_gets_no_write_through_watches_all_anew() -> None:
    clock = FakeClock()
    observer = _observer(clock, -2.0)
    for _ in range(2):
        await _look(observer, clock, 0, 5.0)

    with pytest.raises(StoreUnavailable):
        await _look(observer, clock, 0, 5.0)

    looks = [await _look(observer, clock, 0, 5.0) for _ in range(4)]
    assert looks == [False, False, False, True]


async def test_one_write_is_tried_for_one_that_seems_dead_and_none_for_who_beats() -> None:
    clock = FakeClock()
    tried: list[tuple[str, str]] = []

    async def try_write(key: tuple[str, str]) -> None:
        tried.append(key)

    observer = LeaseObserver(clock, LIMITS, try_write=try_write)

    for look in range(5):
        await observer.look({KEY: 0, ("acme", "r2"): look // 2})
        clock.move(5.0)

    assert tried == [KEY]


async def test_a_dead_job_is_ended_and_a_beating_one_is_not() -> None:
    records, clock = FakeRecords(), FakeClock()
    for number in (1, 2):
        await records.projects.create(a_project(f"p{number}"))
        await records.jobs.begin(a_job(f"j{number}", project_id=f"p{number}"), owner="me")
    watch = JobWatch(records.jobs, clock, LIMITS)

    for _ in range(4):
        await watch.look()
        clock.move(5.0)
        await records.jobs.beat(
            "j2", tenant="acme", owner="me", phase="lexical", statistics=a_job().statistics
        )

    dead, alive = [await records.jobs.get(job, tenant="acme") for job in ("j1", "j2")]
    assert dead.state is JobState.FAILED
    assert dead.finished_at is not None
    assert alive.state is JobState.RUNNING


async def test_a_job_that_ends_as_it_is_taken_for_dead_stays_as_it_ended() -> None:
    records, clock = FakeRecords(), FakeClock()
    await records.projects.create(a_project())
    await records.jobs.begin(a_job(), owner="me")

    async def end_it(point: str) -> None:
        if point == "take_over:before":
            await records.jobs.end(
                "j1",
                tenant="acme",
                owner="me",
                state=JobState.SUCCEEDED,
                statistics=a_job().statistics,
                error=None,
                at=clock.now(),
            )

    watch = JobWatch(cast("JobStore", Faulty(records.jobs, end_it)), clock, LIMITS)
    for _ in range(4):
        await watch.look()
        clock.move(5.0)

    assert (await records.jobs.get("j1", tenant="acme")).state is JobState.SUCCEEDED


class _FailsAtFirst(FakeJobs):
    def __init__(self, jobs: FakeJobs, fault: Exception) -> None:
        self._jobs = jobs
        self._fault = fault
        self.looks = 0
        self.looked_again = asyncio.Event()

    async def live(self) -> Mapping[tuple[str, str], int]:
        self.looks += 1
        if self.looks == 1:
            raise self._fault
        self.looked_again.set()
        return await self._jobs.live()


@pytest.mark.parametrize("fault", [StoreUnavailable("away"), ValueError("a damaged row")])
async def test_a_watch_outlives_a_look_that_fails(fault: Exception) -> None:
    jobs = _FailsAtFirst(FakeRecords().jobs, fault)
    watch = JobWatch(jobs, FakeClock(), RunLimits(beat_s=0.001))

    watching = asyncio.create_task(watch.watch())
    await asyncio.wait_for(jobs.looked_again.wait(), 60)
    watching.cancel()

    with pytest.raises(asyncio.CancelledError):
        await watching
