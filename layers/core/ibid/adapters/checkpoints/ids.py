"""Checkpoint ids rise, whatever the clocks of two machines say.

LangGraph makes ids from the wall clock (uuid6) and never below the last one of its process. A
process that reads a thread written by a machine whose clock is ahead must therefore take the
newest id there as its own last one; else what it writes sorts below what it went on from.
"""

import threading
from typing import Any
from uuid import UUID

from langgraph.checkpoint.base import id as _module

_VERSION = 6
_generator: Any = _module  # its types say that its last time is None for ever
_lock = threading.Lock()


def ticks(checkpoint_id: str) -> int | None:
    """Return the time in an id, in units of 100 ns; None if it is no uuid6."""
    try:
        parsed = UUID(checkpoint_id)
    except ValueError:
        return None
    if parsed.int >> 76 & 0xF != _VERSION:
        return None
    return (parsed.int >> 80) << 12 | parsed.int >> 64 & 0xFFF


def rise_above(checkpoint_id: str) -> None:
    """See that ids made from now on are above this one.

    Two threads can make an id at the same moment, and the generator has no lock: `is_above` is
    the check that a write makes.
    """
    floor = ticks(checkpoint_id)
    if floor is None:
        return
    with _lock:
        last = _generator._last_v6_timestamp  # noqa: SLF001 - it has no other door
        if last is None or last < floor:
            _generator._last_v6_timestamp = floor  # noqa: SLF001 - as above


def is_above(checkpoint_id: str, parent_id: str) -> bool:
    """Whether an id may follow its parent's; ids of other makers always may."""
    mine, parents = ticks(checkpoint_id), ticks(parent_id)
    return mine is None or parents is None or checkpoint_id > parent_id
