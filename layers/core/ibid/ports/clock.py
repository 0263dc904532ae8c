"""Time, handed in so that tests need not wait."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for records, monotonic time for leases; the two are never mixed."""

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""

    def monotonic(self) -> float:
        """Return seconds that never go back, of this process only."""
