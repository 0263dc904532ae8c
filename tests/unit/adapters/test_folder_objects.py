"""Files behind the object store: nothing leaves the folder, nothing is left behind."""

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

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


async def test_a_folder_that_is_pruned_meanwhile_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pruned: list[Path] = []
    replace = Path.replace

    def prune_once(path: Path, target: Path) -> Path:
        if not pruned:
            pruned.append(target.parent)
            target.parent.rmdir()
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", prune_once)

    await FolderObjects(tmp_path).put("a/b", _pieces(b"a"), max_bytes=1)

    assert pruned
    assert _files(tmp_path) == ["a/b.object"]


async def test_a_folder_that_is_pruned_again_and_again_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: Path, __: Path) -> Path:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "replace", gone)

    with pytest.raises(ObjectStoreUnavailable):
        await FolderObjects(tmp_path).put("a/b", _pieces(b"a"), max_bytes=1)

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
