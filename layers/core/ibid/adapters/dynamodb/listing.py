"""The history of a thread, or of all of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from ibid.adapters.dynamodb.fence import Fence
from ibid.adapters.dynamodb.place import place_of
from ibid.adapters.dynamodb.reading import Reader
from ibid.adapters.dynamodb.rows import Row
from ibid.adapters.dynamodb.storage import Storage
from ibid.domain.errors import CheckpointCorrupt, ThreadGone


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What is asked for; None is no condition."""

    thread_id: str | None
    checkpoint_ns: str | None
    checkpoint_id: str | None
    before: str | None
    metadata: Mapping[str, Any]
    limit: int | None

    @classmethod
    def of(
        cls,
        config: RunnableConfig | None,
        *,
        metadata: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> "Listing":
        """Read LangGraph's arguments.

        Raises:
            ValueError: The config names no thread.
        """
        place = None if config is None else place_of(config)
        names_space = config is not None and "checkpoint_ns" in config["configurable"]
        return cls(
            thread_id=place.thread_id if place else None,
            checkpoint_ns=place.checkpoint_ns if place and names_space else None,
            checkpoint_id=place.checkpoint_id if place else None,
            before=(before or {}).get("configurable", {}).get("checkpoint_id"),
            metadata=metadata or {},
            limit=limit,
        )

    def wants(self, row: Row) -> bool:
        """Whether a row meets all conditions but the metadata's."""
        return (
            self.checkpoint_ns in {None, row.checkpoint_ns}
            and self.checkpoint_id in {None, row.checkpoint_id}
            and (self.before is None or row.checkpoint_id < self.before)
        )

    def accepts(self, metadata: Mapping[str, Any]) -> bool:
        """Whether metadata has all the values that are asked for."""
        return all(
            key in metadata and metadata[key] == value for key, value in self.metadata.items()
        )


def list_tuples(storage: Storage, reader: Reader, wanted: Listing) -> Iterator[CheckpointTuple]:
    """Yield what is asked for, newest first within a thread, reading no more than is taken.

    Raises:
        CheckpointCorrupt: One of them is not whole.
        ThreadGone: The thread was leased once, and deleted.
    """
    return islice(_all(storage, reader, wanted), wanted.limit)


def _all(storage: Storage, reader: Reader, wanted: Listing) -> Iterator[CheckpointTuple]:
    for fence, row in _rows(storage, wanted):
        if not wanted.wants(row):
            continue
        try:
            if wanted.metadata and not wanted.accepts(reader.metadata(row)):
                continue
            found = reader.tuple(row, reader.counting_writes(fence, row))
        except CheckpointCorrupt:
            if storage.row(row.thread_id, row.checkpoint_id, row.checkpoint_ns) is not None:
                raise
            continue  # it was deleted meanwhile
        yield found


def _rows(storage: Storage, wanted: Listing) -> Iterator[tuple[Fence, Row]]:
    if wanted.thread_id is None:
        for thread_id in storage.thread_ids():
            fence, rows = storage.rows(thread_id)
            yield from _living(storage, fence, rows)
        return
    fence, rows = storage.rows(wanted.thread_id, page=wanted.limit)
    if fence.gone:
        raise ThreadGone(f"thread {wanted.thread_id!r} was deleted", thread_id=wanted.thread_id)
    yield from _living(storage, fence, rows)


def _living(storage: Storage, fence: Fence, rows: Iterator[Row]) -> Iterator[tuple[Fence, Row]]:
    for at, row in enumerate(rows):
        if storage.expiry.is_over(row.item):
            if at == 0:
                return  # the newest is over, so the thread is
            continue
        yield fence, row
