from collections.abc import Awaitable, Callable

import pytest

from ibid.adapters.embedders.retries import Retries, TransientFault, retry_after
from ibid.domain.errors import EmbedderUnavailable


class Waits:
    """Remembers waits instead of waiting."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)


def failing(*faults: TransientFault) -> Callable[[], Awaitable[str]]:
    left = list(faults)

    async def request() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return request


def most(_: float, highest: float) -> float:
    return highest


async def test_waits_double_up_to_the_longest() -> None:
    waits = Waits()
    retries = Retries(longest_wait_s=1.5, sleep=waits.sleep, jitter=most)

    answer = await retries.run(failing(*[TransientFault("busy")] * 4))

    assert answer == "done"
    assert waits.seconds == [0.5, 1.0, 1.5, 1.5]


async def test_a_wait_that_the_server_asks_for_is_kept() -> None:
    waits = Waits()

    await Retries(sleep=waits.sleep, jitter=most).run(
        failing(TransientFault("busy", retry_after_s=20.0))
    )

    assert waits.seconds == [20.0]


async def test_spent_attempts_are_unavailable_and_say_how_many() -> None:
    retries = Retries(attempts=2, sleep=Waits().sleep)

    with pytest.raises(EmbedderUnavailable, match=r"busy \(2 attempts\)"):
        await retries.run(failing(*[TransientFault("busy")] * 2))


async def test_a_wait_beyond_the_budget_is_not_begun() -> None:
    waits = Waits()

    with pytest.raises(EmbedderUnavailable, match="1 attempts"):
        await Retries(budget_s=10, sleep=waits.sleep).run(
            failing(TransientFault("busy", retry_after_s=60.0))
        )

    assert waits.seconds == []


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("1.5", 1.5),
        ("0", 0.0),
        ("-3", None),
        ("inf", None),
        ("nan", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_retry_after_reads_seconds_only(value: str | None, seconds: float | None) -> None:
    assert retry_after(value) == seconds
