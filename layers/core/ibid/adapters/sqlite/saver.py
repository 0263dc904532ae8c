"""The embedded checkpoint saver: `AsyncSqliteSaver` and what it lacks, on its own tables.

It differs from its base in this:

- a call is one transaction on a thread that owns the connection, finished whatever becomes of the
  task that awaits it; nothing belongs to an event loop, and the plain methods work everywhere;
- copying, pruning, deleting by run, expiry, leases and fencing;
- a repeated special write replaces the stored one, whatever else is in the call;
- a listing holds no lock while its reader is busy;
- rows carry a digest, and one that can't be read is a named error.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from ibid.adapters.checkpoints.ids import rise_above
from ibid.adapters.checkpoints.leasing import leased
from ibid.adapters.checkpoints.serde import CompressedSerializer, compressing
from ibid.adapters.sqlite import saver_leases as leases
from ibid.adapters.sqlite import saver_rows as rows
from ibid.adapters.sqlite.saver_file import SaverFile
from ibid.adapters.sqlite.saver_leases import Held, Watch
from ibid.adapters.sqlite.saver_life import Lifetime
from ibid.adapters.sqlite.saver_schema import CHECKPOINT_FILE_ID, STEPS
from ibid.adapters.sqlite.saver_work import SaverWork, deleting_runs, named, pruning, thread_of
from ibid.domain.errors import (
    CheckpointCorrupt,
    CheckpointTooLarge,
    StoreUnavailable,
    ThreadLeased,
)
from ibid.domain.leases import Lease

_PAGE = 16  # checkpoints that a listing unpacks at a time
_TOO_BIG = "SQLITE_TOOBIG"


class EmbeddedSaver(SaverWork, AsyncSqliteSaver):
    """Keeps checkpoints in one SQLite file; use `open`, and `close` in the end.

    A write carries its lease's token as `configurable["__ibid_fence"]`. Threads on which nobody
    ever took a lease need none.
    """

    def __init__(
        self,
        file: SaverFile,
        path: Path,
        *,
        serde: SerializerProtocol,
        lifetime: Lifetime,
        watch: Watch,
    ) -> None:
        # the base's own connection is never opened: nothing of it that would use it is left
        super().__init__(aiosqlite.connect(path), serde=serde)
        self.is_setup = True
        self._file = file
        self.lifetime = lifetime
        self._watch = watch

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        serde: SerializerProtocol | None = None,
        ttl: timedelta | None = None,
        pause_ttl: timedelta | None = None,
        term_s: float = 15.0,
        busy_s: float = 5.0,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Open the file, making it if need be; one that `AsyncSqliteSaver` wrote is taken over.

        Args:
            path: Of the file; SQLite keeps two more beside it.
            serde: Packs values; None for one that allows only LangGraph's safe types. LangGraph's
                own two are made to compress, before they encrypt.
            ttl: From a thread's last activity to its end, above 0; None keeps it.
            pause_ttl: The same for a thread that waits for an answer; None for `ttl`.
            term_s: Seconds that a lease must be watched unmoved before it is dead, above 0.
            busy_s: Seconds to wait while another process writes, above 0.
            now: Seconds since 1970.
            monotonic: Seconds on a clock that never goes back.

        Raises:
            SchemaTooNew: A newer version wrote the file.
            Misconfigured: It is another program's database, or none.
            StoreUnavailable: It can't be opened.
        """
        file = await SaverFile.open(
            path, busy_s=busy_s, steps=STEPS, application_id=CHECKPOINT_FILE_ID
        )
        return cls(
            file,
            path,
            serde=(
                # None: LangGraph's safe types and no others, whatever the environment says
                CompressedSerializer(allowed_msgpack_modules=None)
                if serde is None
                else compressing(serde)
            ),
            lifetime=Lifetime(ttl=ttl, pause_ttl=pause_ttl or ttl, now=now),
            watch=Watch(term_s=term_s, monotonic=monotonic),
        )

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, conn_string: str) -> AsyncIterator[Self]:
        """Open a file by name for the time of a block, as the base class does.

        Raises:
            ValueError: It names no file: every connection would have its own memory.
        """
        if conn_string in {"", ":memory:"} or conn_string.startswith("file:"):
            raise ValueError("an embedded saver needs the path of a file")
        saver = await cls.open(Path(conn_string))
        try:
            yield saver
        finally:
            await saver.close()

    async def close(self) -> None:
        """Finish what was handed over and close the file; repeatable."""
        await self._file.close()

    async def setup(self) -> None:
        """Do nothing: `open` has made the tables."""

    # Reading

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that the config names, or its namespace's newest one.

        The ids that this process makes from now on are above all that the thread has.

        Returns:
            None if there is none, or the thread has expired.

        Raises:
            CheckpointCorrupt: It can't be read as it was written.
            ThreadGone: The thread was leased once, and deleted.
        """
        thread_id, ns, checkpoint_id = named(config)
        with _naming(thread_id, checkpoint_id):
            found = await self._file.read(self.getting(thread_id, ns, checkpoint_id))
            if found is None and checkpoint_id is None:
                await self._file.erase(self.removing_expired([thread_id]))
        return _risen(found)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Do as `aget_tuple`, and block."""
        thread_id, ns, checkpoint_id = named(config)
        with _naming(thread_id, checkpoint_id):
            found = self._file.read_now(self.getting(thread_id, ns, checkpoint_id))
            if found is None and checkpoint_id is None:
                self._file.erase_now(self.removing_expired([thread_id]))
        return _risen(found)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the base's word
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints, the newest id first; those deleted meanwhile are left out.

        Args:
            config: Names a thread, and perhaps a namespace and an id; None for all threads.
            filter: Metadata that must be there.
            before: Its checkpoint id is above all that are listed.
            limit: At most so many; None for all.

        Raises:
            CheckpointCorrupt: One can't be read as it was written.
            ThreadGone: The thread was leased once, and deleted.
        """
        with _naming(thread_of(config), None):
            places = await self._file.read(self.finding(config, filter, before, limit))
        for start in range(0, len(places), _PAGE):
            page = places[start : start + _PAGE]
            with _naming(page[0].thread_id, page[0].id):
                found = await self._file.read(self.loading(page))
            for each in found:
                yield each

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the base's word
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Do as `alist`, and block."""
        with _naming(thread_of(config), None):
            places = self._file.read_now(self.finding(config, filter, before, limit))
        for start in range(0, len(places), _PAGE):
            page = places[start : start + _PAGE]
            with _naming(page[0].thread_id, page[0].id):
                found = self._file.read_now(self.loading(page))
            yield from found

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what each channel got along the chain of ancestors; see LangGraph's base."""
        return await BaseCheckpointSaver.aget_delta_channel_history(
            self, config=config, channels=channels
        )

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Do as `aget_delta_channel_history`, and block."""
        return BaseCheckpointSaver.get_delta_channel_history(self, config=config, channels=channels)

    # Writing

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002 - a checkpoint is stored whole
    ) -> RunnableConfig:
        """Store a checkpoint; the config names its parent, if it has one.

        Raises:
            CheckpointStale: The write's token is not the thread's, or the id is below its
                parent's and would never be seen.
            ThreadGone: The thread was deleted while its writer held a token.
            CheckpointTooLarge: It is over what SQLite takes.
            StoreUnavailable: The file stayed busy, or failed.
        """
        row, work = self.putting(config, checkpoint, metadata)
        with _naming(row.place.thread_id, row.place.id):
            await self._file.write(work)
        return rows.config_of(row.place)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002 - a checkpoint is stored whole
    ) -> RunnableConfig:
        """Do as `aput`, and block."""
        row, work = self.putting(config, checkpoint, metadata)
        with _naming(row.place.thread_id, row.place.id):
            self._file.write_now(work)
        return rows.config_of(row.place)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task wrote to a checkpoint: all of it or nothing.

        LangGraph takes a task with any stored write as done.

        Raises:
            CheckpointStale: The write's token is not the thread's.
            ThreadGone: The thread was deleted while its writer held a token.
            CheckpointTooLarge: A value is over what SQLite takes.
            StoreUnavailable: The file stayed busy, or failed.
        """
        if writes:
            place, work = self.putting_writes(config, writes, task_id, task_path)
            with _naming(place.thread_id, place.id):
                await self._file.write(work)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Do as `aput_writes`, and block."""
        if writes:
            place, work = self.putting_writes(config, writes, task_id, task_path)
            with _naming(place.thread_id, place.id):
                self._file.write_now(work)

    # Life

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete all of a thread from every byte of the file; its writer's next write fails."""
        await self._file.erase(self.deleting(thread_id))

    def delete_thread(self, thread_id: str) -> None:
        """Do as `adelete_thread`, and block."""
        self._file.erase_now(self.deleting(thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what the runs stored: checkpoints with their writes, and writes elsewhere."""
        await self._file.erase(deleting_runs(run_ids))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Do as `adelete_for_runs`, and block."""
        self._file.erase_now(deleting_runs(run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all that a thread has to another; nothing if the source is gone.

        Raises:
            CheckpointStale: The target has a fence token: its writer owns it.
        """
        await self._file.write(self.copying(str(source_thread_id), str(target_thread_id)))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Do as `acopy_thread`, and block."""
        self._file.write_now(self.copying(str(source_thread_id), str(target_thread_id)))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Drop history: `keep_latest` keeps each namespace's newest, `delete` nothing.

        Raises:
            ValueError: The strategy is neither.
        """
        for thread_id in thread_ids:
            await self._file.write(pruning(thread_id, strategy))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Do as `aprune`, and block."""
        for thread_id in thread_ids:
            self._file.write_now(pruning(thread_id, strategy))

    async def sweep(self) -> int:
        """Remove every expired thread from every byte of the file; return how many there were."""
        removed = 0
        while True:
            over = await self._file.read(self.expired)
            if not over:
                return removed
            removed += await self._file.erase(self.removing_expired(over))

    # Leases

    async def take_lease(self, thread_id: str, owner: str) -> Lease:
        """Become the only writer of a thread that is free, or whose holder is dead.

        A holder is dead when its counter has not moved for a full term since this saver first
        saw it so: ask again until then.

        Args:
            thread_id: Whose.
            owner: Who asks; it may hold the thread only once.

        Raises:
            ThreadLeased: Somebody holds it, and isn't known to be dead.
            ThreadGone: It was deleted.
            StoreUnavailable: The file stayed busy, or failed.
        """
        thread_id = str(thread_id)
        dead = self._watch.dead(thread_id)
        taken = await self._file.write(self.taking(thread_id, owner, dead))
        if isinstance(taken, Held):
            self._watch.saw(thread_id, taken)
            raise ThreadLeased(
                f"thread {thread_id!r} has a writer",
                thread_id=thread_id,
                token=taken.token,
                beat=taken.beat,
            )
        self._watch.forget(thread_id)
        return taken

    async def beat(self, lease: Lease) -> None:
        """Show that the holder lives, and put off the thread's end.

        Raises:
            LeaseLost: The lease is over.
        """
        await self._file.write(self.beating(lease))

    async def release(self, lease: Lease) -> None:
        """Give a lease back; a write with its token fails from now on. Repeatable.

        Raises:
            LeaseLost: Another one has been taken since: nothing written since then was kept.
        """
        await self._file.write(lambda connection: leases.release(connection, lease))

    def leased(self, thread_id: str, owner: str) -> AbstractAsyncContextManager[Lease]:
        """Hold a thread's lease for the time of a block; see `checkpoints.leasing.leased`."""
        return leased(self, str(thread_id), owner, term_s=self._watch.term_s)


def _risen(found: tuple[str, CheckpointTuple | None] | None) -> CheckpointTuple | None:
    if found is None:
        return None
    newest, checkpoint = found
    rise_above(newest)
    return checkpoint


@contextmanager
def _naming(thread_id: str, checkpoint_id: str | None) -> Iterator[None]:
    """Give the file's own damage and limits the names of what was asked for."""
    try:
        yield
    except StoreUnavailable as error:
        where = f"thread {thread_id!r}, checkpoint {checkpoint_id!r}"
        if rows.is_damage(error.__cause__):
            msg = f"{where}: the file is damaged"
            raise CheckpointCorrupt(
                msg, thread_id=thread_id, checkpoint_id=checkpoint_id
            ) from error
        if getattr(error.__cause__, "sqlite_errorname", None) == _TOO_BIG:
            msg = f"{where}: over what SQLite takes"
            raise CheckpointTooLarge(
                msg, thread_id=thread_id, checkpoint_id=checkpoint_id
            ) from error
        raise
