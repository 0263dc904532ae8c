"""Files behind the object store: nothing leaves the folder, nothing is left behind."""

import asyncio
import io
import os
import threading
import time
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters import folder_objects
from ibid.adapters.folder_objects import FolderObjects
from ibid.domain.errors import ObjectStoreUnavailable, ValidationFailed

DAY_S = 24 * 3600


async def _pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _files(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


SEGMENT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(
    lambda text: "/" not in text and text not in {".", ".."}
)
KEYS = st.lists(SEGMENT, min_size=1, max_size=5).map("/".join)


@given(st.lists(KEYS, unique=True, max_size=6))
def test_names_are_plain_folded_apart_and_give_the_keys_back(keys: list[str]) -> None:
    names = ["/".join(folder_objects.names_of(key)) for key in keys]

    assert len({name.casefold() for name in names}) == len(keys)
    for key, name in zip(keys, names, strict=True):
        assert name.isascii()
        assert name == name.lower()
        assert not {".", "\\", ":", " ", "\x00"} & set(name)
        assert max(map(len, name.split("/"))) < 240
        assert folder_objects.key_of(name) == key


async def test_a_put_leaves_one_file_and_a_deletion_none(tmp_path: Path) -> None:
    objects = FolderObjects(tmp_path / "objects")

    await objects.put("Up/load", _pieces(b"a"), max_bytes=1)
    files = _files(tmp_path)
    await objects.delete("Up/load")

    assert files == ["objects/%55p/load.object"]
    assert _files(tmp_path) == []


async def test_a_refused_put_leaves_no_file(tmp_path: Path) -> None:
    objects = FolderObjects(tmp_path)

    with pytest.raises(ValidationFailed):
        await objects.put("a", _pieces(b"too", b"large"), max_bytes=4)

    assert _files(tmp_path) == []


def _abandon(folder: Path, age_s: float) -> Path:
    path = folder / ".unfinished" / f"{age_s}"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"half")
    then = time.time() - age_s
    os.utime(path, (then, then))
    return path


async def test_what_a_killed_process_left_goes_a_day_later(tmp_path: Path) -> None:
    _abandon(tmp_path, DAY_S + 60)
    young = _abandon(tmp_path, DAY_S - 60)

    await FolderObjects(tmp_path).put("a", _pieces(b"a"), max_bytes=1)

    assert _files(tmp_path) == [young.relative_to(tmp_path).as_posix(), "a.object"]


async def test_a_folder_that_fails_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "objects").write_text("a file in the folder's place")
    objects = FolderObjects(tmp_path / "objects")

    with pytest.raises(ObjectStoreUnavailable):
        await objects.put("a", _pieces(b"a"), max_bytes=1)
    with pytest.raises(ObjectStoreUnavailable):
        await anext(aiter(objects.get("a")))
    with pytest.raises(ObjectStoreUnavailable):
        await objects.delete_prefix("a/")


KINDS = ["put", "put_new"]
PLACING = {"put": "replace", "put_new": "hardlink_to"}


async def _put(objects: FolderObjects, kind: str, key: str = "a/b") -> None:
    await (objects.put if kind == "put" else objects.put_new)(key, _pieces(b"a"), max_bytes=1)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_folder_that_is_pruned_before_the_file_comes_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    pruned: list[Path] = []
    place = getattr(Path, PLACING[kind])

    def prune_once(path: Path, other: Path) -> object:
        if not pruned:
            pruned.append(tmp_path / "a")
            (tmp_path / "a").rmdir()
        return place(path, other)

    monkeypatch.setattr(Path, PLACING[kind], prune_once)

    await _put(FolderObjects(tmp_path), kind)

    assert pruned
    assert _files(tmp_path) == ["a/b.object"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_folder_that_is_pruned_between_the_two_looks_of_mkdir_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    (tmp_path / "a").mkdir()
    is_dir = Path.is_dir
    pruned: list[Path] = []

    def prune_once(path: Path) -> bool:  # mkdir asks it when it has met something
        if path == tmp_path / "a" and not pruned:
            pruned.append(path)
            path.rmdir()
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", prune_once)

    await _put(FolderObjects(tmp_path), kind)

    assert pruned
    assert _files(tmp_path) == ["a/b.object"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_folder_that_is_pruned_while_one_is_made_in_it_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    (tmp_path / "a").mkdir()
    mkdir = os.mkdir
    pruned: list[Path] = []

    def prune_once(path: Path, mode: int = 0o777) -> None:
        if path == tmp_path / "a" / "b" and not pruned:
            pruned.append(path)
            (tmp_path / "a").rmdir()
        mkdir(path, mode)
        if path == tmp_path / "a" and len(pruned) == 1:  # and once more, when it was made again
            pruned.append(path)
            path.rmdir()

    monkeypatch.setattr(os, "mkdir", prune_once)

    await _put(FolderObjects(tmp_path), kind, "a/b/c")

    assert len(pruned) == 2
    assert _files(tmp_path) == ["a/b/c.object"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_folder_that_is_pruned_again_and_again_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def gone(_: Path, __: Path) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(Path, PLACING[kind], gone)

    with pytest.raises(ObjectStoreUnavailable):
        await _put(FolderObjects(tmp_path), kind)

    assert _files(tmp_path) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", ["a/b", "a/b/c"])
async def test_a_file_in_the_place_of_a_keys_folder_is_unavailable(
    tmp_path: Path, kind: str, key: str
) -> None:
    (tmp_path / "a").write_text("not ours")
    objects = FolderObjects(tmp_path)

    with pytest.raises(ObjectStoreUnavailable):
        await _put(objects, kind, key)
    with pytest.raises(ObjectStoreUnavailable):
        await objects.keys("a/b/")

    assert _files(tmp_path) == ["a"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_put_whose_disk_is_full_leaves_no_file_behind_or_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    class Full(io.BufferedWriter):
        def flush(self) -> None:
            raise OSError

    opened: list[Full] = []

    def open_full(path: Path, _: str) -> Full:
        opened.append(Full(io.FileIO(path, "x")))
        return opened[0]

    monkeypatch.setattr(Path, "open", open_full)

    with pytest.raises(ObjectStoreUnavailable):
        await _put(FolderObjects(tmp_path), kind)

    assert opened[0].closed
    assert _files(tmp_path) == []


async def test_two_deletions_at_once_do_not_trip_over_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = FolderObjects(tmp_path)
    await objects.put("a/b/c", _pieces(b"a"), max_bytes=1)
    rmdir = Path.rmdir

    def rmdir_twice(path: Path) -> None:
        rmdir(path)
        rmdir(path)

    monkeypatch.setattr(Path, "rmdir", rmdir_twice)

    await objects.delete("a/b/c")

    assert not (tmp_path / "a").exists()


async def test_a_cancelled_put_waits_for_its_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = FolderObjects(tmp_path)
    started, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow_sync(_: int) -> None:
        loop.call_soon_threadsafe(started.set)
        go_on.wait(30)

    monkeypatch.setattr(os, "fsync", slow_sync)
    putting = asyncio.create_task(objects.put("a", _pieces(b"a"), max_bytes=1))
    await started.wait()
    putting.cancel()
    await asyncio.sleep(0)
    was_done = putting.done()
    go_on.set()

    with pytest.raises(asyncio.CancelledError):
        await putting

    assert not was_done
    assert _files(tmp_path) in (["a.object"], [])


async def test_a_put_that_is_cancelled_as_its_file_opens_leaves_none_behind_or_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, putting, go_on = await _cancelled_as_it_opens(
        monkeypatch, FolderObjects(tmp_path).put("a", _pieces(b"a"), max_bytes=1)
    )
    putting.cancel()  # a second time, as a caller's deadline and its end may do
    await asyncio.sleep(0)
    was_done = putting.done()
    go_on.set()

    with pytest.raises(asyncio.CancelledError):
        await putting

    assert not was_done
    assert [file.closed for file in opened] == [True]
    assert _files(tmp_path) == []


async def test_a_get_that_is_cancelled_as_its_file_opens_leaves_none_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = FolderObjects(tmp_path)
    await objects.put("a", _pieces(b"a"), max_bytes=1)

    async def read() -> None:
        await anext(aiter(objects.get("a")))

    opened, reading, go_on = await _cancelled_as_it_opens(monkeypatch, read())
    go_on.set()

    with pytest.raises(asyncio.CancelledError):
        await reading

    assert [file.closed for file in opened] == [True]


async def _cancelled_as_it_opens(
    monkeypatch: pytest.MonkeyPatch, work: Coroutine[Any, Any, Any]
) -> tuple[list[IO[Any]], asyncio.Task[Any], threading.Event]:
    opened: list[IO[Any]] = []
    started, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    open_now = Path.open

    def slow_open(path: Path, mode: str) -> IO[Any]:
        opened.append(open_now(path, mode))
        loop.call_soon_threadsafe(started.set)
        go_on.wait(30)
        return opened[-1]

    monkeypatch.setattr(Path, "open", slow_open)
    task = asyncio.create_task(work)
    await started.wait()
    task.cancel()
    await asyncio.sleep(0)
    return opened, task, go_on


async def test_a_deletion_of_all_goes_on_past_what_another_deletes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = FolderObjects(tmp_path)
    for key in ("a/x/1", "a/x/2", "a/y/1", "a/z", "b"):
        await objects.put(key, _pieces(b"a"), max_bytes=1)
    unlink = os.unlink

    def unlink_twice(path: str, *, dir_fd: int | None = None) -> None:
        unlink(path, dir_fd=dir_fd)
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", unlink_twice)

    await objects.delete_prefix("a/")

    assert _files(tmp_path) == ["b.object"]
    assert not (tmp_path / "a").exists()


async def test_a_deletion_of_all_lets_a_put_come_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = FolderObjects(tmp_path)
    await objects.put("a/b/old", _pieces(b"a"), max_bytes=1)
    rmdir = Path.rmdir

    def put_first(path: Path) -> None:
        if path == tmp_path / "a" / "b":
            (path / "new.object").write_bytes(b"a")
        rmdir(path)

    monkeypatch.setattr(Path, "rmdir", put_first)

    await objects.delete_prefix("a/")

    assert await objects.keys("") == ["a/b/new"]
