"""A checkpoint as an item of the first table, and back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig

from ibid.adapters.dynamodb.fence import token_of
from ibid.adapters.dynamodb.keys import checkpoint_range

CHECKPOINT, METADATA = "checkpoint", "metadata"

_ID = "id"  # of a subgraph's checkpoint, whose key holds the namespace, too


@dataclass(frozen=True, slots=True)
class Row:
    """A stored checkpoint whose bytes are still to be loaded.

    `parent_id` is None for the first of a thread; `token` is 0 for a writer without a lease.
    """

    item: Mapping[str, Any]
    thread_id: str
    checkpoint_id: str
    checkpoint_ns: str
    parent_id: str | None
    token: int

    def key(self) -> dict[str, Any]:
        """Return its key in the table."""
        return {name: self.item[name] for name in ("thread_id", "checkpoint_id")}

    def config(self) -> RunnableConfig:
        """Return the config that names it."""
        return config_of(self.thread_id, self.checkpoint_ns, self.checkpoint_id)

    def parent_config(self) -> RunnableConfig | None:
        """Return the config that names its parent; None for the first."""
        if self.parent_id is None:
            return None
        return config_of(self.thread_id, self.checkpoint_ns, self.parent_id)

    def kind(self, part: str) -> str:
        """Return the serializer's type of `CHECKPOINT` or `METADATA`; 0.1.0 had one for both."""
        own = self.item.get(f"{part}_type", self.item["type"])
        return str(own["S"])


def config_of(thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> RunnableConfig:
    """Return the config that names a checkpoint."""
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": checkpoint_ns,
            "checkpoint_id": checkpoint_id,
        }
    }


def row_of(item: Mapping[str, Any]) -> Row:
    """Read an item's own attributes."""
    return Row(
        item=item,
        thread_id=item["thread_id"]["S"],
        checkpoint_id=item.get(_ID, item["checkpoint_id"])["S"],
        checkpoint_ns=item.get("checkpoint_ns", {}).get("S", ""),
        parent_id=item.get("parent_checkpoint_id", {}).get("S"),
        token=token_of(item),
    )


def key_of(thread_id: str, checkpoint_id: str, checkpoint_ns: str) -> dict[str, Any]:
    """Return a checkpoint's key."""
    key = checkpoint_range(checkpoint_id, checkpoint_ns)
    return {"thread_id": {"S": thread_id}, "checkpoint_id": {"S": key}}


def item_of(
    *,
    thread_id: str,
    checkpoint_id: str,
    checkpoint_ns: str,
    parent_id: str | None,
    checkpoint: tuple[str, Mapping[str, Any]],
    metadata: tuple[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the item of a checkpoint, with 0.1.0's attributes first.

    Args:
        thread_id: Whose.
        checkpoint_id: Its id.
        checkpoint_ns: Empty for the root graph.
        parent_id: None for the first.
        checkpoint: The serializer's type, and the attribute value of the bytes.
        metadata: Likewise.
    """
    item = {
        **key_of(thread_id, checkpoint_id, checkpoint_ns),
        "checkpoint_ns": {"S": checkpoint_ns},
        "parent_checkpoint_id": {"NULL": True} if parent_id is None else {"S": parent_id},
        "type": {"S": checkpoint[0]},
        CHECKPOINT: checkpoint[1],
        METADATA: metadata[1],
    }
    if checkpoint_ns:
        item[_ID] = {"S": checkpoint_id}
    if metadata[0] != checkpoint[0]:
        item[f"{METADATA}_type"] = {"S": metadata[0]}
    return item


def size_of(value: Any) -> int:  # noqa: ANN401 - any attribute value
    """Return about how many bytes an attribute value, or an item of such values, takes."""
    if isinstance(value, bytes | bytearray):
        return len(value)
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, Mapping):
        return sum(len(name.encode()) + size_of(one) + 3 for name, one in value.items())
    if isinstance(value, list):
        return sum(size_of(one) + 1 for one in value)
    return 1
