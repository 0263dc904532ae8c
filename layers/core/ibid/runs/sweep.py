"""What is tidied now and then: dead runs, pauses that nobody answered, what is kept no longer."""

import asyncio
import logging
from collections.abc import Mapping

from ibid.domain.errors import Unavailable
from ibid.ports.clock import Clock
from ibid.ports.idempotency import IdempotencyStore
from ibid.ports.runs import RunStore
from ibid.runs.dead_runs import DeadRuns
from ibid.runs.leases import Key
from ibid.runs.limits import RunLimits

logger = logging.getLogger(__name__)


class Sweep:
    """Tidies one app store; safe to do twice at once, and to be killed at any point.

    Args:
        runs: The runs of all processes.
        idempotency: The keys of all tenants.
        clock: Monotonic for leases, wall time for what is due.
        limits: The term of a lease.
    """

    def __init__(
        self, *, runs: RunStore, idempotency: IdempotencyStore, clock: Clock, limits: RunLimits
    ) -> None:
        self._runs = runs
        self._idempotency = idempotency
        self._clock = clock
        self._limits = limits
        self._dead = DeadRuns(runs, clock, limits)

    async def watch(self, every_s: float) -> None:
        """Sweep for ever; cancel it to stop. A store that is away is tried again later."""
        while True:
            try:
                await self.sweep()
            except Unavailable as error:
                logger.warning("sweep_failed", extra={"error": error.code})
            except Exception as error:  # noqa: BLE001 - an edge: a watch that ends is never missed
                logger.error("sweep_failed", extra={"error": type(error).__name__})
            await asyncio.sleep(every_s)

    async def sweep(self) -> None:
        """Do all of it once; with runs that are live this takes a lease's term.

        Raises:
            StoreUnavailable: The store gave no answer; what was done stays done.
        """
        expired = 0
        while due := await self._runs.due_pauses(self._clock.now()):
            outcomes = [await self._runs.expire(run) for run in due]
            expired += sum(outcomes)
            if not any(outcomes):  # all were answered in the last moment
                break
        lost = await self._end_dead()
        removed = await self._idempotency.purge(self._clock.now())
        while purged := await self._runs.purge(self._clock.now()):
            removed += purged
        extra = {"expired": expired, "lost": lost, "removed": removed}
        logger.info("swept", extra=extra)

    async def _end_dead(self) -> int:
        """Watch the live runs for a term, and end those that did not move."""
        observer = self._dead.observer()
        first: Mapping[Key, int] = await self._runs.live()
        await observer.look(first)
        lost = 0
        while first:
            await asyncio.sleep(self._limits.beat_s)
            now = await self._runs.live()
            # one that has moved is alive, and one that has begun since is not old enough
            first = {key: beat for key, beat in first.items() if now.get(key) == beat}
            dead = await observer.look(first)
            lost += len(await self._dead.end_all(dead))
            for key, _ in dead:
                del first[key]
        return lost
