"""A LangGraph checkpoint saver on DynamoDB that no crash, size or second writer can spoil.

    saver = DynamoSaver(checkpoints_table_name="checkpoints", writes_table_name="writes")
    graph = builder.compile(checkpointer=saver)
    async with saver.leased("thread", "who I am") as lease:
        await graph.ainvoke(..., {"configurable": lease.configurable})

Without a lease it serves a thread that has one writer at a time.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import timedelta
from importlib.metadata import version
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph_checkpoint_dynamodb.saver import (  # type: ignore[import-untyped]  # it ships no types
    DynamoDBSaver,
)

from ibid.adapters.checkpoints.leasing import leased
from ibid.adapters.checkpoints.serde import compressing
from ibid.adapters.dynamodb.connection import Connection
from ibid.adapters.dynamodb.copying import copy_thread
from ibid.adapters.dynamodb.deleting import delete_runs, delete_thread, prune
from ibid.adapters.dynamodb.expiry import Expiry
from ibid.adapters.dynamodb.leases import Leases
from ibid.adapters.dynamodb.listing import Listing, list_tuples
from ibid.adapters.dynamodb.parts import Parts
from ibid.adapters.dynamodb.place import Place, place_of
from ibid.adapters.dynamodb.reading import Reader
from ibid.adapters.dynamodb.retries import RetryBudget
from ibid.adapters.dynamodb.seeking import find
from ibid.adapters.dynamodb.storage import Storage
from ibid.adapters.dynamodb.storing import Store
from ibid.adapters.dynamodb.writing import write_checkpoint, write_pending
from ibid.domain.errors import Misconfigured
from ibid.domain.leases import Lease

_BASE = "0.1.0"
_INLINE_BYTES = 380_000

T = TypeVar("T")


class DynamoSaver(DynamoDBSaver):  # type: ignore[misc]  # the base has no types
    """`DynamoDBSaver` on its own two tables, with all that it lacks.

    Copies that LangGraph makes of it share the clients, the threads and the leases. It belongs to
    no event loop, and works on after a fork.

    Args:
        checkpoints_table_name: A table as `create_tables` makes it.
        writes_table_name: The other one.
        client_config: Arguments of `boto3.client("dynamodb")`.
        serde: LangGraph's own serializer, bare or in its `EncryptedSerializer`; values are
            compressed before they are encrypted. Anybody else's is used as it is.
        bucket: Where parts go that make an item too large; None refuses them.
        object_prefix: Of the objects' keys, a tenant's for example; ends with a slash.
        s3_config: Arguments of `boto3.client("s3")`; `client_config` if None.
        ttl: From a thread's last activity to its end; None keeps it.
        fencing: Whether threads may be leased. False spares the read of the fence row, for
            threads that nobody ever leases.
        inline_bytes: The size of an item from which parts leave it, below 400 KB.
        workers: Most calls under way at once.
        budget: Of every call with its repetitions.
        term_s: From a lease's last sign of life until it counts as dead, in seconds.
        clock: Epoch seconds, for expiry only.
        monotonic: Seconds, for leases.

    Raises:
        Misconfigured: Another distribution owns the base class's import name.
    """

    def __init__(
        self,
        *,
        checkpoints_table_name: str,
        writes_table_name: str,
        client_config: Mapping[str, Any] | None = None,
        serde: SerializerProtocol | None = None,
        bucket: str | None = None,
        object_prefix: str = "checkpoints/",
        s3_config: Mapping[str, Any] | None = None,
        ttl: timedelta | None = None,
        fencing: bool = True,
        inline_bytes: int = _INLINE_BYTES,
        workers: int = 16,
        budget: RetryBudget | None = None,
        term_s: float = 15.0,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if version("langgraph-checkpoint-dynamodb") != _BASE:
            raise Misconfigured(f"langgraph-checkpoint-dynamodb is not {_BASE}")
        config = dict(client_config or {})
        self._connection = Connection(
            {"dynamodb": config, "s3": config if s3_config is None else s3_config},
            workers=workers,
            budget=budget or RetryBudget(),
        )
        # Not the base's constructor: it makes a client and a resource that a fork would share.
        BaseCheckpointSaver.__init__(self, serde=compressing(serde))
        self.checkpoints_table_name = checkpoints_table_name
        self.writes_table_name = writes_table_name
        self._storage = Storage(
            connection=self._connection,
            checkpoints=checkpoints_table_name,
            writes=writes_table_name,
            parts=Parts(self._connection, bucket=bucket, prefix=object_prefix),
            expiry=Expiry(ttl, clock),
            fencing=fencing,
            inline_bytes=inline_bytes,
        )
        self._term_s = term_s
        self._leases = Leases(self._storage, term_s=term_s, monotonic=monotonic)

    @property
    def client(self) -> Any:  # noqa: ANN401 - boto3 makes its classes at run time
        """This process's client of DynamoDB."""
        return self._connection.client("dynamodb")

    def close(self) -> None:
        """Wait for the calls under way and close the sockets."""
        self._connection.close()

    # Reading.

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the named checkpoint, or a namespace's newest; None if there is none.

        Raises:
            CheckpointCorrupt: It is incomplete, altered, or of an unknown type.
            ThreadGone: The thread was leased once, and deleted.
            StoreUnavailable: No answer within the budget.
        """
        return find(self._storage, self._reader(), place_of(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints with their writes, newest first within a thread.

        Args:
            config: A thread; with `checkpoint_ns` one namespace of it, with `checkpoint_id` one
                checkpoint. None: every thread, by a scan of the whole table.
            filter: Values that the metadata must have.
            before: Only checkpoints below the one that it names.
            limit: Most to yield, after the filter.

        Raises:
            CheckpointCorrupt: One of them is.
            ThreadGone: The thread was leased once, and deleted.
        """
        wanted = Listing.of(config, metadata=filter, before=before, limit=limit)
        return list_tuples(self._storage, self._reader(), wanted)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Do as `get_tuple`, in one of the saver's threads."""
        return await self._run(lambda: self.get_tuple(config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Do as `list`, in one of the saver's threads."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await self._run(lambda: next(found, None))) is not None:
            yield one

    # Writing.

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002 - the whole state is one item
    ) -> RunnableConfig:
        """Store a checkpoint by one call, and return the config that names it.

        Raises:
            CheckpointStale: The writer's lease is over, or it has none on a leased thread.
            CheckpointTooLarge: It needs a bucket and there is none.
            StoreUnavailable: No answer within the budget.
        """
        place = place_of(config)
        with self._writing(place):
            store = self._store(place)
            return write_checkpoint(store, self.serde, config, checkpoint, metadata)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task wrote by one call: all of it or nothing.

        Of two writes to one special channel the last counts; a stored regular write stays.

        Raises:
            CheckpointStale: The writer's lease is over, or it has none on a leased thread.
            CheckpointTooLarge: They need a bucket and there is none.
            StoreUnavailable: No answer within the budget.
        """
        place = place_of(config)
        with self._writing(place):
            store = self._store(place)
            write_pending(store, self.serde, config, writes, task_id=task_id, task_path=task_path)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Do as `put`, in one of the saver's threads."""
        return await self._write(
            config, lambda: self.put(config, checkpoint, metadata, new_versions)
        )

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Do as `put_writes`, in one of the saver's threads."""
        await self._write(config, lambda: self.put_writes(config, writes, task_id, task_path))

    # The life of a thread.

    def delete_thread(self, thread_id: str) -> None:
        """Delete all of a thread: checkpoints, writes, objects; once more changes nothing.

        Raises:
            StoreUnavailable: Something is left; delete it again.
        """
        delete_thread(self._storage, self._leases, str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints whose metadata has one of these as `run_id`, with their writes."""
        delete_runs(self._storage, run_ids)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with all namespaces, writes and objects.

        Raises:
            ThreadLeased: The target is being written.
        """
        copy_thread(self._storage, self._reader(), str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep the newest checkpoint of each namespace (`keep_latest`), or nothing (`delete`).

        Raises:
            ValueError: Another strategy.
        """
        if strategy not in {"keep_latest", "delete"}:
            raise ValueError(f"no strategy {strategy!r}")
        for thread_id in map(str, thread_ids):
            if strategy == "delete":
                self.delete_thread(thread_id)
            else:
                prune(self._storage, self._reader(), thread_id)

    async def adelete_thread(self, thread_id: str) -> None:
        """Do as `delete_thread`, in one of the saver's threads."""
        await self._run(lambda: self.delete_thread(thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Do as `delete_for_runs`, in one of the saver's threads."""
        await self._run(lambda: self.delete_for_runs(run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Do as `copy_thread`, in one of the saver's threads."""
        await self._run(lambda: self.copy_thread(source_thread_id, target_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Do as `prune`, in one of the saver's threads."""
        await self._run(lambda: self.prune(thread_ids, strategy=strategy))

    # Leases.

    async def take_lease(self, thread_id: str, owner: str) -> Lease:
        """Take a thread's lease: a free one at once, a dead one by cutting its writer off.

        A lease is dead once this saver has seen it unmoved for a term since an earlier call did:
        so call again after a term.

        Raises:
            ThreadLeased: Somebody holds it, and is not known to be dead.
            ThreadGone: The thread was deleted.
            Misconfigured: The saver has no fencing.
            StoreUnavailable: No answer within the budget.
        """
        return await self._run(lambda: self._leases.take(str(thread_id), owner))

    async def beat(self, lease: Lease) -> None:
        """Show that the lease's holder lives; to be done several times a term.

        Raises:
            LeaseLost: Another one holds it now, it was released, or the thread is gone.
        """
        await self._run(lambda: self._leases.beat(lease))

    async def release(self, lease: Lease) -> None:
        """Give a lease back once no write under it is under way; none may follow.

        Raises:
            LeaseLost: Another one holds it now: nothing written since then counts.
            StoreUnavailable: No answer within the budget, or a write has none yet.
        """
        await self._run(lambda: self._leases.release(lease))

    def leased(self, thread_id: str, owner: str) -> AbstractAsyncContextManager[Lease]:
        """Hold a thread's lease for the time of a block; see `checkpoints.leasing.leased`."""
        return leased(self, str(thread_id), owner, term_s=self._term_s)

    # Parts of the above.

    def _reader(self) -> Reader:
        return Reader(self._storage, self.serde)

    def _store(self, place: Place) -> Store:
        return Store(self._storage, self._leases.permit(place))

    def _writing(self, place: Place) -> AbstractContextManager[None]:
        return self._connection.writing(place.thread_id, place.token or 0)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self._connection.submit(work))

    async def _write(self, config: RunnableConfig, work: Callable[[], T]) -> T:
        """Run a write that a release waits for, even once its awaiter was cancelled."""
        place = place_of(config)
        ids = place.thread_id, place.token or 0
        self._connection.begin(*ids)
        future = self._connection.submit(work)
        future.add_done_callback(lambda _: self._connection.end(*ids))
        return await asyncio.wrap_future(future)
