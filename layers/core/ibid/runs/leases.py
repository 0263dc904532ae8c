"""Dead leases: counters that did not move for a full term of the observer's own clock."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ibid.domain.errors import Unavailable
from ibid.ports.clock import Clock
from ibid.ports.projects import JobStore
from ibid.runs.limits import RunLimits

logger = logging.getLogger(__name__)

Key = tuple[str, str]  # tenant, id
TryWrite = Callable[[Key], Awaitable[None]]

_AT_ONCE = 4

T = TypeVar("T")
R = TypeVar("R")


async def a_few_at_a_time(of: Sequence[T], call: Callable[[T], Awaitable[R]]) -> Sequence[R]:
    """Call for each of many leases, and return the results in order.

    One after the other takes longer than a term where many have died together; all at once keeps
    those waiting who live.
    """
    results: list[R] = []
    for start in range(0, len(of), _AT_ONCE):
        results += await asyncio.gather(*map(call, of[start : start + _AT_ONCE]))
    return results


@dataclass(slots=True)
class _Seen:
    beat: int
    at: float
    unmoved_s: float = 0.0
    writable_s: float | None = None  # unmoved since a write went through; None: none was tried


class LeaseObserver:
    """Watches counters by looking at them now and then.

    A pause between two looks counts for at most two intervals: an observer that was itself
    suspended has not watched, and must not end what was suspended with it.

    Reads may be answered while writes are held up, by another process's lock say. Then who lives
    can't beat, and an end that waited in the same line might come before its beat. So a write
    that changes nothing goes first, and the counter must stand for an interval after it: as long
    as anybody needs to beat who was held up. How long the write itself waited counts for nothing.

    Args:
        clock: Its monotonic time.
        limits: The term, and the interval of beats and looks.
        try_write: Writes where a lease's beats are written, without changing anything.
    """

    def __init__(self, clock: Clock, limits: RunLimits, *, try_write: TryWrite) -> None:
        self._clock = clock
        self._term_s = limits.term_s
        self._beat_s = limits.beat_s
        self._most_s = 2 * limits.beat_s
        self._try_write = try_write
        self._seen: dict[Key, _Seen] = {}

    async def look(self, live: Mapping[Key, int]) -> Sequence[tuple[Key, int]]:
        """Take the counters of all live leases and return those that are dead, with the counter.

        Args:
            live: As they have just been read.

        Raises:
            StoreUnavailable: It takes no writes; all is watched anew.
        """
        self._take_in(live, self._clock.monotonic())
        suspects = [
            key
            for key, one in self._seen.items()
            if 0.0 < one.unmoved_s >= self._term_s - self._beat_s and one.writable_s is None
        ]
        try:
            await a_few_at_a_time(suspects, self._find_writable)
        except Unavailable:
            self.forget()
            raise
        return [(key, one.beat) for key, one in self._seen.items() if self._is_dead(one)]

    async def _find_writable(self, key: Key) -> None:
        one = self._seen[key]
        await self._try_write(key)
        one.at, one.writable_s = self._clock.monotonic(), 0.0

    def _is_dead(self, one: _Seen) -> bool:
        if one.writable_s is None:
            return False
        return one.unmoved_s >= self._term_s and one.writable_s >= self._beat_s

    def _take_in(self, live: Mapping[Key, int], now: float) -> None:
        seen: dict[Key, _Seen] = {}
        for key, beat in live.items():
            last = self._seen.get(key)
            if last is None or last.beat != beat:
                seen[key] = _Seen(beat, now)
            else:
                span_s = min(now - last.at, self._most_s)
                writable_s = None if last.writable_s is None else last.writable_s + span_s
                seen[key] = _Seen(beat, now, last.unmoved_s + span_s, writable_s)
        self._seen = seen

    def watch_again(self, key: Key) -> None:
        """Do not tell of this lease again before another term: it may not be ended yet."""
        self._seen.pop(key, None)

    def forget(self) -> None:
        """Watch all anew: while the store was away for this process, others could not beat."""
        self._seen = {}


class JobWatch:
    """Ends the indexing jobs whose process died.

    Args:
        jobs: The jobs.
        clock: Monotonic for the leases, wall time for the records.
        limits: The term and the interval.
    """

    def __init__(self, jobs: JobStore, clock: Clock, limits: RunLimits) -> None:
        self._jobs = jobs
        self._clock = clock
        self._interval_s = limits.beat_s
        self._observer = LeaseObserver(clock, limits, try_write=self._try_write)

    async def watch(self) -> None:
        """Look for ever; cancel it to stop. A store that is away is looked at again later."""
        while True:
            try:
                await self.look()
            except Unavailable as error:
                self._observer.forget()
                logger.warning("job_watch_failed", extra={"error": error.code})
            except Exception as error:  # noqa: BLE001 - an edge: a watch that ends is never missed
                logger.error("job_watch_failed", extra={"error": type(error).__name__})
            await asyncio.sleep(self._interval_s)

    async def look(self) -> None:
        """Look once.

        Raises:
            StoreUnavailable: The store gave no answer.
        """
        for (tenant, job_id), beat in await self._observer.look(await self._jobs.live()):
            if await self._jobs.take_over(job_id, tenant=tenant, beat=beat, at=self._clock.now()):
                logger.warning("job_lost", extra={"job_id": job_id})

    async def _try_write(self, key: Key) -> None:
        tenant, job_id = key
        await self._jobs.try_write(job_id, tenant=tenant)
