"""What LangGraph hands over, serialized and stored."""

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, get_checkpoint_metadata
from langgraph.checkpoint.serde.base import SerializerProtocol

from ibid.adapters.checkpoints.ids import is_above
from ibid.adapters.dynamodb.keys import FENCE_ROW
from ibid.adapters.dynamodb.packs import Slot, folded
from ibid.adapters.dynamodb.place import place_of
from ibid.adapters.dynamodb.rows import config_of
from ibid.adapters.dynamodb.storing import RUN, Store, Target
from ibid.domain.errors import CheckpointStale


def write_checkpoint(
    store: Store,
    serde: SerializerProtocol,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
) -> RunnableConfig:
    """Store a checkpoint below the one that the config names; return the config that names it.

    Raises:
        CheckpointStale: Its id is not above its parent's; see `ids`.
        ValueError: Its id would sort above the thread's fence.
    """
    place, checkpoint_id = place_of(config), checkpoint["id"]
    if checkpoint_id >= FENCE_ROW:
        raise ValueError(f"checkpoint id {checkpoint_id!r} does not sort below {FENCE_ROW!r}")
    if place.checkpoint_id is not None and not is_above(checkpoint_id, place.checkpoint_id):
        raise CheckpointStale(
            f"checkpoint {checkpoint_id!r} of thread {place.thread_id!r} would sort below its "
            "parent: its id was made at the moment when the parent was read",
            thread_id=place.thread_id,
            checkpoint_id=checkpoint_id,
        )
    full = get_checkpoint_metadata(config, metadata)
    store.checkpoint(
        Target(
            thread_id=place.thread_id,
            checkpoint_ns=place.checkpoint_ns,
            checkpoint_id=checkpoint_id,
            parent_id=place.checkpoint_id,
        ),
        serde.dumps_typed(checkpoint),
        serde.dumps_typed(full),
        run_id=full.get(RUN),
    )
    return config_of(place.thread_id, place.checkpoint_ns, checkpoint_id)


def write_pending(
    store: Store,
    serde: SerializerProtocol,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    *,
    task_id: str,
    task_path: str,
) -> None:
    """Store what a task wrote on the checkpoint that the config names.

    Raises:
        ValueError: It names none.
    """
    place = place_of(config)
    if place.checkpoint_id is None:
        raise ValueError("configurable has no checkpoint_id")
    if not writes:
        return
    slots = folded([Slot(channel, *serde.dumps_typed(value)) for channel, value in writes])
    target = Target(
        thread_id=place.thread_id,
        checkpoint_ns=place.checkpoint_ns,
        checkpoint_id=place.checkpoint_id,
    )
    store.writes(target, slots, task_id=task_id, task_path=task_path)
