import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from ibid.adapters.models.attempts import (
    MOST,
    Attempts,
    TryAgain,
    decide_with_attempts,
    retry_after_s,
    stream_with_attempts,
)
from ibid.domain.errors import ModelUnavailable
from ibid.ports.models import ReplyEnd, TextDelta

Item = TextDelta | ReplyEnd
END = ReplyEnd(input_tokens=None, output_tokens=None)


def again(after_s: float | None = None) -> TryAgain:
    return TryAgain(ModelUnavailable("not now"), after_s=after_s)


class Tries:
    """Each attempt gives its items; an exception among them is raised."""

    def __init__(self, *tries: list[Item | Exception]) -> None:
        self._tries = list(tries)
        self.made = 0

    async def stream(self) -> AsyncGenerator[Item, None]:
        script = self._tries[min(self.made, len(self._tries) - 1)]
        self.made += 1
        for item in script:
            if isinstance(item, Exception):
                raise item
            yield item

    async def decide(self) -> Item:
        return await anext(self.stream())


async def test_an_attempt_that_says_nothing_is_made_again() -> None:
    tries = Tries([again()], [again(after_s=0.0)], [TextDelta(text="a"), END])
    attempts = Attempts(10, first_delay_s=0.001)

    items = [item async for item in stream_with_attempts(tries.stream, attempts)]

    assert items == [TextDelta(text="a"), END]
    assert tries.made == 3


async def test_after_the_first_piece_there_is_no_other_attempt() -> None:
    tries = Tries([TextDelta(text="a"), again()])
    attempts = Attempts(10, first_delay_s=0.001)
    stream = stream_with_attempts(tries.stream, attempts)

    assert await anext(stream) == TextDelta(text="a")
    with pytest.raises(ModelUnavailable, match="not now"):
        await anext(stream)

    assert tries.made == 1


async def test_attempts_end() -> None:
    tries = Tries([again()])

    with pytest.raises(ModelUnavailable, match="not now"):
        await decide_with_attempts(tries.decide, Attempts(10, first_delay_s=0.001))

    assert tries.made == MOST


async def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    tries = Tries([again(after_s=11)])

    with pytest.raises(ModelUnavailable, match="not now"):
        await decide_with_attempts(tries.decide, Attempts(10, first_delay_s=0.001))

    assert tries.made == 1


async def test_another_failure_is_no_reason_for_another_attempt() -> None:
    tries = Tries([ValueError("for good")])

    with pytest.raises(ValueError, match="for good"):
        await decide_with_attempts(tries.decide, Attempts(10, first_delay_s=0.001))

    assert tries.made == 1


async def test_a_step_past_the_deadline_is_cancelled() -> None:
    attempts = Attempts(0.01, first_delay_s=0.001)
    never = asyncio.get_running_loop().create_future()

    with pytest.raises(ModelUnavailable):
        await attempts.within(never)

    assert never.cancelled()
    assert attempts.left_s() == 0


async def test_a_step_can_have_less_time_than_the_call() -> None:
    attempts = Attempts(100, first_delay_s=0.001)

    with pytest.raises(ModelUnavailable):
        await attempts.within(asyncio.get_running_loop().create_future(), most_s=0.01)

    assert attempts.left_s() > 0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("2", 2.0),
        ("1.5", 1.5),
        ("-1", 0.0),
        ("soon", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 -0000", 0.0),
    ],
)
def test_a_retry_after_is_read(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header) == seconds


def test_a_date_to_come_is_seconds_from_now() -> None:
    seconds = retry_after_s(format_datetime(datetime.now(UTC) + timedelta(hours=1)))

    assert seconds is not None
    assert 3_000 < seconds <= 3_600
