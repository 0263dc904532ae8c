"""Objects as files of one folder.

A key's segments become folders and, the last one, a file. Whatever is not a lower-case ASCII
letter, a digit, `-` or `_` is written `%` and two hex digits a byte, so that no key leaves the
folder, and no two keys meet on a file system that folds case or normalises. A long segment goes
on in a subfolder (its pieces but the last end in `~`); a file ends in `.object`, which no folder
does, so `a` and `a/b` can both be there.
"""

import asyncio
import contextlib
import os
import re
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import unquote_to_bytes

from ibid.domain.errors import (
    ObjectExists,
    ObjectMissing,
    ObjectStoreUnavailable,
    ValidationFailed,
)

T = TypeVar("T")

_MAX_KEY_BYTES = 900
_PIECE_BYTES = 1 << 20
_NAME_CHARACTERS = 200  # a file system takes 255 bytes
_SUFFIX = ".object"
_GOES_ON = "~"
_UNFINISHED = ".unfinished"
_ABANDONED_S = 24 * 3600.0
_ATTEMPTS = 50
_PLAIN = re.compile(rb"[a-z0-9_-]")


class FolderObjects:
    """Implements ObjectStore; several processes may use one folder.

    A put writes beside and renames or links, so that it is seen whole or not at all, and is on
    the disk before it returns. What a killed process left unfinished goes a day later, with a put.

    Args:
        root: The folder, made if need be.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    async def put(self, key: str, chunks: AsyncIterator[bytes], *, max_bytes: int) -> int:
        """Keep an object, replacing what was there, and return its size."""
        return await self._put(key, chunks, max_bytes, _replace)

    async def put_new(self, key: str, chunks: AsyncIterator[bytes], *, max_bytes: int) -> int:
        """Keep an object where there is none, and return its size; of several at once, one does.

        The file system has to know hard links.
        """
        return await self._put(key, chunks, max_bytes, _link)

    async def _put(
        self,
        key: str,
        chunks: AsyncIterator[bytes],
        max_bytes: int,
        place: Callable[[Path, Path], None],
    ) -> int:
        path = self._file(key)
        unfinished = self._root / _UNFINISHED / uuid.uuid4().hex
        file = await _in_thread(lambda: _open_new(unfinished), undo=_drop)
        try:
            size = await _copy(chunks, file, max_bytes)
            await _in_thread(lambda: _finish(file, path, place))
        finally:
            await _in_thread(lambda: _drop(file))
        return size

    async def get(self, key: str) -> AsyncIterator[bytes]:
        """Read an object in pieces of at most 1 MiB."""
        path = self._file(key)
        file = await _in_thread(lambda: _open(path), undo=lambda file: file.close())
        try:
            while piece := await _in_thread(lambda: file.read(_PIECE_BYTES)):
                yield piece
        finally:
            file.close()

    async def delete(self, key: str) -> None:
        """Remove an object; repeatable."""
        path = self._file(key)
        await _in_thread(lambda: self._remove(path))

    async def delete_prefix(self, prefix: str) -> None:
        """Remove every object whose key starts with `prefix`; repeatable."""
        if not prefix.endswith("/"):
            raise ValueError("a prefix to delete ends in '/'")
        folder = self._folder(prefix[:-1])
        await _in_thread(lambda: self._remove_tree(folder))

    async def keys(self, prefix: str) -> Sequence[str]:
        """List the keys that start with `prefix`, in code point order."""
        parent = prefix.rpartition("/")[0]
        folder = self._folder(parent) if parent else self._root
        found = await _in_thread(lambda: [self._key(path) for path in _files(folder)])
        return sorted(key for key in found if key.startswith(prefix))

    def _file(self, key: str) -> Path:
        folder = self._folder(key)
        return folder.with_name(folder.name + _SUFFIX)

    def _folder(self, key: str) -> Path:
        return self._root.joinpath(*names_of(key))

    def _key(self, path: Path) -> str:
        return key_of(path.relative_to(self._root).as_posix().removesuffix(_SUFFIX))

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self._prune(path.parent)

    def _remove_tree(self, folder: Path) -> None:
        for at, names in _walk(folder, topdown=False):
            for name in names:
                (at / name).unlink(missing_ok=True)
            self._prune(at)
        self._prune(folder)

    def _prune(self, folder: Path) -> None:
        """Remove the folders that have become empty; a put that meets this makes them again."""
        while folder != self._root:
            try:
                folder.rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                return
            folder = folder.parent


def names_of(key: str) -> list[str]:
    """Turn a key into the names of its folders and, without suffix, of its file.

    Raises:
        ValueError: The key is outside the port's form.
    """
    if not 0 < len(key.encode()) <= _MAX_KEY_BYTES:
        raise ValueError(f"a key has 1 to {_MAX_KEY_BYTES} bytes")
    names: list[str] = []
    for segment in key.split("/"):
        if segment in {"", ".", ".."}:
            raise ValueError("a key's segments are not empty, '.' or '..'")
        name = ""
        for byte in segment.encode():
            character = bytes([byte])
            if len(name) > _NAME_CHARACTERS:
                names.append(name + _GOES_ON)
                name = ""
            name += character.decode() if _PLAIN.fullmatch(character) else f"%{byte:02x}"
        names.append(name)
    return names


def key_of(names: str) -> str:
    """Turn what `names_of` gave, joined by `/`, back into the key."""
    return unquote_to_bytes(names.replace(_GOES_ON + "/", "")).decode()


async def _copy(chunks: AsyncIterator[bytes], file: BinaryIO, max_bytes: int) -> int:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            raise ValidationFailed(f"the object is larger than {max_bytes} bytes")
        await _in_thread(partial(file.write, chunk))
    return size


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise ObjectMissing("there is no object under this key") from None


def _open_new(path: Path) -> BinaryIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    for other in path.parent.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process removed or finished it
            if time.time() - other.stat().st_mtime > _ABANDONED_S:
                other.unlink()
    return path.open("xb")


def _finish(file: BinaryIO, path: Path, place: Callable[[Path, Path], None]) -> None:
    file.flush()
    os.fsync(file.fileno())
    file.close()
    attempts_left = _ATTEMPTS
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            place(Path(file.name), path)
            break
        except (FileNotFoundError, FileExistsError):
            # a deletion pruned the folder before the file came, or between mkdir's two looks at it
            attempts_left -= 1
            if not attempts_left:
                raise
    _sync_folder(path.parent)


def _replace(whole: Path, path: Path) -> None:
    whole.replace(path)


def _link(whole: Path, path: Path) -> None:
    try:
        path.hardlink_to(whole)  # unlike a rename, it fails if there is something
    except FileExistsError:
        raise ObjectExists("there is an object under this key") from None


def _sync_folder(folder: Path) -> None:
    """Put a rename on the disk, where folders can be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _drop(file: BinaryIO) -> None:
    with contextlib.suppress(OSError):  # a full disk: what is not written yet is not wanted
        file.close()
    Path(file.name).unlink(missing_ok=True)


def _files(folder: Path) -> list[Path]:
    return [at / name for at, names in _walk(folder) for name in names if name.endswith(_SUFFIX)]


def _walk(folder: Path, *, topdown: bool = True) -> Iterator[tuple[Path, list[str]]]:
    """Yield each folder and its files, but for a folder that is removed meanwhile."""

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for at, _, names in os.walk(folder, topdown=topdown, onerror=fail):
        yield Path(at), names


async def _in_thread(work: Callable[[], T], *, undo: Callable[[T], None] | None = None) -> T:
    """Run `work` in a thread; a cancelled caller still waits until the thread is done with it.

    Args:
        work: What may block.
        undo: Takes what `work` gave to a caller that was cancelled meanwhile.

    Raises:
        ObjectStoreUnavailable: For an OSError.
    """
    future = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            with contextlib.suppress(asyncio.CancelledError):  # of another cancellation
                await asyncio.wait([future])
        if undo and not future.exception():
            undo(future.result())
        raise
    except OSError as error:
        raise ObjectStoreUnavailable(f"the object folder failed: {type(error).__name__}") from error
