"""The line of queued runs: who of this process asks the store for a place next."""

import asyncio
import logging
from collections.abc import Callable

from ibid.domain.conversations import Run
from ibid.domain.errors import Unavailable
from ibid.domain.principals import Principal
from ibid.ports.runs import PlaceLimits, RunStore
from ibid.runs.limits import RunLimits

logger = logging.getLogger(__name__)


class Line:
    """Asks for places in the order in which the runs of a subject came.

    A run behind another one of its own conversation holds nobody up. Between two subjects, and
    between two processes, whoever asks first goes first.

    Args:
        runs: Where places are counted.
        limits: How many there are, and how often to ask.
    """

    def __init__(self, runs: RunStore, limits: RunLimits) -> None:
        self._runs = runs
        self._limits = limits
        self._waiting: list[tuple[Run, bool]] = []
        self._change: asyncio.Future[None] | None = None

    async def admitted(self, run: Run, *, is_behind: bool, waits: Callable[[], None]) -> None:
        """Wait until a queued run is running; a cancelled wait changes nothing.

        Args:
            run: As it was kept at its begin.
            is_behind: It may wait for another run of its conversation.
            waits: Called if the run has to wait.

        Raises:
            LeaseLost: It has ended.
            PausePending: The run before it has paused.
        """
        ticket = (run, is_behind)
        self._waiting.append(ticket)
        try:
            while not (self._is_first(run) and await self._admit(run)):
                waits()
                await self._changed()
        finally:
            self._waiting.remove(ticket)
            self.wake()

    def places_for(self, principal: Principal) -> PlaceLimits:
        """Return what a new run of the principal is held to: none passes one that waits here."""
        for run, is_behind in self._waiting:
            if not is_behind and (run.tenant, run.subject) == (principal.tenant, principal.subject):
                return PlaceLimits(tenant=0, subject=0)
        return self._limits.places

    def wake(self) -> None:
        """Ask again at once: a place may have come free."""
        if self._change is not None and not self._change.done():
            self._change.set_result(None)

    def _is_first(self, run: Run) -> bool:
        for other, is_behind in self._waiting:
            if other is run:
                break
            if (other.tenant, other.subject) == (run.tenant, run.subject) and not is_behind:
                return False
        return True

    async def _admit(self, run: Run) -> bool:
        try:
            return await self._runs.admit(run, limits=self._limits.places)
        except Unavailable as error:
            logger.warning("run_admit_failed", extra={"run_id": run.id, "error": error.code})
            return False

    async def _changed(self) -> None:
        if self._change is None or self._change.done():
            self._change = asyncio.get_running_loop().create_future()
        await asyncio.wait({self._change}, timeout=self._limits.poll_s)
