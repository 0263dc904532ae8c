"""A job on fakes: what it counts, what it flips, and that whatever fails leaves N serving."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ibid.domain.errors import IbidError, SourceRejected, StoreUnavailable
from ibid.domain.passages import Vector
from ibid.domain.projects import JobState, JobStatistics, ProjectStatus
from ibid.indexing.pipeline import ProjectIndexer
from tests.fakes.clock import FakeClock
from tests.fakes.embedder import HashingEmbedder
from tests.unit.indexing.world import OWNER, PROJECT, TENANT, World, counts

FILES = {
    "app.py": "def one():\n    return 1\n",
    "lib/two.py": "def two():\n    return 2\n",
    "README.md": "# Title\n\nThis is how the app works for you and the others.\n",
    "logo.png": "no picture",
}


@pytest.fixture
async def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.write(FILES)
    await made.create()
    return made


async def test_the_first_index_flips_twice_and_keeps_the_one_with_vectors(world: World) -> None:
    job = await world.run()

    assert job.state is JobState.SUCCEEDED
    assert job.phase == "done"
    assert job.error is None
    assert job.statistics == JobStatistics(
        scanned=4 - 1, new=3, skipped={"binary": 1}, chunks=3, chunks_embedded=3, chunks_to_embed=3
    )
    project = await world.project()
    assert (project.status, project.active_generation) == (ProjectStatus.READY, 2)
    assert project.embedding_signature == "fake:hashing:64"
    assert (project.chunk_count, project.path_count) == (3, 3)
    assert world.faults.names.count("activate") == 2
    assert await world.generations() == [2]
    assert [chunk.file_path for chunk in await world.chunks()] == [
        "README.md",
        "app.py",
        "lib/two.py",
    ]


async def test_the_lexical_generation_serves_while_the_vectors_are_made(world: World) -> None:
    seen: list[tuple[int | None, str | None]] = []

    class Watching(HashingEmbedder):
        async def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
            project = await world.project()
            seen.append((project.active_generation, project.embedding_signature))
            return await super().embed_passages(texts)

    world.embedder = Watching()
    await world.run()

    assert seen == [(1, None)]


async def test_nothing_changed_makes_no_generation_and_embeds_nothing(world: World) -> None:
    await world.run()
    assert world.embedder is not None
    embedded = len(world.embedder.passages)

    job = await world.run()

    assert counts(job) == JobStatistics(scanned=3, unchanged=3, chunks=3)
    assert len(world.embedder.passages) == embedded
    assert await world.generations() == [2]


async def test_force_builds_again_from_the_known_vectors(world: World) -> None:
    await world.run()
    assert world.embedder is not None
    embedded = len(world.embedder.passages)

    job = await world.run(force=True)

    assert counts(job) == JobStatistics(scanned=3, unchanged=3, chunks=3)
    assert len(world.embedder.passages) == embedded
    assert (await world.project()).active_generation == 3
    assert await world.generations() == [2, 3]


async def test_only_what_changed_is_embedded(world: World) -> None:
    await world.run()
    world.write({"app.py": "def one():\n    return 11\n", "new.py": "x = 1\n"})

    job = await world.run()

    assert counts(job) == JobStatistics(
        scanned=4, new=1, modified=1, unchanged=2, chunks=4, chunks_embedded=2, chunks_to_embed=2
    )
    assert await world.generations() == [2, 3]


async def test_lines_that_moved_make_a_file_modified_without_embedding_it(world: World) -> None:
    await world.run()
    world.write({"app.py": "\n\n" + FILES["app.py"]})

    job = await world.run()

    assert counts(job) == JobStatistics(scanned=3, modified=1, unchanged=2, chunks=3)
    assert [chunk.start_line for chunk in await world.chunks()] == [1, 3, 1]


async def test_a_deleted_file_is_in_no_generation_that_is_kept(world: World) -> None:
    await world.run()
    (world.folder / "app.py").unlink()

    job = await world.run()

    assert counts(job) == JobStatistics(scanned=2, deleted=1, unchanged=2, chunks=2)
    assert await world.generations() == [3]


async def test_at_most_one_generation_is_kept_for_rollback(world: World) -> None:
    for number in range(4):
        world.write({"app.py": f"x = {number}\n"})
        await world.run()

    assert await world.generations() == [4, 5]


async def test_without_an_embedder_generations_are_lexical(world: World) -> None:
    world.embedder = None

    first = await world.run()
    again = await world.run()
    project = await world.project()

    assert counts(first) == JobStatistics(scanned=3, new=3, chunks=3)
    assert counts(again) == JobStatistics(scanned=3, unchanged=3, chunks=3)
    assert (project.active_generation, project.embedding_signature) == (1, None)


async def test_a_lexical_generation_is_replaced_once_there_is_an_embedder(world: World) -> None:
    world.embedder = None
    await world.run()
    world.embedder = HashingEmbedder()

    job = await world.run()

    assert counts(job) == JobStatistics(
        scanned=3, unchanged=3, chunks=3, chunks_embedded=3, chunks_to_embed=3
    )
    assert await world.generations() == [2]


async def test_another_embedder_embeds_everything_again(world: World) -> None:
    await world.run()
    world.embedder = HashingEmbedder(signature="other")

    job = await world.run()

    assert job.statistics.chunks_embedded == 3
    assert (await world.project()).embedding_signature == "other"
    assert await world.generations() == [2, 3]


async def test_a_generation_that_is_gone_is_built_again(world: World) -> None:
    await world.run()
    await world.index.delete(tenant=TENANT, project_id=PROJECT, generation=2)

    job = await world.run()

    assert job.state is JobState.SUCCEEDED
    assert job.statistics.new == 3
    assert (await world.project()).active_generation == 4


async def test_the_main_language_is_the_proses(world: World) -> None:
    world.write(
        {
            f"doc{n}.md": "# Un\n\nEsta es la guía de la aplicación para quien la usa en su casa.\n"
            for n in range(4)
        }
    )
    await world.run()
    facts = await world.index.facts(tenant=TENANT, project_id=PROJECT, generation=2)

    assert facts.main_language == "spanish"


async def test_an_empty_folder_makes_an_empty_generation(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.create()

    job = await world.run()

    assert counts(job) == JobStatistics()
    assert (await world.project()).status is ProjectStatus.READY


async def test_a_folder_that_is_not_there_fails_the_job_by_name(tmp_path: Path) -> None:
    world = World(tmp_path / "nowhere")
    await world.create()

    job = await world.run()

    assert job.state is JobState.FAILED
    assert job.error is not None
    assert job.error.code == "SOURCE_REJECTED"
    assert "nowhere" in job.error.message
    assert (await world.project()).status is ProjectStatus.FAILED


async def test_an_unforeseen_failure_ends_the_job_without_its_text(world: World) -> None:
    def explode(_: IbidError) -> None:
        raise ZeroDivisionError("an excerpt")

    world.faults.act = explode
    world.faults.at = 1

    job = await world.run()

    assert job.error is not None
    assert job.error.code == "INTERNAL_ERROR"
    assert "an excerpt" not in job.error.message


async def test_too_few_vectors_fail_the_job(world: World) -> None:
    class Short(HashingEmbedder):
        async def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
            return (await super().embed_passages(texts))[1:]

    world.embedder = Short()

    job = await world.run()

    assert job.error is not None
    assert job.error.code == "EMBEDDER_UNAVAILABLE"
    assert (await world.project()).active_generation == 1


async def check_serving(world: World, before: list[str]) -> None:
    """The active generation is whole: the old one or the new one."""
    world.heal()
    project = await world.project()
    paths = [chunk.file_path for chunk in await world.chunks()]
    assert paths in (before, [*before, "zoo.py"])
    assert project.chunk_count == len(paths)


async def indexed_then_changed(tmp_path: Path) -> tuple[World, list[str]]:
    world = World(tmp_path)
    world.write(FILES)
    await world.create()
    await world.run()
    before = [chunk.file_path for chunk in await world.chunks()]
    world.write({"zoo.py": "def zoo():\n    return 'zebra'\n"})
    world.faults.calls = 0
    return world, before


async def calls_of_a_run(tmp_path: Path) -> int:
    world, _ = await indexed_then_changed(tmp_path)
    await world.run()
    return world.faults.calls


async def test_any_one_call_may_fail_and_a_whole_generation_serves(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    for after in (False, True):
        for at in range(await calls_of_a_run(tmp_path_factory.mktemp("dry"))):
            world, before = await indexed_then_changed(tmp_path_factory.mktemp("run"))
            world.faults.at, world.faults.after = at, after

            job = await world.run()

            assert job.state in {JobState.SUCCEEDED, JobState.FAILED}
            assert (job.error is None) == (job.state is JobState.SUCCEEDED)
            await check_serving(world, before)
            again = await world.run()
            assert again.state is JobState.SUCCEEDED
            assert [chunk.file_path for chunk in await world.chunks()] == [*before, "zoo.py"]
            assert len(await world.generations()) <= 2 + (again.statistics.unchanged == 4)


async def test_a_first_index_may_fail_anywhere_and_the_next_one_mends_it(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    dry = World(tmp_path_factory.mktemp("dry"))
    dry.write(FILES)
    await dry.create()
    await dry.run()
    for at in range(dry.faults.calls):
        world = World(tmp_path_factory.mktemp("run"))
        world.write(FILES)
        await world.create()
        world.faults.at = at

        job = await world.run()
        world.heal()

        assert job.state in {JobState.SUCCEEDED, JobState.FAILED}
        again = await world.run()
        assert again.state is JobState.SUCCEEDED
        assert len(await world.chunks()) == 3
        assert (await world.project()).embedding_signature is not None


def cancel(task: asyncio.Task[None], _: IbidError) -> None:
    task.cancel()


async def test_a_job_may_be_cancelled_anywhere_and_ends(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    for at in range(await calls_of_a_run(tmp_path_factory.mktemp("dry"))):
        world, before = await indexed_then_changed(tmp_path_factory.mktemp("run"))
        job = await world.begin()
        task = asyncio.create_task(world.indexer().run(job, owner=OWNER))
        world.faults.at, world.faults.act = at, partial(cancel, task)

        await asyncio.gather(task, return_exceptions=True)

        ended = await world.records.jobs.get(job.id, tenant=TENANT)
        assert ended.finished_at is not None
        if ended.state is JobState.FAILED:
            assert task.cancelled()
            assert ended.error is not None
            assert ended.error.code == "JOB_CANCELLED"
        await check_serving(world, before)


async def test_an_unclear_answer_to_the_flip_never_deletes_what_serves(tmp_path: Path) -> None:
    world, before = await indexed_then_changed(tmp_path)
    indexer = world.indexer()
    job = await world.begin()
    real = world.records.projects.activate

    async def lost_answer(*args: object, **keywords: object) -> None:
        await real(*args, **keywords)  # type: ignore[arg-type]  # passed on as they come
        raise StoreUnavailable("no answer")

    world.records.projects.activate = lost_answer  # type: ignore[assignment,method-assign]  # a broken store
    await indexer.run(job, owner=OWNER)

    assert [chunk.file_path for chunk in await world.chunks()] == [*before, "zoo.py"]


async def test_a_lost_lease_stops_the_job_and_leaves_its_end_to_the_other(world: World) -> None:
    class Slow(HashingEmbedder):
        async def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
            live = await world.records.jobs.live()
            ((key, beat),) = live.items()
            assert await world.records.jobs.take_over(
                key[1], tenant=TENANT, beat=beat, at=FakeClock().now()
            )
            await asyncio.sleep(30)
            return await super().embed_passages(texts)

    world.embedder = Slow()
    world.beat_s = 0.3

    job = await world.run()

    assert job.error is not None
    assert job.error.code == "JOB_LOST"
    assert (await world.project()).active_generation == 1
    assert await world.generations() == [1]


async def test_a_deleted_project_leaves_nothing_behind(world: World) -> None:
    class Deleting(HashingEmbedder):
        async def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
            await world.records.projects.delete(PROJECT, tenant=TENANT)
            await world.index.delete_project(tenant=TENANT, project_id=PROJECT)
            return await super().embed_passages(texts)

    world.embedder = Deleting()
    job = await world.begin()

    await world.indexer().run(job, owner=OWNER)

    assert await world.generations() == []


async def test_an_end_that_can_not_be_recorded_is_raised(world: World) -> None:
    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("away")

    world.records.jobs.end = away  # type: ignore[method-assign]  # a broken store
    job = await world.begin()
    indexer: ProjectIndexer = world.indexer()

    with pytest.raises(StoreUnavailable):
        await indexer.run(job, owner=OWNER)


async def test_a_project_without_a_source_fails_by_name(world: World) -> None:
    rows = world.records.projects
    project = await world.project()
    await rows.delete(PROJECT, tenant=TENANT)
    await rows.create(replace(project, source=None))

    job = await world.run()

    assert job.error is not None
    assert job.error.code == SourceRejected.code
