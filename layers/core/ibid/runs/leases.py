"""Dead leases: counters that did not move for a full term of the observer's own clock."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ibid.domain.errors import Unavailable
from ibid.ports.clock import Clock
from ibid.ports.projects import JobStore
from ibid.runs.limits import RunLimits

logger = logging.getLogger(__name__)

Key = tuple[str, str]  # tenant, id


@dataclass(slots=True)
class _Seen:
    beat: int
    at: float
    unmoved_s: float = 0.0


class LeaseObserver:
    """Watches counters by looking at them now and then.

    A pause between two looks counts for at most two intervals: an observer that was itself
    suspended has not watched, and must not end what was suspended with it.

    Args:
        clock: Its monotonic time.
        limits: The term, and the interval of beats and looks.
    """

    def __init__(self, clock: Clock, limits: RunLimits) -> None:
        self._clock = clock
        self._term_s = limits.term_s
        self._most_s = 2 * limits.beat_s
        self._seen: dict[Key, _Seen] = {}

    def look(self, live: Mapping[Key, int]) -> Iterable[tuple[Key, int]]:
        """Take the counters of all live leases and return those that are dead, with the counter."""
        now = self._clock.monotonic()
        seen: dict[Key, _Seen] = {}
        for key, beat in live.items():
            last = self._seen.get(key)
            if last is None or last.beat != beat:
                seen[key] = _Seen(beat, now)
            else:
                unmoved_s = last.unmoved_s + min(now - last.at, self._most_s)
                seen[key] = _Seen(beat, now, unmoved_s)
        self._seen = seen
        return [(key, one.beat) for key, one in seen.items() if one.unmoved_s >= self._term_s]

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
        self._observer = LeaseObserver(clock, limits)

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
        for (tenant, job_id), beat in self._observer.look(await self._jobs.live()):
            if await self._jobs.take_over(job_id, tenant=tenant, beat=beat, at=self._clock.now()):
                logger.warning("job_lost", extra={"job_id": job_id})
