"""When items end: DynamoDB removes them by an attribute, a day after readers pass them over."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

TTL = "expires"  # epoch seconds
GRACE = timedelta(days=1)  # DynamoDB deletes in any order, so nobody may still read them then
TOMBSTONE = timedelta(days=8)  # more than any writer of what was deleted lives
PLACES = timedelta(days=8)  # a tenant's live runs, from the last change on: all have ended


@dataclass(frozen=True, slots=True)
class Expiry:
    """What time it is.

    Attributes:
        now: Epoch seconds.
    """

    now: Callable[[], float]

    def after(self, life: timedelta) -> int:
        """Return the attribute's value of an item that ends so long from now."""
        return math.ceil(self.now() + life.total_seconds())

    def is_over(self, moment: datetime) -> bool:
        """Whether a time has come."""
        return moment <= datetime.fromtimestamp(self.now(), UTC)


def removed_after(moment: datetime) -> int:
    """Return the attribute's value of an item that readers pass over from a time on."""
    return math.ceil((moment + GRACE).timestamp())
