"""Jobs in the background: begun once, kept until they end, cancelled at the close."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from ibid.domain.errors import ProjectNotFound, StoreUnavailable
from ibid.domain.passages import Vector
from ibid.domain.projects import FolderSource, Job, JobState
from ibid.indexing.background import IndexJobs
from tests.fakes.clock import FakeClock
from tests.fakes.embedder import HashingEmbedder
from tests.unit.indexing.world import OWNER, PROJECT, TENANT, World


def jobs_of(world: World) -> IndexJobs:
    indexer = world.indexer()
    return IndexJobs(
        projects=world.records.projects,
        jobs=world.records.jobs,
        run_job=lambda job, force: indexer.run(job, owner=OWNER, force=force),
        clock=FakeClock(),
        owner=OWNER,
    )


async def ended(world: World, job_id: str) -> Job:
    """Poll to a deadline, since nothing tells of a job's end."""
    async with asyncio.timeout(60):
        while True:
            job = await world.records.jobs.get(job_id, tenant=TENANT)
            if job.finished_at is not None:
                return job
            await asyncio.sleep(0.01)


async def test_a_second_request_joins_the_live_job(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.create()
    jobs = jobs_of(world)
    project = await world.project()

    first, began = await jobs.start(project, source=None, force=False)
    second, began_again = await jobs.start(project, source=None, force=False)

    assert (began, began_again, second) == (True, False, first)
    assert (await ended(world, first)).state is JobState.SUCCEEDED
    await jobs.close()


async def test_a_new_source_replaces_the_projects(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.create()
    jobs = jobs_of(world)
    other = FolderSource(path=str(tmp_path.parent))

    job_id, _ = await jobs.start(await world.project(), source=other, force=True)

    assert (await world.project()).source == other
    await jobs.close()
    assert (await ended(world, job_id)).finished_at is not None


async def test_closing_ends_the_running_jobs_as_cancelled(tmp_path: Path) -> None:
    started = asyncio.Event()

    class Hanging(HashingEmbedder):
        async def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
            started.set()
            await asyncio.Event().wait()
            return await super().embed_passages(texts)

    world = World(tmp_path, embedder=Hanging())
    world.write({"a.py": "x = 1\n"})
    await world.create()
    jobs = jobs_of(world)
    job_id, _ = await jobs.start(await world.project(), source=None, force=False)
    async with asyncio.timeout(60):
        await started.wait()

    await jobs.close()

    job = await world.records.jobs.get(job_id, tenant=TENANT)
    assert job.error is not None
    assert job.error.code == "JOB_CANCELLED"


async def test_an_end_that_can_not_be_recorded_stays_in_the_background(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.create()

    async def away(job: Job, force: bool) -> None:  # noqa: FBT001 - as it is called
        raise StoreUnavailable(f"{job.id} {force}")

    jobs = IndexJobs(
        projects=world.records.projects,
        jobs=world.records.jobs,
        run_job=away,
        clock=FakeClock(),
        owner=OWNER,
    )

    await jobs.start(await world.project(), source=None, force=False)

    await jobs.close()


async def test_a_deleted_project_starts_no_job(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.create()
    project = await world.project()
    await world.records.projects.delete(PROJECT, tenant=TENANT)

    with pytest.raises(ProjectNotFound):
        await jobs_of(world).start(project, source=None, force=False)
