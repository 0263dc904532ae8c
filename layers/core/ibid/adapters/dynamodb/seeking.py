"""Finding the one checkpoint that a run goes on from."""

from collections.abc import Iterable

from langgraph.checkpoint.base import CheckpointTuple

from ibid.adapters.checkpoints.ids import rise_above
from ibid.adapters.dynamodb.fence import Fence
from ibid.adapters.dynamodb.place import SEEN, Place
from ibid.adapters.dynamodb.reading import Reader
from ibid.adapters.dynamodb.renewing import renew
from ibid.adapters.dynamodb.rows import Row
from ibid.adapters.dynamodb.storage import Storage
from ibid.domain.errors import CheckpointCorrupt, ThreadGone


def find(storage: Storage, reader: Reader, place: Place) -> CheckpointTuple | None:
    """Return the named checkpoint, or a namespace's newest, with its writes; None if none.

    What this process writes from then on sorts above the thread's newest, and a newest checkpoint
    past half its life is renewed, with the subgraphs' above it.

    Raises:
        CheckpointCorrupt: It is not whole.
        ThreadGone: The thread was leased once, and deleted.
    """
    fence, rows = storage.rows(place.thread_id, page=1)
    if fence.gone:
        raise ThreadGone(f"thread {place.thread_id!r} was deleted", thread_id=place.thread_id)
    met = _met(storage, fence, rows, place)
    if not met or storage.expiry.is_over(met[-1].item):
        return None
    found = met[-1]
    if place.checkpoint_id is None and any(storage.expiry.is_due(row.item) for row in met):
        renew(storage, met)
    storage.connection.remember(found.thread_id, found.checkpoint_ns, found.checkpoint_id)
    more = {SEEN: fence.token} if fence.token and place.token is None else {}
    try:
        return reader.tuple(found, reader.counting_writes(fence, found), more=more)
    except CheckpointCorrupt:
        if _by_id(storage, fence, found) is not None:
            raise
        return find(storage, reader, place)  # it was deleted meanwhile


def _met(storage: Storage, fence: Fence, rows: Iterable[Row], place: Place) -> list[Row]:
    """Return the row that is looked for and those above it, it last; `[]` if there is none."""
    met: list[Row] = []
    for row in rows:
        if not met:
            rise_above(row.checkpoint_id)
            if storage.expiry.is_over(row.item):
                break
        if place.checkpoint_id is not None:
            names = place.checkpoint_ns, place.checkpoint_id
            is_first = (row.checkpoint_ns, row.checkpoint_id) == names
            named = row if is_first else _by_id(storage, fence, place)
            return [] if named is None else [named]
        met.append(row)
        if row.checkpoint_ns == place.checkpoint_ns:
            return met
    return []


def _by_id(storage: Storage, fence: Fence, place: Place | Row) -> Row | None:
    row = storage.row(place.thread_id, place.checkpoint_id or "", place.checkpoint_ns)
    if row is None or not fence.admits(row.checkpoint_ns, row.checkpoint_id, row.token):
        return None
    return row
