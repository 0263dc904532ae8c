"""Keys of the two tables, made and never parsed."""

import hashlib
from urllib.parse import quote

SEPARATOR = ":::"
FENCE_ROW = "~fence"  # above every checkpoint id, so one query meets it and then the newest

PARTITION_BYTES = 2_048  # of DynamoDB
_RANGE_BYTES = 1_024  # likewise
_FOLDER_BYTES = 400  # an object's key ends at 1,024


def checkpoint_range(checkpoint_id: str, checkpoint_ns: str) -> str:
    """Return the range key of a checkpoint: its id, and after it the namespace of a subgraph.

    So two namespaces may hold one id, and a thread's rows still sort by id.
    """
    if not checkpoint_ns:
        return checkpoint_id
    key = SEPARATOR.join([checkpoint_id, checkpoint_ns])
    if len(key.encode()) <= _RANGE_BYTES:
        return key
    return SEPARATOR.join([checkpoint_id, hashlib.sha256(checkpoint_ns.encode()).hexdigest()])


def writes_partition(thread_id: str, checkpoint_id: str, checkpoint_ns: str) -> str:
    """Return the partition of a checkpoint's writes, as version 0.1.0 makes it.

    One too long for DynamoDB, which that version could never have written, is hashed.
    """
    key = SEPARATOR.join([thread_id, checkpoint_id, checkpoint_ns])
    if len(key.encode()) <= PARTITION_BYTES:
        return key
    return SEPARATOR.join(["sha256", hashlib.sha256(key.encode()).hexdigest()])


def pack_range(task_id: str, token: int) -> str:
    """Return the range key of a task's pack; every fence token has a pack of its own."""
    parts = [task_id, "pack", str(token)] if token else [task_id, "pack"]
    return SEPARATOR.join(parts)


def thread_folder(prefix: str, thread_id: str) -> str:
    """Return the folder of a thread's objects, with a slash at its end."""
    name = quote(thread_id, safe="")
    if len(name) > _FOLDER_BYTES:
        name = "sha256-" + hashlib.sha256(thread_id.encode()).hexdigest()
    return f"{prefix}t-{name}/"  # "t-": no folder is "." or ".."
