"""Removing threads, runs, and what a thread needs no more."""

from collections.abc import Iterable, Sequence

from ibid.adapters.dynamodb.fence import NO_FENCE, Fence, fence_of, is_fence
from ibid.adapters.dynamodb.leases import Leases
from ibid.adapters.dynamodb.packs import PARTITION, RANGE
from ibid.adapters.dynamodb.parts import object_keys
from ibid.adapters.dynamodb.reading import Reader
from ibid.adapters.dynamodb.rows import Row, row_of
from ibid.adapters.dynamodb.storage import Item, Storage
from ibid.adapters.dynamodb.storing import RUN
from ibid.adapters.dynamodb.tables import FIRST_OF_RUN, ORPHAN_THREAD, ORPHANS, RUNS

_DELTA = "counters_since_delta_snapshot"


def delete_thread(storage: Storage, leases: Leases, thread_id: str) -> None:
    """Delete all of a thread, oldest first; once more changes nothing.

    A thread that was ever leased keeps a tombstone: from its first moment on nothing of the
    thread is read, and a writer that is still about can't bring it back.
    """
    leases.end(thread_id)
    storage.connection.forget(thread_id)
    _, rows = _everything(storage, thread_id)
    _delete_rows(storage, reversed(rows))
    orphans = storage.keys_in(storage.writes, ORPHANS, ORPHAN_THREAD, thread_id)
    storage.delete(
        storage.writes, [{PARTITION: key[PARTITION], RANGE: key[RANGE]} for key in orphans]
    )
    storage.parts.delete_thread(thread_id)


def delete_runs(storage: Storage, run_ids: Sequence[str]) -> None:
    """Delete the checkpoints of these runs, with their writes, on all threads."""
    for run_id in run_ids:
        keys = storage.keys_in(storage.checkpoints, RUNS, FIRST_OF_RUN, run_id)
        for thread_id in sorted({key["thread_id"]["S"] for key in keys}):
            _, rows = _everything(storage, thread_id)
            theirs = [row for row in rows if row.item.get(RUN, {}).get("S") == run_id]
            _delete_rows(storage, reversed(theirs))


def prune(storage: Storage, reader: Reader, thread_id: str) -> None:
    """Keep the newest checkpoint of every namespace, and delete the others.

    A subgraph's namespace that holds a task's id ends with its task: its newest goes too, once
    the root is past it. A namespace with delta channels is left whole: its newest checkpoint is
    made from the earlier ones.
    """
    fence, rows = _everything(storage, thread_id)
    keep: dict[str, Row] = {}
    for row in rows:
        if fence.admits(row.checkpoint_ns, row.checkpoint_id, row.token):
            keep.setdefault(row.checkpoint_ns, row)
    root = keep[""].checkpoint_id if "" in keep else ""
    ended = {name for name, row in keep.items() if ":" in name and row.checkpoint_id < root}
    whole = {name for name, row in keep.items() if _DELTA in reader.metadata(row)}
    kept = {(name, row.checkpoint_id) for name, row in keep.items() if name not in ended}
    _delete_rows(
        storage,
        [
            row
            for row in reversed(rows)
            if (row.checkpoint_ns, row.checkpoint_id) not in kept and row.checkpoint_ns not in whole
        ],
    )
    for name, row in keep.items():
        if name not in ended | whole and RUN in row.item and FIRST_OF_RUN not in row.item:
            _index(storage, row)


def _everything(storage: Storage, thread_id: str) -> tuple[Fence, list[Row]]:
    fence, rows = NO_FENCE, []
    for item in storage.newest_first(thread_id):
        if is_fence(item):
            fence = fence_of(item) if storage.fencing else NO_FENCE
        else:
            rows.append(row_of(item))
    return fence, rows


def _delete_rows(storage: Storage, rows: Iterable[Row]) -> None:
    """Delete rows one by one: the writes first, so that none is left that nothing leads to."""
    for row in rows:
        items = storage.writes_to(row.thread_id, row.checkpoint_id, row.checkpoint_ns)
        objects = [key for item in (row.item, *items) for key in object_keys(item)]
        storage.delete(storage.writes, [_key(item) for item in items])
        storage.delete(storage.checkpoints, [row.key()])
        if objects:
            storage.parts.delete(objects)


def _key(item: Item) -> Item:
    return {PARTITION: item[PARTITION], RANGE: item[RANGE]}


def _index(storage: Storage, row: Row) -> None:
    """Let the index of runs lead here, as the row that it led to is gone."""
    storage.connection.dynamodb(
        "update_item",
        TableName=storage.checkpoints,
        Key=row.key(),
        UpdateExpression=f"SET {FIRST_OF_RUN} = :run",
        ConditionExpression="attribute_exists(checkpoint_id)",
        ExpressionAttributeValues={":run": row.item[RUN]},
    )
