"""What a config says of where and by whom."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig

from ibid.adapters.dynamodb.keys import PARTITION_BYTES
from ibid.domain.leases import FENCE

SEEN = "__ibid_seen"  # a reader without a lease saw that the thread has a fence


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A thread, a namespace and, if one is named, a checkpoint.

    `token` is the writer's, None without a lease; `seen` the fence's that the run's read met.
    """

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str | None
    token: int | None
    seen: int | None


def place_of(config: RunnableConfig | None) -> Place:
    """Read a config.

    Raises:
        ValueError: It names no thread, or one whose id no key can hold.
    """
    configurable: Mapping[str, Any] = (config or {}).get("configurable") or {}
    thread_id = configurable.get("thread_id")
    if thread_id is None or thread_id == "":
        raise ValueError("configurable has no thread_id")
    if len(str(thread_id).encode()) > PARTITION_BYTES:
        raise ValueError(f"thread_id takes more than {PARTITION_BYTES} bytes")
    checkpoint_id = configurable.get("checkpoint_id")
    return Place(
        thread_id=str(thread_id),
        checkpoint_ns=str(configurable.get("checkpoint_ns") or ""),
        checkpoint_id=str(checkpoint_id) if checkpoint_id else None,
        token=configurable.get(FENCE),
        seen=configurable.get(SEEN),
    )
