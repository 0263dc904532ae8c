"""The machine's own clocks."""

import time
from datetime import UTC, datetime


class SystemClock:
    """Wall time and monotonic time as the operating system tells them."""

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never go back, of this process only."""
        return time.monotonic()
