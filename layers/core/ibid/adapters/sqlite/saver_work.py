"""What the embedded saver's calls do, as functions of a connection, each in one transaction."""

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from sqlite3 import Connection
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import INTERRUPT

from ibid.adapters.checkpoints.ids import is_above
from ibid.adapters.sqlite import saver_leases as leases
from ibid.adapters.sqlite import saver_life as life
from ibid.adapters.sqlite import saver_rows as rows
from ibid.adapters.sqlite.database import Work
from ibid.adapters.sqlite.saver_leases import Held
from ibid.adapters.sqlite.saver_life import Lifetime
from ibid.adapters.sqlite.saver_rows import PackedCheckpoint, Place
from ibid.domain.errors import CheckpointStale
from ibid.domain.leases import FENCE, Lease

_SWEEP = 100  # threads that one transaction removes


class SaverWork:
    """Makes the work of each call; packing is done at once, so that nobody changes the values.

    Attributes:
        serde: Packs values; LangGraph's copies of a saver have their own.
        lifetime: How long threads live.
    """

    serde: SerializerProtocol
    lifetime: Lifetime

    def getting(
        self, thread_id: str, ns: str, checkpoint_id: str | None
    ) -> Work["tuple[str, CheckpointTuple | None] | None"]:
        """Read a checkpoint with the thread's highest id; None for an expired thread."""

        def work(connection: Connection) -> tuple[str, CheckpointTuple | None] | None:
            if life.is_expired(connection, thread_id, self.lifetime.now()):
                return None
            leases.check_not_gone(connection, thread_id)
            wanted = checkpoint_id or rows.newest(connection, thread_id, ns)
            found = None
            if wanted is not None:
                found = rows.load(
                    connection, Place(thread_id=thread_id, ns=ns, id=wanted), self.serde
                )
            return life.newest(connection, thread_id), found

        return work

    def finding(
        self,
        config: RunnableConfig | None,
        matching: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Work[Sequence[Place]]:
        """Find the places of what is to be listed."""
        configurable = config["configurable"] if config is not None else {}

        def work(connection: Connection) -> Sequence[Place]:
            if config is not None:
                leases.check_not_gone(connection, thread_of(config))
            found = rows.find(
                connection,
                thread_id=thread_of(config) if config is not None else None,
                ns=configurable.get("checkpoint_ns"),
                checkpoint_id=configurable.get("checkpoint_id"),
                before=get_checkpoint_id(before) if before is not None else None,
                now=self.lifetime.now(),
                matching=json.loads(json.dumps(matching or {})),
            )
            return [*islice(found, limit)]

        return work

    def loading(self, page: Sequence[Place]) -> Work[Sequence[CheckpointTuple]]:
        """Read a page of a listing; those deleted meanwhile are left out."""

        def work(connection: Connection) -> Sequence[CheckpointTuple]:
            found = (rows.load(connection, place, self.serde) for place in page)
            return [each for each in found if each is not None]

        return work

    def putting(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> tuple[PackedCheckpoint, Work[None]]:
        """Pack a checkpoint, and store it."""
        thread_id, ns, parent_id = named(config)
        place = Place(thread_id=thread_id, ns=ns, id=checkpoint["id"])
        full = get_checkpoint_metadata(config, metadata)
        kind, packed = self.serde.dumps_typed(checkpoint)
        row = PackedCheckpoint(
            place=place,
            parent_id=parent_id,
            kind=kind,
            packed=packed,
            metadata=json.dumps(full, ensure_ascii=False).encode("utf-8", "ignore"),
            run_id=run_id_of(full),
        )
        token = token_of(config)
        if parent_id is not None and not is_above(place.id, parent_id):
            msg = f"checkpoint {place.id!r} of thread {thread_id!r} is not above {parent_id!r}"
            raise CheckpointStale(msg, thread_id=thread_id, checkpoint_id=place.id)

        def work(connection: Connection) -> None:
            leases.check(connection, thread_id, token, place.id)
            rows.put(connection, row)
            # the root's next checkpoint ends a pause; a subgraph's says nothing of its siblings
            is_paused = life.is_paused(connection, place)
            life.touch(
                connection,
                thread_id,
                end=self.lifetime.pause_end() if is_paused else self.lifetime.end(),
                newest=place.id,
                may_shorten=not ns and not is_paused,
            )

        return row, work

    def putting_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> tuple[Place, Work[None]]:
        """Pack what a task wrote, and store it."""
        thread_id, ns, checkpoint_id = named(config)
        if checkpoint_id is None:
            raise ValueError(f"writes to thread {thread_id!r} name no checkpoint")
        place = Place(thread_id=thread_id, ns=ns, id=checkpoint_id)
        packed = rows.pack_writes(writes, self.serde)
        token = token_of(config)
        run_id = run_id_of(get_checkpoint_metadata(config, {}))
        pauses = any(channel == INTERRUPT for channel, _ in writes)

        def work(connection: Connection) -> None:
            leases.check(connection, thread_id, token, checkpoint_id)
            rows.put_writes(
                connection, place, packed, task_id=task_id, task_path=task_path, run_id=run_id
            )
            life.touch(
                connection,
                thread_id,
                end=self.lifetime.pause_end() if pauses else self.lifetime.end(),
            )

        return place, work

    def copying(self, source: str, target: str) -> Work[None]:
        """Copy a thread."""

        def work(connection: Connection) -> None:
            if source == target or life.is_expired(connection, source, self.lifetime.now()):
                return
            leases.check(connection, target, None, "")
            life.copy(connection, source, target, end=self.lifetime.end())

        return work

    def deleting(self, thread_id: str) -> Work[None]:
        """Delete a thread."""
        return lambda connection: life.delete(connection, str(thread_id), now=self.lifetime.now())

    def expired(self, connection: Connection) -> Sequence[str]:
        """Return threads whose time is over, at most as many as one transaction removes."""
        return life.expired(connection, self.lifetime.now(), _SWEEP)

    def removing_expired(self, thread_ids: Sequence[str]) -> Work[int]:
        """Remove those of the threads whose time is still over; return how many."""

        def work(connection: Connection) -> int:
            now = self.lifetime.now()
            over = [each for each in thread_ids if life.is_expired(connection, each, now)]
            for thread_id in over:
                life.forget(connection, thread_id)
            return len(over)

        return work

    def taking(self, thread_id: str, owner: str, dead: Held | None) -> Work[Lease | Held]:
        """Take a lease, or see whose is in the way."""

        def work(connection: Connection) -> Lease | Held:
            if life.is_expired(connection, thread_id, self.lifetime.now()):
                life.forget(connection, thread_id)
            life.touch(connection, thread_id, end=self.lifetime.end())
            return leases.take(connection, thread_id, owner, dead=dead)

        return work

    def beating(self, lease: Lease) -> Work[None]:
        """Raise a lease's counter, and put off its thread's end."""

        def work(connection: Connection) -> None:
            leases.beat(connection, lease)
            life.touch(connection, lease.thread_id, end=self.lifetime.end())

        return work


def deleting_runs(run_ids: Sequence[str]) -> Work[None]:
    """Delete what runs stored."""

    def work(connection: Connection) -> None:
        for run_id in run_ids:
            life.delete_run(connection, str(run_id))

    return work


def pruning(thread_id: str, strategy: str) -> Work[None]:
    """Drop history.

    Raises:
        ValueError: The strategy is neither `keep_latest` nor `delete`.
    """
    if strategy == "keep_latest":
        return lambda connection: life.prune(connection, str(thread_id))
    if strategy == "delete":
        return lambda connection: life.clear(connection, str(thread_id))
    raise ValueError(f"no strategy {strategy!r}: keep_latest or delete")


def named(config: RunnableConfig) -> tuple[str, str, str | None]:
    """Return the thread, the namespace and the checkpoint id, None for the newest.

    Raises:
        ValueError: The thread's id is empty.
    """
    configurable = config["configurable"]
    thread_id = str(configurable["thread_id"])
    if not thread_id:
        raise ValueError("`thread_id` is empty")
    return thread_id, configurable.get("checkpoint_ns") or "", get_checkpoint_id(config) or None


def thread_of(config: RunnableConfig | None) -> str:
    """Return the thread's id; "" for all threads."""
    return "" if config is None else str(config["configurable"]["thread_id"])


def token_of(config: RunnableConfig) -> int | None:
    """Return the writer's fence token; None if it has none."""
    token: int | None = config["configurable"].get(FENCE)
    return token


def run_id_of(metadata: CheckpointMetadata) -> str | None:
    """Return the run that writes; None if nobody said."""
    run_id = metadata.get("run_id")
    return None if run_id is None else str(run_id)
