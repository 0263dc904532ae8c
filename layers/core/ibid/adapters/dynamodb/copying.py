"""A thread's checkpoints, writes and objects under another thread's id."""

from ibid.adapters.dynamodb.reading import Reader
from ibid.adapters.dynamodb.rows import CHECKPOINT, METADATA, Row
from ibid.adapters.dynamodb.storage import Storage
from ibid.adapters.dynamodb.storing import RUN, Store, Target
from ibid.domain.errors import ThreadGone, ThreadLeased


def copy_thread(storage: Storage, reader: Reader, source: str, target: str) -> None:
    """Copy all that counts, oldest first, each checkpoint after its writes.

    Values are not decoded, so no allow-list or key is needed for their types.

    Raises:
        ThreadLeased: Somebody writes to the target.
        ThreadGone: One of the two was deleted.
    """
    fence, rows = storage.rows(source)
    theirs, _ = storage.rows(target, page=1)
    for thread_id, one in ((source, fence), (target, theirs)):
        if one.gone:
            raise ThreadGone(f"thread {thread_id!r} was deleted", thread_id=thread_id)
    if theirs.held:
        raise ThreadLeased(f"thread {target!r} is leased", thread_id=target)
    store = Store(storage, theirs.token)

    def load(row: Row, part: str) -> tuple[str, bytes]:
        data = storage.parts.load(
            row.item[part], thread_id=row.thread_id, checkpoint_id=row.checkpoint_id
        )
        return row.kind(part), data

    for row in reversed(list(rows)):
        if storage.expiry.is_over(row.item):
            continue
        place = Target(
            thread_id=target,
            checkpoint_ns=row.checkpoint_ns,
            checkpoint_id=row.checkpoint_id,
            parent_id=row.parent_id,
        )
        for task in reader.tasks(row, reader.counting_writes(fence, row)):
            store.writes(place, task.slots, task_id=task.task_id, task_path=task.path)
        store.checkpoint(
            place,
            load(row, CHECKPOINT),
            load(row, METADATA),
            run_id=row.item.get(RUN, {}).get("S"),
        )
