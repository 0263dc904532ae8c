import asyncio

import pytest

from ibid.domain.errors import LeaseLost, StoreUnavailable
from ibid.domain.projects import Job, JobState, JobStatistics
from ibid.indexing.ending import to_the_end
from ibid.indexing.progress import JobProgress
from tests.fakes.clock import FakeClock
from tests.fakes.records import FakeRecords

JOB = Job(
    tenant="acme",
    id="job",
    project_id="prj",
    state=JobState.QUEUED,
    phase="queued",
    statistics=JobStatistics(),
    error=None,
    started_at=FakeClock().now(),
    finished_at=None,
)


class Beats(FakeRecords):
    """Counts beats, and fails the first few."""

    def __init__(self, failing: int) -> None:
        super().__init__()
        self.seen: list[tuple[str, int]] = []
        self.failing = failing
        self.told: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
        self.enough = asyncio.Event()

    async def beat(
        self, job_id: str, *, tenant: str, owner: str, phase: str, statistics: JobStatistics
    ) -> None:
        assert (job_id, tenant, owner) == ("job", "acme", "me")
        self.seen.append((phase, statistics.scanned))
        self.told.put_nowait(self.seen[-1])
        if len(self.seen) >= 6:
            self.enough.set()
        if len(self.seen) <= self.failing:
            raise StoreUnavailable("away")


def progress(beats: Beats, *, beat_s: float) -> JobProgress:
    return JobProgress(
        beats,  # type: ignore[arg-type]  # only its beats are used
        JOB,
        owner="me",
        beat_s=beat_s,
        report_s=0.001,
    )


async def test_a_job_beats_though_nothing_changes_and_outlives_two_missed_beats() -> None:
    beats = Beats(failing=2)
    reporting = asyncio.create_task(progress(beats, beat_s=0.005).keep_reporting())

    async with asyncio.timeout(60):
        await beats.enough.wait()
    reporting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reporting

    assert set(beats.seen) == {("queued", 0)}


async def test_a_change_is_told_long_before_the_next_beat() -> None:
    beats = Beats(failing=0)
    told = progress(beats, beat_s=1_000)
    reporting = asyncio.create_task(told.keep_reporting())

    async with asyncio.timeout(60):
        for number in range(6):
            told.enter("scanning", scanned=number)
            while await beats.told.get() != ("scanning", number):
                pass
    reporting.cancel()
    await asyncio.gather(reporting, return_exceptions=True)

    assert beats.seen[-1] == ("scanning", 5)


async def test_three_missed_beats_in_a_row_are_an_error() -> None:
    with pytest.raises(StoreUnavailable):
        await progress(Beats(failing=3), beat_s=0.002).keep_reporting()


async def test_a_lost_lease_is_an_error_at_once() -> None:
    records = FakeRecords()

    with pytest.raises(LeaseLost):
        await JobProgress(records.jobs, JOB, owner="me").keep_reporting()


async def test_work_goes_to_its_end_however_often_it_is_cancelled() -> None:
    done: list[str] = []
    release = asyncio.Event()

    async def work() -> None:
        await release.wait()
        done.append("done")
        raise ValueError("dropped")

    task = asyncio.create_task(to_the_end(work()))
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0)
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert done == ["done"]


async def test_what_work_gives_or_raises_comes_out() -> None:
    async def fail() -> None:
        raise ValueError("this")

    assert await to_the_end(asyncio.sleep(0, "that")) == "that"
    with pytest.raises(ValueError, match="this"):
        await to_the_end(fail())
