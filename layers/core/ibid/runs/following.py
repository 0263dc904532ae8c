"""Reading a run's events from any id on, while it runs and after, in any process."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Sequence
from dataclasses import replace
from typing import TypeVar

from ibid.domain.conversations import Run, RunState
from ibid.domain.errors import JournalExpired, RunNotFound, Unavailable
from ibid.domain.events import RESERVED_IDS, Entry, Terminator
from ibid.ports.runs import Kept, RunStore
from ibid.runs.dead_runs import DeadRuns
from ibid.runs.limits import RunLimits
from ibid.runs.live_run import LiveRun
from ibid.runs.terminator import Stop, terminator

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Followed(ABC):
    """One follower's view of a run.

    Args:
        run: As it stands.
        after: The id of the last event that the follower has, 0 for none.

    Attributes:
        run: As it stood when the following began.
        ended: The run with its end, once the terminator was given; None before.
    """

    def __init__(self, run: Run, *, after: int) -> None:
        self.run = run
        self.ended: Run | None = None
        self._after = after

    @property
    def is_over(self) -> bool:
        """Whether the follower has it all, the terminator too: there is nothing to read."""
        return self.run.terminator is not None and self._after >= self.run.last_event_id

    @abstractmethod
    def events(self, ping_s: float) -> AsyncGenerator[Entry | None, None]:
        """Read the events with ids above `after` in order, the terminator as the last one.

        Closing it earlier changes nothing for the run. A store that is away is waited for.

        Args:
            ping_s: Seconds of silence after which None is given, above 0.
        """


class FollowedHere(Followed):
    """A run of this process: what it shows is read at once, before it is kept."""

    def __init__(self, live: LiveRun, *, after: int) -> None:
        super().__init__(live.run, after=after)
        self._live = live

    async def events(self, ping_s: float) -> AsyncGenerator[Entry | None, None]:
        """Read on."""
        if self.is_over:
            return
        events = self._live.follow(ping_s, after=self._after)
        try:
            async for entry in events:
                if entry is not None and isinstance(entry.event, Terminator):
                    self.ended = self._live.run
                yield entry
        finally:
            await events.aclose()


class FollowedElsewhere(Followed):
    """A run that has ended, or that another process works on: its journal is read again and again.

    If its lease is dead, the follower ends it.

    Args:
        first: The part of the journal after `after`.
        after: The id of the last event that the follower has.
        runs: Where the journal is.
        dead: Ends a dead run.
        limits: How often to look.
    """

    def __init__(
        self, first: Kept, *, after: int, runs: RunStore, dead: DeadRuns, limits: RunLimits
    ) -> None:
        super().__init__(first.run, after=after)
        self._first: Kept | None = first
        self._runs = runs
        self._dead = dead
        self._observer = dead.observer()
        self._poll_s = limits.poll_s

    async def events(self, ping_s: float) -> AsyncGenerator[Entry | None, None]:
        """Read on."""
        if self.is_over:
            return
        silent_s, last_id = 0.0, self._after
        while self.ended is None:
            part = await self._waited_for(self._read(last_id))
            for entry in () if part is None else _with_end(part):
                silent_s, last_id = 0.0, entry.id
                if part is not None and isinstance(entry.event, Terminator):
                    self.ended = part.run
                yield entry
            if part is not None and (
                part.has_more or await self._waited_for(self._end_if_dead(part.run))
            ):
                continue
            if silent_s >= ping_s:
                silent_s = 0.0
                yield None
            if self.ended is None:
                await asyncio.sleep(min(self._poll_s, ping_s))
                silent_s += min(self._poll_s, ping_s)

    async def _waited_for(self, asking: Awaitable[T]) -> T | None:
        """Return what the store answers; None if it is away, to be asked again later."""
        try:
            return await asking
        except Unavailable as error:
            self._observer.forget()
            extra = {"run_id": self.run.id, "error": error.code}
            logger.warning("run_follow_retried", extra=extra)
            return None

    async def _read(self, after: int) -> Kept:
        first, self._first = self._first, None
        if first is not None:
            return first
        try:
            return await self._runs.entries(self.run, after=after)
        except (RunNotFound, JournalExpired):
            return await self._last(after)

    async def _last(self, after: int) -> Kept:
        """Make the last part of a run whose journal went while it was read."""
        run = await self._runs.read_dead(self.run.id, tenant=self.run.tenant)
        if run is None or run.terminator is None:
            run = replace(
                self.run,
                state=RunState.CANCELLED,
                terminator=terminator(Stop.DELETED, message_id=None),
                last_event_id=after + RESERVED_IDS + 1,
            )
        return Kept(entries=(), run=run, has_more=False)

    async def _end_if_dead(self, run: Run) -> bool:
        if run.terminator is not None or self._dead.is_early(run):
            return False
        key = (run.tenant, run.id)
        for (tenant, run_id), beat in await self._observer.look({key: run.beat}):
            return await self._dead.end(run_id, tenant=tenant, beat=beat)
        return False


def _with_end(part: Kept) -> Sequence[Entry]:
    """Return the entries of a part, and of a run that has ended its terminator in any case."""
    run = part.run
    if run.terminator is None or part.has_more:
        return part.entries
    if part.entries and part.entries[-1].id == run.last_event_id:
        return part.entries
    return [*part.entries, Entry(id=run.last_event_id, event=run.terminator)]
