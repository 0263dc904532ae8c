"""From stored items to what LangGraph reads."""

from collections.abc import Mapping
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple, PendingWrite
from langgraph.checkpoint.serde.base import SerializerProtocol

from ibid.adapters.dynamodb.fence import SEALED, Fence, token_of
from ibid.adapters.dynamodb.packs import Task, in_order, part_names, tasks_of
from ibid.adapters.dynamodb.rows import CHECKPOINT, METADATA, Row
from ibid.adapters.dynamodb.storage import Item, Storage
from ibid.domain.errors import CheckpointCorrupt, IbidError


class Reader:
    """Reads what counts, strongly consistent, and refuses what is not whole.

    Args:
        storage: Where.
        serde: What the values were written with.
    """

    def __init__(self, storage: Storage, serde: SerializerProtocol) -> None:
        self._storage = storage
        self._serde = serde

    def counting_writes(self, fence: Fence, row: Row) -> list[Item]:
        """Return the items of the writes to a checkpoint that count."""
        return [
            item
            for item in self._storage.writes_to(row.thread_id, row.checkpoint_id, row.checkpoint_ns)
            if fence.admits_writes(
                row.checkpoint_ns, row.checkpoint_id, token_of(item), sealed=SEALED in item
            )
        ]

    def tasks(self, row: Row, items: list[Item]) -> list[Task]:
        """Return what the items hold, with large parts loaded.

        Raises:
            CheckpointCorrupt: One is not whole.
        """
        load = self._storage.parts.load
        ids = {"thread_id": row.thread_id, "checkpoint_id": row.checkpoint_id}
        with _Whole(row):
            parts = {
                at: {name: load(item[name], **ids) for name in part_names(item)}
                for at, item in enumerate(items)
            }
            return tasks_of(items, parts)

    def metadata(self, row: Row) -> Mapping[str, Any]:
        """Return a row's metadata.

        Raises:
            CheckpointCorrupt: It can't be read.
        """
        found: Mapping[str, Any] = self._value(row, METADATA)
        return found

    def tuple(
        self, row: Row, items: list[Item], *, more: Mapping[str, Any] | None = None
    ) -> CheckpointTuple:
        """Return a checkpoint with its pending writes.

        Args:
            row: The checkpoint.
            items: Its writes that count.
            more: Further keys of the config's `configurable`.

        Raises:
            CheckpointCorrupt: Something of it is missing, altered or of an unknown type.
        """
        checkpoint, metadata = self._value(row, CHECKPOINT), self._value(row, METADATA)
        slots = in_order(self.tasks(row, items))
        with _Whole(row):
            pending: list[PendingWrite] = [
                (task_id, slot.channel, self._serde.loads_typed((slot.kind, slot.value)))
                for task_id, slot in slots
            ]
        config = row.config()
        config["configurable"].update(more or {})
        return CheckpointTuple(config, checkpoint, metadata, row.parent_config(), pending)

    def _value(self, row: Row, part: str) -> Any:  # noqa: ANN401 - what the serializer gives
        with _Whole(row):
            data = self._storage.parts.load(
                row.item[part], thread_id=row.thread_id, checkpoint_id=row.checkpoint_id
            )
            value = self._serde.loads_typed((row.kind(part), data))
            if part == CHECKPOINT and value["id"] != row.checkpoint_id:
                raise ValueError("another checkpoint's")
            return value if part == CHECKPOINT else dict(value)


class _Whole:
    """Turns whatever a serializer, a cipher or a missing attribute raises into one named error.

    What has a name of Ibid's already keeps it.
    """

    def __init__(self, row: Row) -> None:
        self._row = row

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, IbidError):
            raise CheckpointCorrupt(
                f"checkpoint {self._row.checkpoint_id!r} of thread {self._row.thread_id!r} "
                f"can't be read: {type(error).__name__}",
                thread_id=self._row.thread_id,
                checkpoint_id=self._row.checkpoint_id,
            ) from error
