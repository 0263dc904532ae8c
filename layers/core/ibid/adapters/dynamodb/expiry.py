"""How long items live, and which of them are over."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

TTL = "ttl"  # the attribute, epoch seconds, at which DynamoDB may delete
GRACE = timedelta(days=1)  # from a row's end to that: more than any two clocks differ


@dataclass(frozen=True, slots=True)
class Expiry:
    """A life that every write and, past its half, every read of the newest checkpoint renews.

    A row is over, for readers, a day before DynamoDB may delete it: deletions come in any order,
    so a reader that saw the newest row go first would serve an older state.

    Attributes:
        life: From the last activity to a row's end; None: rows stay.
        now: Epoch seconds.
    """

    life: timedelta | None = None
    now: Callable[[], float] = time.time

    def attribute(self, *, lives: int = 1) -> dict[str, Any]:
        """Return the attribute of an item that is written now; `{}` if items stay."""
        if self.life is None:
            return {}
        end = self.now() + lives * (self.life + GRACE).total_seconds()
        return {TTL: {"N": str(math.ceil(end))}}

    def is_over(self, item: Mapping[str, Any]) -> bool:
        """Whether readers must not see the item any more."""
        left = self._left_s(item)
        return left is not None and left <= 0

    def is_due(self, item: Mapping[str, Any]) -> bool:
        """Whether the item is past half its life and should be renewed."""
        left = self._left_s(item)
        if self.life is None or left is None:
            return False
        return left < self.life.total_seconds() / 2

    def _left_s(self, item: Mapping[str, Any]) -> float | None:
        if TTL not in item:
            return None
        return float(item[TTL]["N"]) - GRACE.total_seconds() - self.now()
