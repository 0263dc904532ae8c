"""The right to write one checkpoint thread, as the checkpoint savers hand it out."""

from dataclasses import dataclass
from typing import Any

FENCE = "__ibid_fence"  # in `configurable`; "__" keeps it out of the metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """One writer's turn at a thread; it ends by release, or when a later one is taken.

    Attributes:
        thread_id: The checkpoint thread.
        owner: Who holds it, for people: a run's id, a process's name.
        token: The thread's fence, from 1 upward; every later lease has a higher one.
    """

    thread_id: str
    owner: str
    token: int

    @property
    def configurable(self) -> dict[str, Any]:
        """What a graph's config carries, so that the saver knows whose writes these are."""
        return {"thread_id": self.thread_id, FENCE: self.token}
