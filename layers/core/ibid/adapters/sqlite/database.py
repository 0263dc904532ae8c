"""One SQLite file: a thread that writes, a few that read, whole transactions as functions.

The file is in WAL mode, so readers and the writer do not wait for each other. `synchronous` is
`NORMAL`: what was acknowledged outlives a killed process. A power cut or a crash of the operating
system may cost the last transactions that the system had not yet written out by itself, usually
those of the last half minute, never part of one; deletions are on the disk at once. `FULL` would
keep those too: beginning a run then took 4.8 ms instead of 0.3 on a disk that others used.
"""

import asyncio
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

from ibid.adapters.sqlite.migrations import (
    APPLICATION_ID,
    STEPS,
    Step,
    known_version,
    migrate,
)
from ibid.domain.errors import Misconfigured, StoreUnavailable

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

logger = logging.getLogger(__name__)

_RETRY_S = 0.02


class Database:
    """A file and its threads; use `open`, and `close` in the end.

    A transaction that was handed over is finished whatever becomes of the task that awaits it:
    a cancelled caller leaves it whole or never begun.
    """

    def __init__(self, path: Path, *, busy_s: float, readers: int) -> None:
        self._path = path
        self._busy_s = busy_s
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="ibid-store-writer")
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="ibid-store-reader")
        self._connections: list[sqlite3.Connection] = []
        self._of_thread = threading.local()
        self._unscrubbed = False

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        busy_s: float = 2.0,
        readers: int = 2,
        steps: Sequence[Step] = STEPS,
        application_id: int = APPLICATION_ID,
    ) -> Self:
        """Open the file, making it and its folder if need be, and bring its schema up to date.

        Args:
            path: Of the file; SQLite keeps two more beside it.
            busy_s: Seconds to wait while another process writes, above 0.
            readers: Threads that read, at least 1.
            steps: See `migrate`.
            application_id: See `migrate`.

        Raises:
            SchemaTooNew: A newer version wrote the file.
            Misconfigured: It is another program's database, or none.
            StoreUnavailable: It can't be opened.
        """
        database = cls(path, busy_s=busy_s, readers=readers)
        try:
            await database._submit(
                database._writer, lambda: database._create(steps, application_id)
            )
        except BaseException:
            await database.close()
            raise
        return database

    async def write(self, work: Work[T]) -> T:
        """Run `work` in a transaction that sees no other writer, commit, and return its value.

        Raises:
            StoreUnavailable: The file stayed busy, or failed; nothing of it was kept.
        """
        return await self._submit(self._writer, lambda: self._write(work))

    async def erase(self, work: Work[T]) -> T:
        """Do as `write`, then remove what it deleted from every byte of the files.

        `secure_delete` blanks it in the file itself; the log still holds older pages, so it is
        written back and cut to nothing. A reader of another process may hold that up: then it
        is tried again after each later write.
        """
        return await self._submit(self._writer, lambda: self._erase(work))

    async def read(self, work: Work[T]) -> T:
        """Run `work` on one snapshot, which holds every acknowledged write.

        Raises:
            StoreUnavailable: The file could not be read.
        """
        return await self._submit(self._readers, lambda: self._read(work))

    async def close(self) -> None:
        """Finish what was handed over and close the file; repeatable."""
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, self._close))

    async def _submit(self, executor: Executor, work: Callable[[], T]) -> T:
        try:
            future = asyncio.get_running_loop().run_in_executor(executor, work)
        except RuntimeError as error:  # how an executor says that it was shut down
            raise StoreUnavailable("the app store is closed") from error
        try:
            return await asyncio.shield(future)
        except sqlite3.IntegrityError as error:  # ids are never used twice: not worth another try
            raise ValueError(f"the app store refused a row: {_name(error)}") from error
        except sqlite3.Error as error:
            raise StoreUnavailable(f"the app store failed with {_name(error)}") from error

    def _connect(self) -> sqlite3.Connection:
        # check_same_thread: each serves one thread, but whoever closes the store closes them all
        connection = sqlite3.connect(
            self._path, timeout=self._busy_s, isolation_level=None, check_same_thread=False
        )
        self._connections.append(connection)
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA temp_store = MEMORY")  # no text in files elsewhere
        return connection

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._of_thread, "connection", None)
        if connection is None:
            connection = self._of_thread.connection = self._connect()
        return connection

    def _create(self, steps: Sequence[Step], application_id: int) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # SQLite gives its other files the mode of this one: questions are nobody else's.
            # Only a new file is opened here: to close one drops all locks that this process has
            # on it, and then another process may take the log away from a store that uses it.
            with suppress(FileExistsError):
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except OSError as error:
            name = type(error).__name__
            raise StoreUnavailable(f"{self._path.name!r} can't be opened: {name}") from error
        name = self._path.name
        try:
            connection = self._connection()
            # before anything is changed; on one snapshot, since others may be making the file
            connection.execute("BEGIN")
            try:
                known_version(
                    connection, name=name, newest=len(steps), application_id=application_id
                )
            finally:
                connection.execute("ROLLBACK")
        except sqlite3.DatabaseError as error:
            if _name(error) == "SQLITE_NOTADB":
                raise Misconfigured(f"{name!r} is no database") from error
            raise
        self._set_wal(connection)
        migrate(connection, name=name, steps=steps, application_id=application_id)

    def _set_wal(self, connection: sqlite3.Connection) -> None:
        """Switch to WAL; another process that does the same at once is waited for.

        SQLite does not call its busy handler for this statement.
        """
        give_up_at = time.monotonic() + self._busy_s
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError:
                if time.monotonic() >= give_up_at:
                    raise
                time.sleep(_RETRY_S)
            else:
                return

    def _write(self, work: Work[T]) -> T:
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if self._unscrubbed:
            self._scrub(connection)
        return result

    def _erase(self, work: Work[T]) -> T:
        result = self._write(work)
        self._scrub(self._connection())
        return result

    def _scrub(self, connection: sqlite3.Connection) -> None:
        try:
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.Error:  # the deletion itself is kept
            busy = 1
        if busy and not self._unscrubbed:
            logger.warning("store_scrub_postponed")
        self._unscrubbed = bool(busy)

    def _read(self, work: Work[T]) -> T:
        connection = self._connection()
        connection.execute("BEGIN")
        try:
            return work(connection)
        finally:
            if connection.in_transaction:  # an error of the disk may have ended it
                connection.execute("COMMIT")

    def _close(self) -> None:
        self._writer.shutdown()
        self._readers.shutdown()
        while self._connections:
            self._connections.pop().close()


def _name(error: sqlite3.Error) -> str:
    """Name an error without its text, which may quote what was to be written."""
    return getattr(error, "sqlite_errorname", type(error).__name__)
