"""Another try for what may be cured by one: full jitter, the server's own wait, a budget."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from ibid.domain.errors import EmbedderUnavailable

_T = TypeVar("_T")


class TransientFault(Exception):
    """One request failed in a way that another one may not.

    Attributes:
        retry_after_s: Seconds that the server asked to wait, or None.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often and how long to try.

    Attributes:
        attempts: Requests in all, at least 1.
        first_wait_s: Most seconds before the second request; doubled for each further one.
        longest_wait_s: Most seconds before any, unless the server asks for more.
        budget_s: Seconds after which no further request begins.
        sleep: Waits.
        jitter: Picks a number between two.
    """

    attempts: int = 6
    first_wait_s: float = 0.5
    longest_wait_s: float = 8.0
    budget_s: float = 120.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[float, float], float] = random.uniform

    async def run(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """Send a request until it succeeds.

        Raises:
            EmbedderUnavailable: The last fault, once attempts or budget are spent.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.budget_s
        attempt = 1
        while True:
            try:
                return await request()
            except TransientFault as fault:
                most = min(self.longest_wait_s, self.first_wait_s * 2 ** (attempt - 1))
                wait_s = max(self.jitter(0.0, most), fault.retry_after_s or 0.0)
                if attempt >= self.attempts or loop.time() + wait_s > deadline:
                    raise EmbedderUnavailable(f"{fault} ({attempt} attempts)") from fault
            await self.sleep(wait_s)
            attempt += 1


def retry_after(value: str | None) -> float | None:
    """Read a Retry-After header's seconds; a date or nonsense is None."""
    try:
        seconds = float(value) if value is not None else -1.0
    except ValueError:
        return None
    return seconds if 0.0 <= seconds < float("inf") else None
