"""Our savers for a process of its own, and some that are worse on purpose."""

import asyncio
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from langchain_core.runnables import RunnableConfig

from ibid.adapters.dynamodb.retries import RetryBudget
from ibid.adapters.dynamodb.saver import DynamoSaver
from ibid.adapters.sqlite.saver import EmbeddedSaver
from ibid.adapters.sqlite.saver_file import SaverFile

Writes = Sequence[tuple[str, Any]]


def ibid(place: dict[str, Any], **options: Any) -> DynamoSaver:  # noqa: ANN401 - the saver's own
    """Return our saver on DynamoDB."""
    return _make(DynamoSaver, place, options)


def naive(place: dict[str, Any], **options: Any) -> DynamoSaver:  # noqa: ANN401 - as above
    """Return one that stores each write of a task by a call of its own."""
    return _make(NaiveSaver, place, options)


def embedded(place: dict[str, Any], **options: Any) -> EmbeddedSaver:  # noqa: ANN401 - as above
    """Return our saver on a file."""
    return _open(EmbeddedSaver, place, options)


def quick_embedded(place: dict[str, Any], **options: Any) -> EmbeddedSaver:  # noqa: ANN401 - as above
    """Return our saver on a file that starts as a copy of the folder's `new.sqlite`.

    It is never synced: a process that dies loses nothing by that, only a machine would.
    """
    path = _path(place)
    if not path.exists():
        shutil.copy(path.with_name("new.sqlite"), path)
    connect = SaverFile._connect  # noqa: SLF001 - where every connection comes from

    def unsynced(self: SaverFile) -> sqlite3.Connection:
        connection = connect(self)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    patch.object(SaverFile, "_connect", unsynced).start()  # until the process ends
    return _open(EmbeddedSaver, place, options)


def naive_embedded(place: dict[str, Any], **options: Any) -> EmbeddedSaver:  # noqa: ANN401 - as above
    """Return one that stores each write of a task by a call of its own."""
    return _open(NaiveEmbeddedSaver, place, options)


def stopping_embedded(place: dict[str, Any], **options: Any) -> EmbeddedSaver:  # noqa: ANN401 - as above
    """Return one that stops its process before it stores what a task wrote."""
    return _open(StoppingEmbeddedSaver, place, options)


class NaiveSaver(DynamoSaver):
    """Takes a task's writes apart, as a saver with one item a write does."""

    def put_writes(
        self, config: RunnableConfig, writes: Writes, task_id: str, task_path: str = ""
    ) -> None:
        """Store the first, then the first two, and so on: those that are stored stay."""
        for count in range(1, len(writes) + 1):
            super().put_writes(config, list(writes)[:count], task_id, task_path)


class NaiveEmbeddedSaver(EmbeddedSaver):
    """Takes a task's writes apart, as a saver with one transaction a write does."""

    async def aput_writes(
        self, config: RunnableConfig, writes: Writes, task_id: str, task_path: str = ""
    ) -> None:
        """Store the first, then the first two, and so on: those that are stored stay."""
        for count in range(1, len(writes) + 1):
            await super().aput_writes(config, list(writes)[:count], task_id, task_path)


class StoppingEmbeddedSaver(EmbeddedSaver):
    """Stops its process before it stores what a task wrote; its parent hears of it by waiting."""

    async def aput_writes(
        self, config: RunnableConfig, writes: Writes, task_id: str, task_path: str = ""
    ) -> None:
        """Stop; go on when told to."""
        os.kill(os.getpid(), signal.SIGSTOP)
        await super().aput_writes(config, writes, task_id, task_path)


def counting_transactions(after: Callable[[], object]) -> AbstractContextManager[Any]:
    """Return a patch that calls `after` once a transaction of a file was committed."""
    write = SaverFile._write  # noqa: SLF001 - where every store call passes

    def counted(self: SaverFile, work: Callable[[sqlite3.Connection], Any]) -> object:
        result = write(self, work)
        after()
        return result

    return patch.object(SaverFile, "_write", counted)


def counting_statements(after: Callable[[], object]) -> AbstractContextManager[Any]:
    """Return a patch that calls `after` when a statement begins that may change something.

    Who dies when a SELECT begins leaves what he leaves when the next statement does.
    """
    connect = SaverFile._connect  # noqa: SLF001 - where every connection comes from

    def traced(self: SaverFile) -> sqlite3.Connection:
        connection = connect(self)
        connection.set_trace_callback(
            lambda statement: None if statement.lstrip().startswith("SELECT") else after()
        )
        return connection

    return patch.object(SaverFile, "_connect", traced)


def _make(kind: type[DynamoSaver], place: dict[str, Any], options: dict[str, Any]) -> DynamoSaver:
    return kind(
        checkpoints_table_name=place["checkpoints"],
        writes_table_name=place["writes"],
        bucket=place["bucket"],
        client_config=place["client"],
        budget=RetryBudget(seconds=10),
        **options,
    )


def _open(
    kind: type[EmbeddedSaver], place: dict[str, Any], options: dict[str, Any]
) -> EmbeddedSaver:
    with ThreadPoolExecutor(1) as pool:  # a loop of its own: the saver belongs to none
        return pool.submit(asyncio.run, kind.open(_path(place), **options)).result()


def _path(place: dict[str, Any]) -> Path:
    return Path(place["folder"]) / f"{place.get('thread', 'c')}.sqlite"
