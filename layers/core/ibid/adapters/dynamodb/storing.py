"""Serialized checkpoints and writes into items, one call each; large parts leave the item first."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from ibid.adapters.dynamodb.fence import TOKEN
from ibid.adapters.dynamodb.keys import pack_range, writes_partition
from ibid.adapters.dynamodb.packs import PARTITION, RANGE, Slots, attributes_of, update_of
from ibid.adapters.dynamodb.parts import inline
from ibid.adapters.dynamodb.retries import code_of
from ibid.adapters.dynamodb.rows import CHECKPOINT, METADATA, item_of, size_of
from ibid.adapters.dynamodb.storage import Storage
from ibid.adapters.dynamodb.tables import FIRST_OF_RUN, ORPHAN_THREAD
from ibid.domain.errors import CheckpointStale

RUN = "run_id"

_FIXED = 600  # bytes: the keys and names of an item, generously
_POINTER = 700  # bytes that an item keeps of a part that left it
_INDEXED_BYTES = 2_048  # DynamoDB's most for a key

_Parts = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The checkpoint that something is stored for, or as.

    `parent_id` is None for the first of a thread, and means nothing for writes.
    """

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    parent_id: str | None = None


class Store:
    """Puts what is serialized already.

    Args:
        storage: Where.
        token: The writer's, 0 for none.
    """

    def __init__(self, storage: Storage, token: int) -> None:
        self._storage = storage
        self._token = token

    def checkpoint(
        self,
        target: Target,
        checkpoint: tuple[str, bytes],
        metadata: tuple[str, bytes],
        *,
        run_id: object,
    ) -> None:
        """Store a checkpoint by one put.

        Args:
            target: As what.
            checkpoint: Type and bytes.
            metadata: Likewise.
            run_id: Of the run that made it; anything but a text is none.

        Raises:
            CheckpointTooLarge: It needs a bucket and there is none.
            StoreUnavailable: No answer within the budget.
        """
        always = self._always() | self._run(target, run_id)

        def put(parts: _Parts) -> None:
            item = item_of(
                thread_id=target.thread_id,
                checkpoint_id=target.checkpoint_id,
                checkpoint_ns=target.checkpoint_ns,
                parent_id=target.parent_id,
                checkpoint=(checkpoint[0], parts[CHECKPOINT]),
                metadata=(metadata[0], parts[METADATA]),
            )
            self._storage.connection.dynamodb(
                "put_item", TableName=self._storage.checkpoints, Item={**item, **always}
            )

        self._fit(target, {CHECKPOINT: checkpoint[1], METADATA: metadata[1]}, always, put)
        self._storage.connection.remember(
            target.thread_id, target.checkpoint_ns, target.checkpoint_id
        )

    def writes(self, target: Target, slots: Slots, *, task_id: str, task_path: str) -> None:
        """Store a task's writes by one update.

        Args:
            target: The checkpoint that the task runs on.
            slots: By index, not empty.
            task_id: Whose.
            task_path: Sorts the tasks of a step.

        Raises:
            CheckpointStale: A later lease's holder goes on from this checkpoint.
            CheckpointTooLarge: They need a bucket and there is none.
            StoreUnavailable: No answer within the budget.
        """
        always = self._always() | {"task_id": {"S": task_id}, "task_path": {"S": task_path}}
        ids = target.thread_id, target.checkpoint_ns, target.checkpoint_id
        if self._token or not self._storage.connection.remembers(*ids):
            # The checkpoint may never come, or be deleted before this arrives; a deletion of the
            # thread must find it without.
            always[ORPHAN_THREAD] = {"S": target.thread_id}
        partition = writes_partition(target.thread_id, target.checkpoint_id, target.checkpoint_ns)
        key = {PARTITION: {"S": partition}, RANGE: {"S": pack_range(task_id, self._token)}}

        def update(parts: _Parts) -> None:
            try:
                self._storage.connection.dynamodb(
                    "update_item",
                    TableName=self._storage.writes,
                    Key=key,
                    **update_of(parts, always),
                )
            except ClientError as error:
                if code_of(error) != "ConditionalCheckFailedException":
                    raise
                raise CheckpointStale(
                    f"another writer goes on from checkpoint {target.checkpoint_id!r} of thread "
                    f"{target.thread_id!r}",
                    thread_id=target.thread_id,
                    checkpoint_id=target.checkpoint_id,
                ) from error

        self._fit(target, attributes_of(slots), always, update)

    def _always(self) -> dict[str, Any]:
        token = {TOKEN: {"N": str(self._token)}} if self._token else {}
        return self._storage.expiry.attribute() | token

    def _run(self, target: Target, run_id: object) -> dict[str, Any]:
        if not isinstance(run_id, str) or not 0 < size_of(run_id) <= _INDEXED_BYTES:
            return {}
        named = {RUN: {"S": run_id}}
        first = self._storage.connection.first_time(target.thread_id, target.checkpoint_ns, run_id)
        return named | {FIRST_OF_RUN: named[RUN]} if first else named

    def _fit(
        self,
        target: Target,
        data: Mapping[str, bytes],
        always: Mapping[str, Any],
        store: Callable[[_Parts], None],
    ) -> None:
        """Store with as few parts outside the item as it takes, the largest first."""
        parts: dict[str, Mapping[str, Any]] = {name: inline(one) for name, one in data.items()}
        left = sorted(data, key=lambda name: len(data[name]), reverse=True)

        def offload() -> int:
            name = left.pop(0)
            parts[name] = self._storage.parts.offload(
                data[name],
                thread_id=target.thread_id,
                checkpoint_ns=target.checkpoint_ns,
                checkpoint_id=target.checkpoint_id,
            )
            return len(data[name]) - _POINTER

        keys = target.thread_id, target.checkpoint_ns, target.checkpoint_id
        size = _FIXED + size_of(always) + sum(size_of(key) for key in keys)
        size += sum(len(one) + size_of(name) + 3 for name, one in data.items())
        while left and size > self._storage.inline_bytes:
            size -= offload()
        try:
            store(parts)
        except ClientError as error:
            if not left or not _is_size(error):
                raise
            while left:  # what the item held already was not known here
                offload()
            store(parts)


def _is_size(error: ClientError) -> bool:
    message = str(error.response.get("Error", {}).get("Message", ""))
    return code_of(error) == "ValidationException" and "exceeded" in message and "size" in message
