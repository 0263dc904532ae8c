"""Sources on disk, and what is left when they close."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ibid.domain.errors import SourceRejected
from ibid.domain.projects import FolderSource, GitSource, Source, UploadSource
from ibid.domain.uploads import upload_key
from ibid.indexing.sources import SourceOpener
from ibid.indexing.walk import walk
from tests.fakes.objects import FakeObjects
from tests.unit.indexing.test_archives import zip_of
from tests.unit.indexing.world import PROJECT, TENANT, World

UPLOAD = UploadSource(upload_id="up", file_name="a.zip")


async def uploaded(objects: FakeObjects, body: bytes) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 100):
            yield body[start : start + 100]

    key = upload_key(tenant=TENANT, project_id=PROJECT, upload_id="up", file_name="a.zip")
    await objects.put(key, pieces(), max_bytes=1_000_000)


async def paths_of(opener: SourceOpener, source: Source) -> list[str]:
    async with opener.opened(source, tenant=TENANT, project_id=PROJECT) as fetched:
        return [file.path for file in walk(fetched.root).files]


def left_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_an_upload_is_unpacked_and_removed_at_the_end(tmp_path: Path) -> None:
    objects = FakeObjects()
    await uploaded(objects, zip_of({"app/a.py": b"x = 1\n"}))
    opener = SourceOpener(objects, workspace=tmp_path)

    assert await paths_of(opener, UPLOAD) == ["a.py"]
    assert left_in(tmp_path) == []


async def test_a_refused_upload_leaves_nothing(tmp_path: Path) -> None:
    objects = FakeObjects()
    await uploaded(objects, zip_of({"../a.py": b"x"}))

    with pytest.raises(SourceRejected):
        await paths_of(SourceOpener(objects, workspace=tmp_path), UPLOAD)

    assert left_in(tmp_path) == []


async def test_an_upload_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceRejected, match="upload is gone"):
        await paths_of(SourceOpener(FakeObjects(), workspace=tmp_path), UPLOAD)


@pytest.mark.parametrize("path", ["relative", "/no/such/folder"])
async def test_a_folder_that_is_not_there_is_refused(path: str) -> None:
    with pytest.raises(SourceRejected, match="no folder"):
        await paths_of(SourceOpener(FakeObjects()), FolderSource(path=path))


async def test_a_credential_that_nobody_knows_is_refused() -> None:
    source = GitSource(url="https://example.org/a", credential="mine")

    with pytest.raises(SourceRejected, match="no credential 'mine'"):
        await paths_of(SourceOpener(FakeObjects()), source)


async def test_a_known_credential_is_asked_for_and_the_url_still_checked() -> None:
    asked: list[str] = []

    async def secret(name: str) -> str:
        asked.append(name)
        return "word"

    opener = SourceOpener(FakeObjects(), secrets=secret)

    with pytest.raises(SourceRejected, match="over https only"):
        await paths_of(opener, GitSource(url="http://example.org/a", credential="mine"))
    assert asked == ["mine"]


async def test_an_uploads_chunks_have_no_commit_even_if_it_holds_a_repository(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    await world.create(UPLOAD)
    await uploaded(world.objects, zip_of({"a.py": b"x = 1\n", ".git/HEAD": b"ref: refs/heads/m"}))

    job = await world.run()

    assert job.error is None
    assert [(chunk.file_path, chunk.commit_sha) for chunk in await world.chunks()] == [
        ("a.py", None)
    ]


async def test_a_cancelled_unpacking_ends_before_its_folder_is_removed(tmp_path: Path) -> None:
    objects = FakeObjects()
    await uploaded(objects, zip_of({f"{n}.py": b"x = 1\n" for n in range(300)}))
    opener = SourceOpener(objects, workspace=tmp_path)
    task = asyncio.create_task(paths_of(opener, UPLOAD))
    await asyncio.sleep(0)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert left_in(tmp_path) == []
