"""Trying a provider again before it has said anything, within the call's time."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, TypeVar

from ibid.domain.errors import ModelUnavailable
from ibid.ports.models import ReplyEnd, TextDelta

T = TypeVar("T")

MOST: Final = 5
"""Attempts a call, the first included."""

_LONGEST_DELAY_S: Final = 8.0


class TryAgain(Exception):
    """A failure that may pass; `failure` is what it becomes if no attempt is left.

    `after_s` is how long the provider asks to wait, None if it does not say.
    """

    def __init__(self, failure: ModelUnavailable, *, after_s: float | None = None) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.after_s = after_s


class Attempts:
    """One call's deadline and its attempts.

    Args:
        timeout_s: Seconds for all attempts and the waits between them, above 0.
        first_delay_s: About what is waited after the first failure; doubled after each.
    """

    def __init__(self, timeout_s: float, *, first_delay_s: float) -> None:
        self._end = asyncio.get_running_loop().time() + timeout_s
        self._delay_s = first_delay_s
        self._made = 1

    def left_s(self) -> float:
        """Seconds until the deadline, 0 when it has passed."""
        return max(0.0, self._end - asyncio.get_running_loop().time())

    async def within(self, work: Awaitable[T], *, most_s: float | None = None) -> T:
        """Await one step before the deadline, and for at most `most_s` seconds if given.

        Raises:
            ModelUnavailable: It passed; the step was cancelled.
        """
        end = self._end
        if most_s is not None:
            end = min(end, asyncio.get_running_loop().time() + most_s)
        try:
            async with asyncio.timeout_at(end):
                return await work
        except TimeoutError as error:
            raise ModelUnavailable("the model gave no answer in time") from error

    async def wait(self, again: TryAgain) -> None:
        """Wait for the next attempt: as long as the provider asks, else longer each time.

        Raises:
            ModelUnavailable: No attempt is left, or the wait would outlast the deadline.
        """
        delay_s = again.after_s
        if delay_s is None:
            delay_s = min(_LONGEST_DELAY_S, self._delay_s) * _random.uniform(0.5, 1.0)
            self._delay_s *= 2
        if self._made >= MOST or delay_s >= self.left_s():
            raise again.failure from again.__cause__
        self._made += 1
        await asyncio.sleep(delay_s)


_random: Final = random.SystemRandom()


async def stream_with_attempts(
    once: Callable[[], AsyncGenerator[TextDelta | ReplyEnd, None]], attempts: Attempts
) -> AsyncIterator[TextDelta | ReplyEnd]:
    """Stream what one attempt gives; another one is made only before the first piece.

    Raises:
        ModelUnavailable: The last attempt failed, or one did after its first piece.
    """
    while True:
        said = False
        try:
            async with aclosing(once()) as items:
                async for item in items:
                    said = True
                    yield item
        except TryAgain as again:
            if said:
                raise again.failure from again.__cause__
            await attempts.wait(again)
        else:
            return


async def decide_with_attempts(once: Callable[[], Awaitable[T]], attempts: Attempts) -> T:
    """Return what the first good attempt gives.

    Raises:
        ModelUnavailable: The last attempt failed.
    """
    while True:
        try:
            return await once()
        except TryAgain as again:
            await attempts.wait(again)


def retry_after_s(header: str | None) -> float | None:
    """Read a Retry-After header: seconds, or a date; None if there is none that can be read."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(header)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())
