"""Indexing jobs that run in this process, beside whatever else it serves."""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable

from ibid.domain.errors import IbidError
from ibid.domain.projects import Job, JobState, JobStatistics, Project, Source
from ibid.ports.clock import Clock
from ibid.ports.projects import JobStore, ProjectStore

logger = logging.getLogger(__name__)


class IndexJobs:
    """Starts jobs and keeps their tasks until they end.

    Args:
        projects: Where a project's source is kept.
        jobs: Where jobs and their leases are kept.
        run_job: Runs one job to its end and records that end.
        clock: For the job's start.
        owner: This process's random id: the owner of its leases.
    """

    def __init__(
        self,
        *,
        projects: ProjectStore,
        jobs: JobStore,
        run_job: Callable[[Job, bool], Awaitable[None]],
        clock: Clock,
        owner: str,
    ) -> None:
        self._projects = projects
        self._jobs = jobs
        self._run_job = run_job
        self._clock = clock
        self._owner = owner
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(
        self,
        project: Project,
        *,
        source: Source | None,
        force: bool,
        job_id: str | None = None,
    ) -> tuple[str, bool]:
        """Begin a job, unless one is live.

        Args:
            project: The project to index.
            source: Replaces the project's once the job has begun; None keeps it.
            force: Index again even if nothing has changed.
            job_id: Of the job, if it is begun; never used before. None mints one.

        Returns:
            The job's id, and True if it is new, False if a live one goes on.

        Raises:
            ProjectNotFound: The project was deleted meanwhile.
        """
        job = Job(
            tenant=project.tenant,
            id=job_id or uuid.uuid4().hex,
            project_id=project.id,
            state=JobState.QUEUED,
            phase="queued",
            statistics=JobStatistics(),
            error=None,
            started_at=self._clock.now(),
            finished_at=None,
        )
        live = await self._jobs.begin(job, owner=self._owner)
        if live is not None:
            return live.id, False
        if source is not None and source != project.source:
            await self._projects.update(project.id, tenant=project.tenant, source=source)
        task = asyncio.create_task(self._run(job, force=force))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.sleep(0)  # a task cancelled before its first step would record no end
        return job.id, True

    async def _run(self, job: Job, *, force: bool) -> None:
        try:
            await self._run_job(job, force)
        except IbidError as error:  # its end is recorded, or another owner's to record
            logger.warning("job left unended", extra={"job_id": job.id, "code": error.code})

    async def close(self) -> None:
        """Cancel the running jobs and wait for their ends to be recorded."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
