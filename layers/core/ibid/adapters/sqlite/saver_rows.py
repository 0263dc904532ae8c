"""Checkpoints and writes as rows, and rows as checkpoints and writes.

Values are packed before they come here and unpacked here, in the thread that read them. A row
that can't be unpacked, or whose CRC-32 is another than when it was written, is a
`CheckpointCorrupt` that names its thread and checkpoint, never a value and never nothing.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn
from zlib import crc32

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    CheckpointTuple,
    PendingWrite,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from ibid.domain.errors import CheckpointCorrupt

_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a checkpoint is: its thread, namespace ("" for the root) and id."""

    thread_id: str
    ns: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedCheckpoint:
    """A checkpoint ready to be stored."""

    place: Place
    parent_id: str | None
    kind: str
    packed: bytes
    metadata: bytes
    run_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedWrite:
    """One write of a task ready to be stored; special channels have negative numbers."""

    number: int
    channel: str
    kind: str
    packed: bytes


def pack_writes(
    writes: Sequence[tuple[str, Any]], serde: SerializerProtocol
) -> Sequence[PackedWrite]:
    """Number and pack the writes of one call; of those with the same number the last counts.

    Two interrupts in one node end in a call that names `__resume__` twice.
    """
    by_number = {
        WRITES_IDX_MAP.get(channel, index): (channel, value)
        for index, (channel, value) in enumerate(writes)
    }
    packed = []
    for number, (channel, value) in by_number.items():
        kind, content = serde.dumps_typed(value)
        packed.append(PackedWrite(number=number, channel=channel, kind=kind, packed=content))
    return packed


def put(connection: sqlite3.Connection, row: PackedCheckpoint) -> None:
    """Store a checkpoint; one of the same place is replaced."""
    connection.execute(
        """
        INSERT OR REPLACE INTO checkpoints (
            thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,
            metadata, run_id, digest
        ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            row.place.thread_id,
            row.place.ns,
            row.place.id,
            row.parent_id,
            row.kind,
            row.packed,
            row.metadata,
            row.run_id,
            _digest(row.place.ns, row.place.id, row.parent_id, row.kind, row.packed, row.metadata),
        ),
    )


def put_writes(
    connection: sqlite3.Connection,
    place: Place,
    writes: Sequence[PackedWrite],
    *,
    task_id: str,
    task_path: str,
    run_id: str | None,
) -> None:
    """Store the writes of one call of a task.

    A special channel's new value replaces the stored one; a regular write stays as it was first
    stored.
    """
    connection.executemany(
        """
        INSERT INTO writes (
            thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type,
            value, run_id, digest
        ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO UPDATE SET
            task_path = excluded.task_path, channel = excluded.channel, type = excluded.type,
            value = excluded.value, run_id = excluded.run_id, digest = excluded.digest
        WHERE excluded.idx < 0
        """,
        [
            (
                place.thread_id,
                place.ns,
                place.id,
                task_id,
                task_path,
                write.number,
                write.channel,
                write.kind,
                write.packed,
                run_id,
                _digest(
                    *(place.ns, place.id, task_id, task_path, str(write.number)),
                    *(write.channel, write.kind, write.packed),
                ),
            )
            for write in writes
        ],
    )


def newest(connection: sqlite3.Connection, thread_id: str, ns: str) -> str | None:
    """Return the id of a namespace's newest checkpoint; None if it has none."""
    row = connection.execute(
        """
        SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?
        ORDER BY checkpoint_id DESC LIMIT 1
        """,
        (thread_id, ns),
    ).fetchone()
    return None if row is None else str(row["checkpoint_id"])


def load(
    connection: sqlite3.Connection, place: Place, serde: SerializerProtocol
) -> CheckpointTuple | None:
    """Return a checkpoint and its pending writes in the order of execution; None if not there.

    Raises:
        CheckpointCorrupt: Either can't be read as it was written.
    """
    try:
        return _load(connection, place, serde)
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            _corrupt(place, "the file is damaged", error)
        raise


def is_damage(error: BaseException | None) -> bool:
    """Tell if an error of SQLite's says that the file is not as it was written."""
    name = getattr(error, "sqlite_errorname", None)
    if name is None:  # Python's own: it can't read a text, be it SQLite's message
        return isinstance(error, sqlite3.OperationalError | UnicodeDecodeError)
    return str(name).startswith(_DAMAGED)


def _load(
    connection: sqlite3.Connection, place: Place, serde: SerializerProtocol
) -> CheckpointTuple | None:
    key = (place.thread_id, place.ns, place.id)
    row = connection.execute(
        """
        SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, type,
            CAST(checkpoint AS BLOB) AS checkpoint, CAST(metadata AS BLOB) AS metadata, digest
        FROM checkpoints
        WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
        """,
        key,
    ).fetchone()
    if row is None:
        return None
    metadata = read_metadata(row["metadata"], place)
    checkpoint = _unpack(
        serde,
        place,
        "checkpoint",
        kind=row["type"],
        packed=row["checkpoint"],
        digests=_digests(row),
    )
    if not isinstance(checkpoint, dict) or "channel_values" not in checkpoint:
        _corrupt(place, "the checkpoint is none")
    rows = connection.execute(
        """
        SELECT checkpoint_ns, checkpoint_id, task_id, task_path, CAST(idx AS TEXT) AS number,
            channel, type, CAST(value AS BLOB) AS value, digest
        FROM writes
        WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
        """,
        key,
    ).fetchall()
    writes = [(found, _write(serde, place, found)) for found in rows]
    writes.sort(key=lambda pair: _order(pair[0]))
    parent = row["parent_checkpoint_id"]
    return CheckpointTuple(
        config=config_of(place),
        checkpoint=checkpoint,  # type: ignore[arg-type]  # as it was when it was put
        metadata=metadata,  # type: ignore[arg-type]  # likewise
        parent_config=(
            config_of(Place(thread_id=place.thread_id, ns=place.ns, id=parent)) if parent else None
        ),
        pending_writes=[write for _, write in writes],
    )


def find(
    connection: sqlite3.Connection,
    *,
    thread_id: str | None,
    ns: str | None,
    checkpoint_id: str | None,
    before: str | None,
    now: float,
    matching: Mapping[str, Any],
) -> Iterator[Place]:
    """Find checkpoints that have not expired, newest id first.

    Args:
        connection: In a transaction that outlasts the iteration.
        thread_id: None for every thread.
        ns: None for every namespace.
        checkpoint_id: None for every id.
        before: Only ids below it; None for all.
        now: Seconds since 1970.
        matching: Metadata that must be there, key by key, as JSON would have them.

    Raises:
        CheckpointCorrupt: Metadata that must be looked at can't be read.
    """
    wanted = {
        "thread_id = ?": thread_id,
        "checkpoint_ns = ?": ns,
        "checkpoint_id = ?": checkpoint_id,
        "checkpoint_id < ?": before,
    }
    conditions = [
        "thread_id NOT IN (SELECT thread_id FROM threads WHERE expires_at <= ?)",
        *(condition for condition, value in wanted.items() if value is not None),
    ]
    values = [now, *(value for value in wanted.values() if value is not None)]
    rows = connection.execute(
        f"""
        SELECT thread_id, checkpoint_ns, checkpoint_id, CAST(metadata AS BLOB) AS metadata
        FROM checkpoints WHERE {" AND ".join(conditions)} ORDER BY checkpoint_id DESC
        """,  # noqa: S608 - the conditions are the ones above
        values,
    )
    for row in rows:
        place = Place(thread_id=row["thread_id"], ns=row["checkpoint_ns"], id=row["checkpoint_id"])
        if matching:
            metadata = read_metadata(row["metadata"], place)
            if any(metadata.get(key) != value for key, value in matching.items()):
                continue
        yield place


def config_of(place: Place) -> RunnableConfig:
    """Return the config that names a checkpoint."""
    return {
        "configurable": {
            "thread_id": place.thread_id,
            "checkpoint_ns": place.ns,
            "checkpoint_id": place.id,
        }
    }


def read_metadata(stored: bytes | None, place: Place) -> dict[str, Any]:
    """Return a checkpoint's metadata; `{}` where none was stored.

    Raises:
        CheckpointCorrupt: They are no JSON object.
    """
    if stored is None:
        return {}
    try:
        metadata = json.loads(stored)
    except ValueError as error:
        _corrupt(place, "its metadata is no JSON", error)
    if not isinstance(metadata, dict):
        _corrupt(place, "its metadata is no object")
    return metadata


def _order(row: sqlite3.Row) -> tuple[Any, ...]:
    return writes_sort_key(row["task_path"], row["task_id"], int(row["number"]))


def _write(serde: SerializerProtocol, place: Place, row: sqlite3.Row) -> PendingWrite:
    value = _unpack(
        serde, place, "a write", kind=row["type"], packed=row["value"], digests=_digests(row)
    )
    return row["task_id"], row["channel"], value


def _unpack(
    serde: SerializerProtocol,
    place: Place,
    what: str,
    *,
    kind: str | None,
    packed: bytes | None,
    digests: tuple[int | None, int],
) -> object:
    if kind is None or packed is None:
        _corrupt(place, f"{what} is missing a part")
    if digests[0] is not None and digests[0] != digests[1]:
        _corrupt(place, f"{what} was altered")
    try:
        return serde.loads_typed((kind, packed))
    except Exception as error:  # noqa: BLE001 - whatever a serializer or a cipher raises
        _corrupt(place, f"{what} of type {kind!r} can't be unpacked", error)


def _corrupt(place: Place, fault: str, cause: Exception | None = None) -> NoReturn:
    msg = f"thread {place.thread_id!r}, checkpoint {place.id!r} ({place.ns!r}): {fault}"
    if cause is not None:
        msg += f" ({type(cause).__name__})"
    raise CheckpointCorrupt(msg, thread_id=place.thread_id, checkpoint_id=place.id) from cause


def _digests(row: sqlite3.Row) -> tuple[int | None, int]:
    """Return the digest in a row that ends with it, and that of the columns before it."""
    *parts, digest = tuple(row)
    return digest, _digest(*parts)


def _digest(*parts: str | bytes | None) -> int:
    digest = 0
    for part in parts:
        content = part.encode() if isinstance(part, str) else part or b""
        # the length parts them: what moves from one part to the next changes the sum
        digest = crc32(content, crc32(len(content).to_bytes(8, "big"), digest))
    return digest
