"""The embedded checkpoint saver: `AsyncSqliteSaver` and what it lacks, on its own tables.

It differs from its base in this:

- a call is one transaction on a thread that owns the connection, finished whatever becomes of the
  task that awaits it; nothing belongs to an event loop, and the plain methods work everywhere;
- copying, pruning, deleting by run, expiry, leases and fencing;
- a repeated special write replaces the stored one, whatever else is in the call;
- a listing holds no lock while its reader is busy;
- rows carry a digest, and one that can't be read is a named error.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import islice
from pathlib import Path
from sqlite3 import Connection
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
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from ibid.adapters.dynamodb.ids import is_above, rise_above
from ibid.adapters.dynamodb.serde import CompressedSerializer, compressing
from ibid.adapters.sqlite import saver_leases as leases
from ibid.adapters.sqlite import saver_life as life
from ibid.adapters.sqlite import saver_rows as rows
from ibid.adapters.sqlite.database import Work
from ibid.adapters.sqlite.saver_file import SaverFile
from ibid.adapters.sqlite.saver_leases import Held, Watch
from ibid.adapters.sqlite.saver_life import Lifetime
from ibid.adapters.sqlite.saver_rows import PackedCheckpoint, Place
from ibid.adapters.sqlite.saver_schema import CHECKPOINT_FILE_ID, STEPS
from ibid.domain.errors import (
    CheckpointCorrupt,
    CheckpointStale,
    CheckpointTooLarge,
    LeaseLost,
    StoreUnavailable,
    ThreadLeased,
)
from ibid.domain.leases import FENCE, Lease

_PAGE = 16  # checkpoints that a listing unpacks at a time
_SWEEP = 100  # threads that one transaction removes
_TOO_BIG = "SQLITE_TOOBIG"


class EmbeddedSaver(AsyncSqliteSaver):
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
        self._lifetime = lifetime
        self._watch = watch

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        serde: SerializerProtocol | None = None,
        ttl_s: float | None = None,
        pause_ttl_s: float | None = None,
        lease_term_s: float = 15.0,
        busy_s: float = 5.0,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Open the file, making it if need be; one that `AsyncSqliteSaver` wrote is taken over.

        Args:
            path: Of the file; SQLite keeps two more beside it.
            serde: Packs values; None for one that allows only LangGraph's safe types. LangGraph's
                own two are made to compress, before they encrypt.
            ttl_s: Seconds without activity after which a thread expires, above 0; None: never.
            pause_ttl_s: The same for a thread that waits for an answer; None for `ttl_s`.
            lease_term_s: Seconds that a lease must be watched unmoved before it is dead, above 0.
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
            lifetime=Lifetime(ttl_s=ttl_s, pause_ttl_s=pause_ttl_s or ttl_s, now=now),
            watch=Watch(term_s=lease_term_s, monotonic=monotonic),
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
        thread_id, ns, checkpoint_id = _named(config)
        with _naming(thread_id, checkpoint_id):
            found = await self._file.read(self._getting(thread_id, ns, checkpoint_id))
            if found is None and checkpoint_id is None:
                await self._file.erase(self._removing_expired([thread_id]))
        return _risen(found)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Do as `aget_tuple`, and block."""
        thread_id, ns, checkpoint_id = _named(config)
        with _naming(thread_id, checkpoint_id):
            found = self._file.read_now(self._getting(thread_id, ns, checkpoint_id))
            if found is None and checkpoint_id is None:
                self._file.erase_now(self._removing_expired([thread_id]))
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
        with _naming(_thread(config), None):
            places = await self._file.read(self._finding(config, filter, before, limit))
        for start in range(0, len(places), _PAGE):
            page = places[start : start + _PAGE]
            with _naming(page[0].thread_id, page[0].id):
                found = await self._file.read(self._loading(page))
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
        with _naming(_thread(config), None):
            places = self._file.read_now(self._finding(config, filter, before, limit))
        for start in range(0, len(places), _PAGE):
            page = places[start : start + _PAGE]
            with _naming(page[0].thread_id, page[0].id):
                found = self._file.read_now(self._loading(page))
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
        row, work = self._putting(config, checkpoint, metadata)
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
        row, work = self._putting(config, checkpoint, metadata)
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
            place, work = self._putting_writes(config, writes, task_id, task_path)
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
            place, work = self._putting_writes(config, writes, task_id, task_path)
            with _naming(place.thread_id, place.id):
                self._file.write_now(work)

    # Life

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete all of a thread from every byte of the file; its writer's next write fails."""
        await self._file.erase(self._deleting(thread_id))

    def delete_thread(self, thread_id: str) -> None:
        """Do as `adelete_thread`, and block."""
        self._file.erase_now(self._deleting(thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what the runs stored: checkpoints with their writes, and writes elsewhere."""
        await self._file.erase(_deleting_runs(run_ids))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Do as `adelete_for_runs`, and block."""
        self._file.erase_now(_deleting_runs(run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all that a thread has to another; nothing if the source is gone.

        Raises:
            CheckpointStale: The target has a fence token: its writer owns it.
        """
        await self._file.write(self._copying(str(source_thread_id), str(target_thread_id)))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Do as `acopy_thread`, and block."""
        self._file.write_now(self._copying(str(source_thread_id), str(target_thread_id)))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Drop history: `keep_latest` keeps each namespace's newest, `delete` nothing.

        Raises:
            ValueError: The strategy is neither.
        """
        for thread_id in thread_ids:
            await self._file.write(_pruning(thread_id, strategy))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Do as `aprune`, and block."""
        for thread_id in thread_ids:
            self._file.write_now(_pruning(thread_id, strategy))

    async def sweep(self) -> int:
        """Remove every expired thread from every byte of the file; return how many there were."""
        removed = 0
        while True:
            over = await self._file.read(self._expired)
            if not over:
                return removed
            removed += await self._file.erase(self._removing_expired(over))

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

        def work(connection: Connection) -> Lease | Held:
            now = self._lifetime.now()
            if life.is_expired(connection, thread_id, now):
                life.forget(connection, thread_id)
            life.touch(connection, thread_id, end=self._lifetime.end())
            return leases.take(connection, thread_id, owner, dead=dead)

        taken = await self._file.write(work)
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

        def work(connection: Connection) -> None:
            leases.beat(connection, lease)
            life.touch(connection, lease.thread_id, end=self._lifetime.end())

        await self._file.write(work)

    async def release(self, lease: Lease) -> None:
        """Give a lease back; a write with its token fails from now on. Repeatable.

        Raises:
            LeaseLost: Another one has been taken since: nothing written since then was kept.
        """
        await self._file.write(lambda connection: leases.release(connection, lease))

    @asynccontextmanager
    async def leased(self, thread_id: str, owner: str) -> AsyncIterator[Lease]:
        """Hold a thread's lease, with a sign of life three times a term, until the block ends.

        Raises:
            ThreadLeased: Somebody holds it, and isn't known to be dead.
            ThreadGone: The thread was deleted.
            LeaseLost: At the end: another one has been taken since.
        """
        lease = await self.take_lease(thread_id, owner)
        beating = asyncio.create_task(self._keep(lease))
        try:
            yield lease
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError, LeaseLost):
                await beating
            await self.release(lease)

    async def _keep(self, lease: Lease) -> None:
        while True:
            await asyncio.sleep(self._watch.term_s / 3)
            with suppress(StoreUnavailable):  # busy: the next beat may still come in time
                await self.beat(lease)

    # What the calls above do, as functions of a connection

    def _getting(
        self, thread_id: str, ns: str, checkpoint_id: str | None
    ) -> Work["tuple[str, CheckpointTuple | None] | None"]:
        def work(connection: Connection) -> tuple[str, CheckpointTuple | None] | None:
            """Return the thread's newest id and the checkpoint; None for an expired thread."""
            if life.is_expired(connection, thread_id, self._lifetime.now()):
                return None
            leases.check_not_gone(connection, thread_id)
            named = checkpoint_id or rows.newest(connection, thread_id, ns)
            found = None
            if named is not None:
                found = rows.load(
                    connection, Place(thread_id=thread_id, ns=ns, id=named), self.serde
                )
            return life.newest(connection, thread_id), found

        return work

    def _finding(
        self,
        config: RunnableConfig | None,
        matching: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Work[Sequence[Place]]:
        configurable = config["configurable"] if config is not None else {}

        def work(connection: Connection) -> Sequence[Place]:
            if config is not None:
                leases.check_not_gone(connection, _thread(config))
            found = rows.find(
                connection,
                thread_id=_thread(config) if config is not None else None,
                ns=configurable.get("checkpoint_ns"),
                checkpoint_id=configurable.get("checkpoint_id"),
                before=get_checkpoint_id(before) if before is not None else None,
                now=self._lifetime.now(),
                matching=json.loads(json.dumps(matching or {})),
            )
            return [*islice(found, limit)]

        return work

    def _loading(self, page: Sequence[Place]) -> Work[Sequence[CheckpointTuple]]:
        def work(connection: Connection) -> Sequence[CheckpointTuple]:
            found = (rows.load(connection, place, self.serde) for place in page)
            return [each for each in found if each is not None]

        return work

    def _putting(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> tuple[PackedCheckpoint, Work[None]]:
        thread_id, ns, parent_id = _named(config)
        place = Place(thread_id=thread_id, ns=ns, id=checkpoint["id"])
        full = get_checkpoint_metadata(config, metadata)
        kind, packed = self.serde.dumps_typed(checkpoint)
        row = PackedCheckpoint(
            place=place,
            parent_id=parent_id,
            kind=kind,
            packed=packed,
            metadata=json.dumps(full, ensure_ascii=False).encode("utf-8", "ignore"),
            run_id=_run_id(full),
        )
        token = _token(config)
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
                end=self._lifetime.pause_end() if is_paused else self._lifetime.end(),
                newest=place.id,
                may_shorten=not ns and not is_paused,
            )

        return row, work

    def _putting_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> tuple[Place, Work[None]]:
        thread_id, ns, checkpoint_id = _named(config)
        if checkpoint_id is None:
            raise ValueError(f"writes to thread {thread_id!r} name no checkpoint")
        place = Place(thread_id=thread_id, ns=ns, id=checkpoint_id)
        packed = rows.pack_writes(writes, self.serde)
        token = _token(config)
        run_id = _run_id(get_checkpoint_metadata(config, {}))
        pauses = any(channel == INTERRUPT for channel, _ in writes)

        def work(connection: Connection) -> None:
            leases.check(connection, thread_id, token, checkpoint_id)
            rows.put_writes(
                connection, place, packed, task_id=task_id, task_path=task_path, run_id=run_id
            )
            life.touch(
                connection,
                thread_id,
                end=self._lifetime.pause_end() if pauses else self._lifetime.end(),
            )

        return place, work

    def _copying(self, source: str, target: str) -> Work[None]:
        def work(connection: Connection) -> None:
            if source == target or life.is_expired(connection, source, self._lifetime.now()):
                return
            leases.check(connection, target, None, "")
            life.copy(connection, source, target, end=self._lifetime.end())

        return work

    def _deleting(self, thread_id: str) -> Work[None]:
        return lambda connection: life.delete(connection, str(thread_id), now=self._lifetime.now())

    def _expired(self, connection: Connection) -> Sequence[str]:
        return life.expired(connection, self._lifetime.now(), _SWEEP)

    def _removing_expired(self, thread_ids: Sequence[str]) -> Work[int]:
        def work(connection: Connection) -> int:
            now = self._lifetime.now()
            over = [each for each in thread_ids if life.is_expired(connection, each, now)]
            for thread_id in over:
                life.forget(connection, thread_id)
            return len(over)

        return work


def _deleting_runs(run_ids: Sequence[str]) -> Work[None]:
    def work(connection: Connection) -> None:
        for run_id in run_ids:
            life.delete_run(connection, str(run_id))

    return work


def _pruning(thread_id: str, strategy: str) -> Work[None]:
    if strategy == "keep_latest":
        return lambda connection: life.prune(connection, str(thread_id))
    if strategy == "delete":
        return lambda connection: life.clear(connection, str(thread_id))
    raise ValueError(f"no strategy {strategy!r}: keep_latest or delete")


def _named(config: RunnableConfig) -> tuple[str, str, str | None]:
    """Return the thread, the namespace and the checkpoint id, None for the newest."""
    configurable = config["configurable"]
    thread_id = str(configurable["thread_id"])
    return thread_id, configurable.get("checkpoint_ns") or "", get_checkpoint_id(config) or None


def _thread(config: RunnableConfig | None) -> str:
    return "" if config is None else str(config["configurable"]["thread_id"])


def _token(config: RunnableConfig) -> int | None:
    token: int | None = config["configurable"].get(FENCE)
    return token


def _run_id(metadata: CheckpointMetadata) -> str | None:
    run_id = metadata.get("run_id")
    return None if run_id is None else str(run_id)


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
