"""A clock that moves when it is told to."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Both times start somewhere and move together by `move`."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
        self._monotonic = 1_000.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def move(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds
