"""What a job says of itself while it runs: its phase, its counts, and that it lives."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TypedDict, Unpack

from ibid.domain.errors import StoreUnavailable
from ibid.domain.projects import Job, JobStatistics
from ibid.ports.projects import JobStore

BEAT_S = 5.0
REPORT_S = 0.25
MAX_MISSED = 2

logger = logging.getLogger(__name__)


class Counts(TypedDict, total=False):
    """Fields of `JobStatistics` to replace."""

    scanned: int
    new: int
    modified: int
    deleted: int
    unchanged: int
    failed: int
    skipped: Mapping[str, int]
    chunks: int
    chunks_embedded: int
    chunks_to_embed: int


class JobProgress:
    """One running job's progress, told to the store soon after it changes and every 5 seconds.

    Args:
        jobs: Where it is kept.
        job: The job.
        owner: Of its lease.
        beat_s: Longest time between two beats, in seconds; a third of the lease's term.
        report_s: Shortest time between two beats.
    """

    def __init__(
        self,
        jobs: JobStore,
        job: Job,
        *,
        owner: str,
        beat_s: float = BEAT_S,
        report_s: float = REPORT_S,
    ) -> None:
        self.statistics = JobStatistics()
        self._jobs = jobs
        self._job = job
        self._owner = owner
        self._beat_s = beat_s
        self._report_s = report_s
        self._phase = job.phase
        self._changed = asyncio.Event()

    def enter(self, phase: str, **counts: Unpack[Counts]) -> None:
        """Begin a phase."""
        self._phase = phase
        self.count(**counts)

    def count(self, **counts: Unpack[Counts]) -> None:
        """Replace some counts."""
        self.statistics = replace(self.statistics, **counts)
        self._changed.set()

    async def report(self) -> None:
        """Tell the store now.

        Raises:
            LeaseLost: The job is another owner's, has ended, or its project is gone.
        """
        self._changed.clear()
        await self._jobs.beat(
            self._job.id,
            tenant=self._job.tenant,
            owner=self._owner,
            phase=self._phase,
            statistics=self.statistics,
        )

    async def keep_reporting(self) -> None:
        """Tell the store until cancelled; two beats in a row may fail.

        Raises:
            LeaseLost: As above.
            StoreUnavailable: The third beat in a row failed.
        """
        missed = 0
        while True:
            try:
                await self.report()
                missed = 0
            except StoreUnavailable:
                missed += 1
                logger.warning("job beat missed", extra={"job_id": self._job.id})
                if missed > MAX_MISSED:
                    raise
            await asyncio.sleep(self._report_s)
            try:
                async with asyncio.timeout(self._beat_s - self._report_s):
                    await self._changed.wait()
            except TimeoutError:
                continue
