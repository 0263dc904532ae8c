"""The machine's clocks, as the port wants them."""

from datetime import UTC, datetime, timedelta

from ibid.adapters.system_clock import SystemClock


def test_wall_time_is_aware_and_now() -> None:
    now = SystemClock().now()

    assert now.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - now) < timedelta(minutes=1)


def test_monotonic_time_never_goes_back() -> None:
    clock = SystemClock()

    times = [clock.monotonic() for _ in range(100)]

    assert times == sorted(times)
