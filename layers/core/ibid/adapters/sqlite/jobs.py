"""Indexing jobs in the app store; a job is live until it has a `finished_at`."""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime

from ibid.adapters.records import codec, cursors
from ibid.adapters.sqlite.database import Database
from ibid.domain.errors import JobNotFound, LeaseLost, ProjectNotFound
from ibid.domain.pages import Page
from ibid.domain.projects import Job, JobError, JobState, JobStatistics, ProjectStatus

_LIST = """
    SELECT * FROM jobs WHERE tenant = ? AND project_id = ?
    ORDER BY started_at DESC, id DESC LIMIT ?
"""
_LIST_ON = """
    SELECT * FROM jobs WHERE tenant = ? AND project_id = ? AND (started_at, id) < (?, ?)
    ORDER BY started_at DESC, id DESC LIMIT ?
"""
_LOST = JobError(code="JOB_LOST", message="The process that ran the job died.")


class SqliteJobs:
    """Implements JobStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, job: Job, *, owner: str) -> Job | None:
        """Keep a new queued job and take the project's job lease, or return the live one."""

        def work(connection: sqlite3.Connection) -> Job | None:
            project = connection.execute(
                "SELECT 1 FROM projects WHERE tenant = ? AND id = ?", (job.tenant, job.project_id)
            ).fetchone()
            if project is None:
                raise ProjectNotFound(f"no project {job.project_id!r}")
            live = connection.execute(
                """
                SELECT * FROM jobs WHERE tenant = ? AND project_id = ? AND finished_at IS NULL
                """,
                (job.tenant, job.project_id),
            ).fetchone()
            if live is not None:
                return _job(live)
            connection.execute(
                "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    job.tenant,
                    job.id,
                    job.project_id,
                    job.state,
                    job.phase,
                    codec.statistics_to_json(job.statistics),
                    codec.job_error_to_json(job.error),
                    owner,
                    0,
                    codec.moment_to_int(job.started_at),
                    None,
                ),
            )
            return None

        return await self._database.write(work)

    async def beat(
        self, job_id: str, *, tenant: str, owner: str, phase: str, statistics: JobStatistics
    ) -> None:
        """Raise the job's counter, keep its progress, and set it `running`."""

        def work(connection: sqlite3.Connection) -> None:
            changed = connection.execute(
                """
                UPDATE jobs SET beat = beat + 1, state = ?, phase = ?, statistics = ?
                WHERE tenant = ? AND id = ? AND lease_owner = ? AND finished_at IS NULL
                """,
                (
                    JobState.RUNNING,
                    phase,
                    codec.statistics_to_json(statistics),
                    tenant,
                    job_id,
                    owner,
                ),
            )
            _expect_one(changed, job_id)

        await self._database.write(work)

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
        """End the job, free the lease and lower `reindexInProgress`, in one write."""

        def work(connection: sqlite3.Connection) -> None:
            changed = connection.execute(
                """
                UPDATE jobs SET state = ?, statistics = ?, error = ?, finished_at = ?
                WHERE tenant = ? AND id = ? AND lease_owner = ? AND finished_at IS NULL
                """,
                (
                    state,
                    codec.statistics_to_json(statistics),
                    codec.job_error_to_json(error),
                    codec.moment_to_int(at),
                    tenant,
                    job_id,
                    owner,
                ),
            )
            _expect_one(changed, job_id)
            if state is JobState.FAILED:
                _fail_project(connection, tenant, job_id)

        await self._database.write(work)

    async def live(self) -> Mapping[tuple[str, str], int]:
        """Return the beat of every live job of every tenant, by (tenant, job id)."""

        def work(connection: sqlite3.Connection) -> Mapping[tuple[str, str], int]:
            rows = connection.execute("SELECT tenant, id, beat FROM jobs WHERE finished_at IS NULL")
            return {(row["tenant"], row["id"]): row["beat"] for row in rows}

        return await self._database.read(work)

    async def try_write(self, job_id: str, *, tenant: str) -> None:
        """Write on a condition that never holds; it takes the one lock of all who write."""
        await self._database.write(
            lambda connection: connection.execute(
                "UPDATE jobs SET beat = beat WHERE tenant = ? AND id = ? AND beat IS NULL",
                (tenant, job_id),
            )
        )

    async def take_over(self, job_id: str, *, tenant: str, beat: int, at: datetime) -> bool:
        """End a live job as failed if its counter still is `beat`; say if so."""

        def work(connection: sqlite3.Connection) -> bool:
            changed = connection.execute(
                """
                UPDATE jobs SET state = ?, error = ?, finished_at = ?
                WHERE tenant = ? AND id = ? AND beat = ? AND finished_at IS NULL
                """,
                (
                    JobState.FAILED,
                    codec.job_error_to_json(_LOST),
                    codec.moment_to_int(at),
                    tenant,
                    job_id,
                    beat,
                ),
            )
            if changed.rowcount == 0:
                return False
            _fail_project(connection, tenant, job_id)
            return True

        return await self._database.write(work)

    async def get(self, job_id: str, *, tenant: str) -> Job:
        """Return one job."""

        def work(connection: sqlite3.Connection) -> Job:
            row = connection.execute(
                "SELECT * FROM jobs WHERE tenant = ? AND id = ?", (tenant, job_id)
            ).fetchone()
            if row is None:
                raise JobNotFound(f"no job {job_id!r}")
            return _job(row)

        return await self._database.read(work)

    async def list_for(
        self, project_id: str, *, tenant: str, cursor: str | None, limit: int
    ) -> Page[Job]:
        """List a project's jobs, newest first."""
        scope = ("jobs", tenant, project_id)
        start = None if cursor is None else cursors.decode(cursor, int, str, scope=scope)

        def work(connection: sqlite3.Connection) -> Sequence[Job]:
            if start is None:
                rows = connection.execute(_LIST, (tenant, project_id, limit + 1))
            else:
                rows = connection.execute(_LIST_ON, (tenant, project_id, *start, limit + 1))
            return [_job(row) for row in rows]

        found = await self._database.read(work)
        if len(found) <= limit:
            return Page(items=found, next_cursor=None)
        last = found[limit - 1]
        position = cursors.encode(codec.moment_to_int(last.started_at), last.id, scope=scope)
        return Page(items=found[:limit], next_cursor=position)


def _expect_one(changed: sqlite3.Cursor, job_id: str) -> None:
    if changed.rowcount == 0:
        raise LeaseLost(f"job {job_id!r} has ended, or has another owner")


def _fail_project(connection: sqlite3.Connection, tenant: str, job_id: str) -> None:
    """Make the job's project `failed`, unless it has a generation that can be searched."""
    connection.execute(
        """
        UPDATE projects SET status = ?
        WHERE tenant = ? AND active_generation IS NULL
            AND id = (SELECT project_id FROM jobs WHERE tenant = ? AND id = ?)
        """,
        (ProjectStatus.FAILED, tenant, tenant, job_id),
    )


def _job(row: sqlite3.Row) -> Job:
    return Job(
        tenant=row["tenant"],
        id=row["id"],
        project_id=row["project_id"],
        state=JobState(row["state"]),
        phase=row["phase"],
        statistics=codec.statistics_from_json(row["statistics"]),
        error=codec.job_error_from_json(row["error"]),
        started_at=codec.moment_from_int(row["started_at"]),
        finished_at=codec.optional_moment(row["finished_at"]),
    )
