"""An embedded saver on a file of its own, and what is put into it."""

import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointTuple
from langgraph.checkpoint.base import id as generator

from ibid.adapters.sqlite.saver import EmbeddedSaver


class Clock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        return self.at


@asynccontextmanager
async def opened(folder: Path, **options: Any) -> AsyncIterator[EmbeddedSaver]:  # noqa: ANN401 - the saver's own
    saver = await EmbeddedSaver.open(folder / "c.sqlite", **options)
    try:
        yield saver
    finally:
        await saver.close()


def place(thread_id: object = "t", ns: str = "", **configurable: object) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, **configurable}}


def a_checkpoint(values: Mapping[str, Any] | None = None) -> Checkpoint:
    return Checkpoint(
        v=4,
        id=str(generator.uuid6(clock_seq=0)),
        ts="2026-01-01T00:00:00+00:00",
        channel_values=dict(values or {}),
        channel_versions={},
        versions_seen={},
        updated_channels=None,
    )


async def put(
    saver: EmbeddedSaver,
    config: RunnableConfig | None = None,
    *,
    values: Mapping[str, Any] | None = None,
    **metadata: Any,  # noqa: ANN401 - any metadata
) -> RunnableConfig:
    """Store a checkpoint under the config's one, and return the config that names it."""
    full: Any = {"source": "loop", "step": 0, "parents": {}, **metadata}
    return await saver.aput(config or place(), a_checkpoint(values), full, {})


async def put_chain(saver: EmbeddedSaver, count: int, ns: str = "") -> Sequence[RunnableConfig]:
    """Store so many checkpoints, each the parent of the next."""
    configs = [await put(saver, place(ns=ns))]
    for step in range(1, count):
        configs.append(await put(saver, configs[-1], step=step))
    return configs


async def listed(saver: EmbeddedSaver, config: RunnableConfig | None = None) -> Sequence[str]:
    """Return the ids of a thread's checkpoints, newest first."""
    return [found.checkpoint["id"] async for found in saver.alist(config or place())]


async def the(saver: EmbeddedSaver, config: RunnableConfig | None = None) -> CheckpointTuple:
    """Return a checkpoint that is there."""
    found = await saver.aget_tuple(config or place())
    assert found is not None
    return found


def id_of(config: RunnableConfig) -> str:
    checkpoint_id: str = config["configurable"]["checkpoint_id"]
    return checkpoint_id


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """Ask the file itself."""
    connection = sqlite3.connect(folder / "c.sqlite")
    try:
        found = connection.execute(query).fetchall()
        connection.commit()
        return found
    finally:
        connection.close()


def all_bytes(folder: Path) -> bytes:
    """Return what all the files hold."""
    return b"".join(path.read_bytes() for path in folder.iterdir())
