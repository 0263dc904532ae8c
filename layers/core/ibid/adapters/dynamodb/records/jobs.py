"""Indexing jobs in the app table; a project's item names its live job, which is the lease."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.pointers import ID, MOMENT, page_of
from ibid.adapters.dynamodb.records.projects import THERE
from ibid.adapters.dynamodb.records.table import ConditionFailed, Table
from ibid.adapters.dynamodb.records.wire import Item, Value
from ibid.adapters.dynamodb.records.writes import Write
from ibid.adapters.records import codec
from ibid.domain.errors import JobNotFound, LeaseLost, ProjectNotFound
from ibid.domain.pages import Page
from ibid.domain.projects import Job, JobError, JobState, JobStatistics, ProjectStatus

_LOST = JobError(code="JOB_LOST", message="The process that ran the job died.")
_LIVE = "attribute_exists(#pk) AND attribute_not_exists(#finished)"
_OWNED = _LIVE + " AND #owner = :owner"


class DynamoJobs:
    """Implements JobStore."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def begin(self, job: Job, *, owner: str) -> Job | None:
        """Keep a new queued job and take the project's job lease."""
        project = keys.project(job.tenant, job.project_id)
        started = codec.moment_to_int(job.started_at)
        writes = [
            Write(
                key=project,
                update="SET #job = :job",
                condition=THERE + " AND attribute_not_exists(#job)",
                values={"job": job.id},
            ),
            Write(
                key=keys.job(job.tenant, job.id),
                item=_attributes(job, owner),
                condition="attribute_not_exists(#pk)",
            ),
            Write(
                key=(project[0], keys.dated(keys.JOBS_OF_PROJECT, started, job.id)),
                item={ID: job.id, MOMENT: started},
            ),
            Write(key=keys.live_job(job.tenant, job.id), item={"tenant": job.tenant, ID: job.id}),
        ]

        def work() -> Job | None:
            while True:
                try:
                    self._table.transact(*writes)
                except ConditionFailed as error:
                    if 0 not in error.items:
                        raise ValueError("the job's id was used before") from error
                    item = error.items[0]
                    if item is None or "gone" in item:
                        raise ProjectNotFound(f"no project {job.project_id!r}") from error
                    there = self._table.get(keys.job(job.tenant, item["job"]))
                    if there is not None and "finished" not in there:
                        return _job_of(job.tenant, item["job"], there)
                else:
                    return None

        return await self._table.run(work)

    async def beat(
        self, job_id: str, *, tenant: str, owner: str, phase: str, statistics: JobStatistics
    ) -> None:
        """Raise the job's counter, keep its progress, and set it `running`."""
        write = Write(
            key=keys.job(tenant, job_id),
            update="SET #state = :state, #phase = :phase, #statistics = :statistics ADD #beat :one",
            condition=_OWNED,
            values={
                "state": JobState.RUNNING,
                "phase": phase,
                "statistics": codec.statistics_to_json(statistics),
                "one": 1,
                "owner": owner,
            },
        )
        try:
            await self._table.run(lambda: self._table.write(write))
        except ConditionFailed as error:
            raise _lost(job_id) from error

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
        given: dict[str, Value | None] = {
            "state": state,
            "statistics": codec.statistics_to_json(statistics),
            "error": codec.job_error_to_json(error),
            "finished": codec.moment_to_int(at),
        }

        def work() -> None:
            item = self._table.get(keys.job(tenant, job_id))
            if item is None or not self._end(tenant, job_id, item, given, {"owner": owner}):
                raise _lost(job_id)

        await self._table.run(work)

    async def live(self) -> Mapping[tuple[str, str], int]:
        """Return the beat of every live job of every tenant, by (tenant, job id)."""

        def work() -> Mapping[tuple[str, str], int]:
            jobs = {
                keys.job(pointer["tenant"], pointer[ID]): (pointer["tenant"], pointer[ID])
                for pointer in self._table.query(keys.JOBS)
            }
            found = self._table.get_many(list(jobs))
            return {
                jobs[key]: item["beat"] for key, item in found.items() if "finished" not in item
            }

        return await self._table.run(work)

    async def try_write(self, job_id: str, *, tenant: str) -> None:
        """Write to the job's item on a condition that never holds."""
        await self._table.run(lambda: self._table.try_write(keys.job(tenant, job_id)))

    async def take_over(self, job_id: str, *, tenant: str, beat: int, at: datetime) -> bool:
        """End a live job as failed if its counter still is `beat`; say if so."""
        given: dict[str, Value | None] = {
            "state": JobState.FAILED,
            "error": codec.job_error_to_json(_LOST),
            "finished": codec.moment_to_int(at),
        }

        def work() -> bool:
            item = self._table.get(keys.job(tenant, job_id))
            return item is not None and self._end(tenant, job_id, item, given, {"beat": beat})

        return await self._table.run(work)

    def _end(
        self,
        tenant: str,
        job_id: str,
        item: Item,
        given: Mapping[str, Value | None],
        held: Mapping[str, Value],
    ) -> bool:
        """Set these fields of a live job that has those, and free its project; say if so."""
        values = {field: value for field, value in given.items() if value is not None}
        conditions = [_LIVE, *(f"#{field} = :{field}" for field in held)]
        job = Write(
            key=keys.job(tenant, job_id),
            update="SET " + ", ".join(f"#{field} = :{field}" for field in values),
            condition=" AND ".join(conditions),
            values={**values, **held},
        )
        pointer = Write(key=keys.live_job(tenant, job_id), deletes=True)
        while True:
            project = self._table.get(keys.project(tenant, item["project"]))
            if project is None:
                return False
            fails = given["state"] == JobState.FAILED and "generation" not in project
            freed = Write(
                key=keys.project(tenant, item["project"]),
                update=("SET #status = :status " if fails else "") + "REMOVE #job",
                condition="#job = :job"
                + (" AND attribute_not_exists(#generation)" if fails else ""),
                values={"job": job_id} | ({"status": ProjectStatus.FAILED} if fails else {}),
            )
            try:
                self._table.transact(job, freed, pointer)
            except ConditionFailed as error:
                found = error.items.get(1)
                if 0 in error.items or found is None or found.get("job") != job_id:
                    return False
                # Else the project had its first generation meanwhile.
            else:
                return True

    async def get(self, job_id: str, *, tenant: str) -> Job:
        """Return one job."""
        item = await self._table.run(lambda: self._table.get(keys.job(tenant, job_id)))
        if item is None:
            raise JobNotFound(f"no job {job_id!r}")
        return _job_of(tenant, job_id, item)

    async def list_for(
        self, project_id: str, *, tenant: str, cursor: str | None, limit: int
    ) -> Page[Job]:
        """List a project's jobs, newest first."""
        return await self._table.run(
            lambda: page_of(
                self._table,
                keys.project(tenant, project_id)[0],
                prefix=keys.JOBS_OF_PROJECT,
                key_of=lambda job_id: keys.job(tenant, job_id),
                read=lambda job_id, item: _job_of(tenant, job_id, item),
                scope=("jobs", tenant, project_id),
                cursor=cursor,
                limit=limit,
            )
        )


def _job_of(tenant: str, job_id: str, item: Item) -> Job:
    return Job(
        tenant=tenant,
        id=job_id,
        project_id=item["project"],
        state=JobState(item["state"]),
        phase=item["phase"],
        statistics=codec.statistics_from_json(item["statistics"]),
        error=codec.job_error_from_json(item.get("error")),
        started_at=codec.moment_from_int(item["started"]),
        finished_at=codec.optional_moment(item.get("finished")),
    )


def _attributes(job: Job, owner: str) -> dict[str, Any]:
    return {
        "project": job.project_id,
        "state": job.state,
        "phase": job.phase,
        "statistics": codec.statistics_to_json(job.statistics),
        "error": codec.job_error_to_json(job.error),
        "owner": owner,
        "beat": 0,
        "started": codec.moment_to_int(job.started_at),
        "finished": None if job.finished_at is None else codec.moment_to_int(job.finished_at),
    }


def _lost(job_id: str) -> LeaseLost:
    return LeaseLost(f"job {job_id!r} has ended, or has another owner")
