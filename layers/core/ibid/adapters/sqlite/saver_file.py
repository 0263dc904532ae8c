"""The checkpoint file: `Database`, for plain calls too, and for processes that fork."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from ibid.adapters.sqlite.database import Database, Work
from ibid.adapters.sqlite.migrations import Step
from ibid.adapters.sqlite.saver_forks import gate
from ibid.adapters.sqlite.saver_schema import adopt
from ibid.domain.errors import StoreUnavailable

T = TypeVar("T")


class SaverFile(Database):
    """A file whose transactions belong to no event loop; see `Database`.

    `write_now`, `erase_now` and `read_now` block the calling thread. After a fork both processes
    use the file.
    """

    def __init__(self, path: Path, *, busy_s: float, readers: int) -> None:
        super().__init__(path, busy_s=busy_s, readers=readers)
        self._reader_count = readers
        gate.admit(self)

    def write_now(self, work: Work[T]) -> T:
        """Do as `write`, and block."""
        return self._wait(self._writer, lambda: self._write(work))

    def erase_now(self, work: Work[T]) -> T:
        """Do as `erase`, and block."""
        return self._wait(self._writer, lambda: self._erase(work))

    def read_now(self, work: Work[T]) -> T:
        """Do as `read`, and block."""
        return self._wait(self._readers, lambda: self._read(work))

    async def _submit(self, executor: Executor, work: Callable[[], T]) -> T:
        future = asyncio.wrap_future(_submitted(executor, work))
        with _failures():
            return await asyncio.shield(future)

    def _wait(self, executor: Executor, work: Callable[[], T]) -> T:
        future = _submitted(executor, work)
        with _failures():
            return future.result()

    def leave(self) -> None:
        """Close all connections; each thread opens another one when it needs it."""
        self._of_thread = threading.local()
        while self._connections:
            self._connections.pop().close()

    def come_to(self) -> None:
        """Get threads, in a child process, where the parent's are not."""
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="ibid-saver-writer")
        self._readers = ThreadPoolExecutor(
            self._reader_count, thread_name_prefix="ibid-saver-reader"
        )

    def _close(self) -> None:
        self._writer.shutdown()
        self._readers.shutdown()
        gate.dismiss(self)

    def _create(self, steps: Sequence[Step], application_id: int) -> None:
        if self._path.is_file():
            with suppress(sqlite3.DatabaseError):  # the base finds the same and names it
                adopt(self._connection())
        super()._create(steps, application_id)


def _submitted(executor: Executor, work: Callable[[], T]) -> Future[T]:
    try:
        return executor.submit(gate.run, work)
    except RuntimeError as error:  # how an executor says that it was shut down
        raise StoreUnavailable("the checkpoint file is closed") from error


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    # without its text, which may quote what was to be written; one that quotes damage is no text
    except (sqlite3.Error, UnicodeDecodeError) as error:
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        raise StoreUnavailable(f"the checkpoint file failed with {name}") from error
