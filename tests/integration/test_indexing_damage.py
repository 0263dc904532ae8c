"""A generation that is damaged on disk: the next indexing makes another one."""

import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from ibid.adapters.sqlite.index import SqlitePassageIndex
from ibid.domain.errors import VectorStoreUnavailable
from ibid.domain.projects import JobState
from tests.unit.indexing.world import PROJECT, TENANT, World

FILES = {"app.py": "def one():\n    return 1\n", "lib/two.py": "def two():\n    return 2\n"}


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def garble(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


def put_a_folder(file: Path) -> None:
    file.unlink()
    (file / "inner").mkdir(parents=True)


DAMAGES: list[Callable[[Path], Any]] = [
    truncate,
    garble,
    put_a_folder,
    lambda file: file.write_bytes(b""),
    lambda file: file.write_bytes(b"no generation " * 9_999),
]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    index = SqlitePassageIndex(tmp_path / "index")
    made = World(tmp_path / "source", index=cast("Any", index))
    made.write(FILES)
    await made.create()
    yield made
    await index.close()


def active_file(tmp_path: Path) -> Path:
    return max((tmp_path / "index").rglob("*.ibid"), key=lambda file: int(file.stem))


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("changed", [False, True])
async def test_indexing_again_replaces_a_damaged_generation(
    world: World, tmp_path: Path, damage: Callable[[Path], Any], *, force: bool, changed: bool
) -> None:
    assert (await world.run()).state is JobState.SUCCEEDED
    damage(active_file(tmp_path))
    if changed:
        (world.folder / "app.py").unlink()

    healed = await world.run(force=force)

    assert (healed.state, healed.error) == (JobState.SUCCEEDED, None)
    left = sorted(FILES)[changed:]
    assert [chunk.file_path for chunk in await world.chunks()] == left
    assert healed.statistics.chunks_embedded == len(left)
    project = await world.project()
    assert await world.generations() == [project.active_generation]
    assert (await world.run()).statistics.unchanged == len(left)


@pytest.mark.parametrize("damage", DAMAGES)
async def test_the_generation_before_a_damaged_one_still_gives_its_vectors(
    world: World, tmp_path: Path, damage: Callable[[Path], Any]
) -> None:
    await world.run()
    world.write({"three.py": "def three():\n    return 3\n"})
    await world.run()
    damage(active_file(tmp_path))

    healed = await world.run()

    assert (healed.state, healed.statistics.chunks_embedded) == (JobState.SUCCEEDED, 1)


async def test_a_search_of_a_damaged_generation_says_what_mends_it(
    world: World, tmp_path: Path
) -> None:
    await world.run()
    garble(active_file(tmp_path))

    with pytest.raises(VectorStoreUnavailable, match=r"is damaged: .* indexing again rebuilds it"):
        await world.chunks()


async def test_an_index_that_is_away_still_fails_the_job(world: World, tmp_path: Path) -> None:
    await world.run()
    shutil.move(tmp_path / "index", tmp_path / "elsewhere")
    (tmp_path / "index").touch()

    failed = await world.run(force=True)

    assert failed.error is not None
    assert failed.error.code == "VECTOR_STORE_UNAVAILABLE"
    active = (await world.project()).active_generation
    (tmp_path / "index").unlink()
    shutil.move(tmp_path / "elsewhere", tmp_path / "index")
    facts = await world.index.facts(tenant=TENANT, project_id=PROJECT, generation=active or 0)
    assert facts.chunk_count == len(FILES)
