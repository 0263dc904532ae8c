"""Finding the one checkpoint that a run goes on from."""

from langgraph.checkpoint.base import CheckpointTuple

from ibid.adapters.checkpoints.ids import rise_above
from ibid.adapters.dynamodb.fence import Fence
from ibid.adapters.dynamodb.place import SEEN, Place
from ibid.adapters.dynamodb.reading import Reader
from ibid.adapters.dynamodb.renewing import renew
from ibid.adapters.dynamodb.rows import Row
from ibid.adapters.dynamodb.storage import Storage
from ibid.domain.errors import ThreadGone


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
    met: list[Row] = []
    found: Row | None = None
    for row in rows:
        if not met:
            rise_above(row.checkpoint_id)
            if storage.expiry.is_over(row.item):
                return None
        met.append(row)
        if place.checkpoint_id is not None:
            found = row if row.checkpoint_id == place.checkpoint_id else None
            found = found or _by_id(storage, fence, place)
            break
        if row.checkpoint_ns == place.checkpoint_ns:
            found = row
            break
    if found is None or found.checkpoint_ns != place.checkpoint_ns:
        return None
    if storage.expiry.is_over(found.item):
        return None
    if place.checkpoint_id is None and any(storage.expiry.is_due(row.item) for row in met):
        renew(storage, met)
    storage.connection.remember(found.thread_id, found.checkpoint_ns, found.checkpoint_id)
    more = {SEEN: fence.token} if fence.token and place.token is None else {}
    return reader.tuple(found, reader.counting_writes(fence, found), more=more)


def _by_id(storage: Storage, fence: Fence, place: Place) -> Row | None:
    row = storage.row(place.thread_id, place.checkpoint_id or "")
    if row is None or not fence.admits(row.checkpoint_ns, row.checkpoint_id, row.token):
        return None
    return row
