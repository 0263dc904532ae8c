"""Where projects and their indexing jobs are kept."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from ibid.domain.pages import Page
from ibid.domain.projects import (
    Job,
    JobError,
    JobState,
    JobStatistics,
    Project,
    ProjectSettings,
    ProjectStatus,
    Source,
)


class ProjectStore(Protocol):
    """Every tenant's projects; reads see every acknowledged write.

    Every method may raise StoreUnavailable.
    """

    async def create(self, project: Project) -> None:
        """Keep a new project; its id is the caller's, random and never used before."""

    async def get(self, project_id: str, *, tenant: str) -> Project:
        """Return one project.

        Raises:
            ProjectNotFound: The tenant has none of this id.
        """

    async def list_for(
        self, *, tenant: str, subject: str, cursor: str | None, limit: int
    ) -> Page[Project]:
        """List the projects of which the subject is a member, newest first, ties by falling id.

        Args:
            tenant: Who pays.
            subject: A member.
            cursor: From an earlier page, or None for the first.
            limit: 1 to 200.

        Raises:
            ValidationFailed: The cursor is not one of this list's.
        """

    async def named(self, name: str, *, tenant: str, subject: str) -> Sequence[Project]:
        """Return the projects of this exact name of which the subject is a member, newest first.

        At most 100; names need not be unique.
        """

    async def update(
        self,
        project_id: str,
        *,
        tenant: str,
        name: str | None = None,
        source: Source | None = None,
        reply_language: str | None = None,
        settings: ProjectSettings | None = None,
        status: ProjectStatus | None = None,
    ) -> Project:
        """Change what is given (None leaves a field as it is) and return the project.

        Raises:
            ProjectNotFound: It is not there, or was deleted meanwhile.
        """

    async def activate(
        self,
        project_id: str,
        *,
        tenant: str,
        generation: int,
        job_id: str,
        embedding_signature: str | None,
        chunk_count: int,
        path_count: int,
        commit_sha: str | None,
    ) -> Project:
        """Flip the pointer to a sealed generation and make the project `ready`, in one write.

        Raises:
            ProjectNotFound: It was deleted meanwhile.
            LeaseLost: `job_id` does not hold the project's job lease.
        """

    async def delete(self, project_id: str, *, tenant: str) -> Collection[str]:
        """Remove the project, its jobs, conversations, messages and runs; repeatable.

        Returns:
            The turns of all runs that went, as for a conversation.
        """


class JobStore(Protocol):
    """Indexing jobs; at most one live job a project.

    A job is leased: its owner raises a counter by `beat`. Whoever saw the counter unmoved for a
    full term on its own monotonic clock may take the lease over with `take_over`.
    Every method may raise StoreUnavailable.
    """

    async def begin(self, job: Job, *, owner: str) -> Job | None:
        """Keep a new queued job and take the project's job lease; raise `reindexInProgress`.

        Returns:
            None if it began; else the live job that holds the lease.

        Raises:
            ProjectNotFound: The project is not there.
        """

    async def beat(
        self, job_id: str, *, tenant: str, owner: str, phase: str, statistics: JobStatistics
    ) -> None:
        """Raise the job's counter, keep its progress, and set it `running`.

        Raises:
            LeaseLost: Another owner has it, or it has ended, or its project is deleted.
        """

    async def end(
        self,
        job_id: str,
        *,
        tenant: str,
        owner: str,
        state: JobState,
        statistics: JobStatistics,
        error: JobError | None,
        at: datetime,
    ) -> None:
        """End the job, free the lease and lower `reindexInProgress`, in one write.

        A project that never had a generation becomes `failed` when the job did, else it stays as
        it is.

        Raises:
            LeaseLost: Another owner has it, or it has ended.
        """

    async def live(self) -> Mapping[tuple[str, str], int]:
        """Return the beat of every live job of every tenant, by (tenant, job id)."""

    async def try_write(self, job_id: str, *, tenant: str) -> None:
        """Write where the job's counter is written, and change nothing; the job may be gone.

        That it returns says that writes went through just then, its owner's too.
        """

    async def take_over(self, job_id: str, *, tenant: str, beat: int, at: datetime) -> bool:
        """End a live job as failed (`JOB_LOST`) if its counter still is `beat`; say if so."""

    async def get(self, job_id: str, *, tenant: str) -> Job:
        """Return one job.

        Raises:
            JobNotFound: The tenant has none of this id.
        """

    async def list_for(
        self, project_id: str, *, tenant: str, cursor: str | None, limit: int
    ) -> Page[Job]:
        """List a project's jobs, newest first, ties by falling id; `limit` is 1-200.

        Empty if the tenant has no such project.

        Raises:
            ValidationFailed: The cursor is not one of this list's.
        """
