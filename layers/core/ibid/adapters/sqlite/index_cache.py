"""The sealed generations that are open: the latest few, each until its last reader is done."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ibid.adapters.sqlite.index_place import GenerationPlace
from ibid.adapters.sqlite.index_reader import SealedGeneration

_Identity = tuple[int, int, int]


@dataclass(slots=True)
class _Entry:
    identity: _Identity
    generation: SealedGeneration
    readers: int = 0
    kept: bool = True


class OpenGenerations:
    """Opens generations when they are read, and keeps the latest open; for any threads.

    A deleted file's generation is closed at the next attempt to read it, a file that took its
    place is another one.
    """

    def __init__(
        self, limit: int, opened: Callable[[GenerationPlace], SealedGeneration] = SealedGeneration
    ) -> None:
        self._limit = limit
        self._opened = opened
        self._lock = threading.Lock()
        self._entries: OrderedDict[Path, _Entry] = OrderedDict()

    @contextmanager
    def reading(self, place: GenerationPlace) -> Iterator[SealedGeneration]:
        """Hold a generation open.

        Raises:
            FileNotFoundError: It is not sealed, or deleted.
        """
        entry = self._taken(place)
        try:
            yield entry.generation
        finally:
            with self._lock:
                entry.readers -= 1
                self._close_if_idle(entry)

    def close(self) -> None:
        """Keep nothing open any longer; repeatable."""
        with self._lock:
            for path in list(self._entries):
                self._drop(path)

    def forget(self, folder: Path) -> None:
        """Keep no generation open that lies in a folder, or is it."""
        with self._lock:
            for path in [path for path in self._entries if path.is_relative_to(folder)]:
                self._drop(path)

    def _taken(self, place: GenerationPlace) -> _Entry:
        path = place.file
        try:
            identity = _identity(path)
        except FileNotFoundError:
            self.forget(path)
            raise
        with self._lock:
            entry = self._entries.get(path)
            if entry is not None and entry.identity == identity:
                self._entries.move_to_end(path)
                entry.readers += 1
                return entry
        # Opening takes long: other generations are read meanwhile, and this one may be opened twice
        entry = _Entry(identity, self._opened(place), readers=1)
        with self._lock:
            self._drop(path)
            self._entries[path] = entry
            while len(self._entries) > self._limit:
                self._drop(next(iter(self._entries)))
        return entry

    def _drop(self, path: Path) -> None:
        entry = self._entries.pop(path, None)
        if entry is not None:
            entry.kept = False
            self._close_if_idle(entry)

    @staticmethod
    def _close_if_idle(entry: _Entry) -> None:
        if not entry.kept and not entry.readers:
            entry.generation.close()


def _identity(path: Path) -> _Identity:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_mtime_ns
