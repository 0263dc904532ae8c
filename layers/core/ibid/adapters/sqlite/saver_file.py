"""The checkpoint file: `Database`, for plain calls too, and for processes that fork."""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from ibid.adapters.sqlite.database import Database, Work
from ibid.adapters.sqlite.migrations import Step
from ibid.adapters.sqlite.saver_schema import adopt
from ibid.domain.errors import StoreUnavailable

T = TypeVar("T")

# What a fork left behind. SQLite forbids a child to touch its parent's connections, and to close
# one is to touch it, so nothing may ever collect them.
_left_behind: list[tuple[Executor, Executor, list[sqlite3.Connection], threading.local]] = []


class SaverFile(Database):
    """A file whose transactions belong to no event loop; see `Database`.

    `write_now`, `erase_now` and `read_now` block the calling thread. A child process that was
    forked with the file open gets threads and connections of its own at its first call.
    """

    def __init__(self, path: Path, *, busy_s: float, readers: int) -> None:
        super().__init__(path, busy_s=busy_s, readers=readers)
        self._reader_count = readers
        self._process = os.getpid()

    async def write(self, work: Work[T]) -> T:
        """Do as `Database.write`."""
        self._leave_parent()
        return await super().write(work)

    async def erase(self, work: Work[T]) -> T:
        """Do as `Database.erase`."""
        self._leave_parent()
        return await super().erase(work)

    async def read(self, work: Work[T]) -> T:
        """Do as `Database.read`."""
        self._leave_parent()
        return await super().read(work)

    def write_now(self, work: Work[T]) -> T:
        """Do as `write`, and block."""
        self._leave_parent()
        return self._wait(self._writer, lambda: self._write(work))

    def erase_now(self, work: Work[T]) -> T:
        """Do as `erase`, and block."""
        self._leave_parent()
        return self._wait(self._writer, lambda: self._erase(work))

    def read_now(self, work: Work[T]) -> T:
        """Do as `read`, and block."""
        self._leave_parent()
        return self._wait(self._readers, lambda: self._read(work))

    async def _submit(self, executor: Executor, work: Callable[[], T]) -> T:
        future = asyncio.wrap_future(_submitted(executor, work))
        with _failures():
            return await asyncio.shield(future)

    def _wait(self, executor: Executor, work: Callable[[], T]) -> T:
        future = _submitted(executor, work)
        with _failures():
            return future.result()

    def _leave_parent(self) -> None:
        if self._process == os.getpid():
            return
        _left_behind.append((self._writer, self._readers, self._connections, self._of_thread))
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="ibid-saver-writer")
        self._readers = ThreadPoolExecutor(
            self._reader_count, thread_name_prefix="ibid-saver-reader"
        )
        self._connections = []
        self._of_thread = threading.local()
        self._process = os.getpid()

    def _create(self, steps: Sequence[Step], application_id: int) -> None:
        if self._path.is_file():
            with suppress(sqlite3.DatabaseError):  # the base finds the same and names it
                adopt(self._connection())
        super()._create(steps, application_id)


def _submitted(executor: Executor, work: Callable[[], T]) -> Future[T]:
    try:
        return executor.submit(work)
    except RuntimeError as error:  # how an executor says that it was shut down
        raise StoreUnavailable("the checkpoint file is closed") from error


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:  # without its text, which may quote what was to be written
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        raise StoreUnavailable(f"the checkpoint file failed with {name}") from error
