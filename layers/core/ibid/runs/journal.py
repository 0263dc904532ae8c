"""Writing a run's journal: what, when, and what the answers tell.

Writes go one after the other, each in a task of its own: who waits for one may be cancelled, and
the write is finished all the same. A write that fails is tried again later; the run goes on.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta

from ibid.domain.conversations import Run
from ibid.domain.errors import LeaseLost, Unavailable
from ibid.domain.events import RESERVED_IDS, Entry, StatusChanged, TokenDelta
from ibid.ports.clock import Clock
from ibid.ports.runs import RunStore
from ibid.runs.limits import RunLimits
from ibid.runs.terminator import Stop
from ibid.runs.transcript import Transcript

logger = logging.getLogger(__name__)

Told = Callable[[Stop | None], None]

_ASK_S = 1.0  # the longest that a turn waits to hear if it may go on
_LEAST_S = 0.01
_SPARED_S = 0.15  # how much later than a look a write may come in its place


class Journal:
    """The journal of one run of this process.

    Args:
        run: As it was kept at its begin.
        transcript: What is to be kept.
        runs: Where.
        clock: Monotonic for when to write, wall time for the retention.
        limits: How long what may wait.
        told: Called after each write with why the run must stop, or None.

    Attributes:
        run: As it was kept at its begin.
        beat: The counter that the next write carries.
        kept_id: The last id that is kept for certain.
    """

    def __init__(
        self,
        run: Run,
        transcript: Transcript,
        *,
        runs: RunStore,
        clock: Clock,
        limits: RunLimits,
        told: Told = lambda _: None,
    ) -> None:
        self.run = run
        self.beat = run.beat
        self.kept_id = 0
        self._transcript = transcript
        self._runs = runs
        self._clock = clock
        self._limits = limits
        self._told = told
        self._through = 0  # what was shown: no more is kept before the end
        self._sent = 0  # what is kept, or on its way
        self._bytes = 0  # of text that was shown and not sent
        self._is_boundary = False  # a phase was shown and not sent
        self._first_at = self._written_at = self._told_at = clock.monotonic()
        self._not_before = self._written_at
        self._is_closed = False
        self._writing: asyncio.Task[bool] | None = None

    def unkept(self) -> Sequence[Entry]:
        """Return all that no write has kept for certain, for the write that ends the run."""
        return self._transcript.entries[self.kept_id : self._transcript.last_id]

    def shown(self, through: int) -> None:
        """Take note of what was shown, and write if that is due."""
        if through > self._through:
            if self._through == self._sent:
                self._first_at = self._clock.monotonic()
            for entry in self._transcript.entries[self._through : through]:
                if isinstance(entry.event, TokenDelta):
                    self._bytes += len(entry.event.text.encode())
                elif isinstance(entry.event, StatusChanged):
                    self._is_boundary = True
            self._through = through
        self.tick()

    def tick(self) -> None:
        """Begin to write, or to look for a cancel, if it is time."""
        now = self._clock.monotonic()
        if self._writing is not None or self._is_closed or now < self._not_before:
            return
        if self._is_due(now):
            self._begin(self._append(now))
        elif now >= self._look_at():
            self._begin(self._look(now))

    def wait_s(self) -> float:
        """Return the seconds until `tick` may have something to do."""
        limits = self._limits
        if self._writing is not None or self._is_closed:
            return limits.look_s
        due = min(self._look_at(), self._written_at + limits.beat_s)
        if self._through > self._sent:
            due = min(due, self._first_at + limits.flush_s)
        return max(max(due, self._not_before) - self._clock.monotonic(), _LEAST_S)

    async def ask(self) -> None:
        """Learn if the run may go on, unless it has just been told; what was shown is kept by it.

        A store that is away, or does not answer for a second, says yes.
        """
        for _ in range(2):  # what is under way may have begun before the cancel
            now = self._clock.monotonic()
            if self._is_closed or now < self._not_before:
                return
            if self._writing is None:
                if 0 <= now - self._told_at < self._limits.fresh_s:
                    return
                is_old = now - self._written_at >= self._limits.boundary_s
                flush = self._through > self._sent and is_old
                self._begin(self._append(now) if flush else self._look(now))
            await self.wait_written(_ASK_S)

    async def wait_written(self, timeout_s: float) -> None:
        """Wait for the write that is under way, if one is."""
        if self._writing is not None:
            await asyncio.wait({self._writing}, timeout=timeout_s)

    def close(self) -> None:
        """Write no more: the end is kept."""
        self._is_closed = True

    def _look_at(self) -> float:
        """Return when to look for a cancel; a write that is about to come tells it as well."""
        look_at = self._told_at + self._limits.look_s
        if self._through > self._sent:
            write_at = self._first_at + self._limits.flush_s
            if look_at <= write_at <= look_at + _SPARED_S:
                return write_at
        return look_at

    def _is_due(self, now: float) -> bool:
        limits, unsent = self._limits, self._through - self._sent
        return now - self._written_at >= limits.beat_s or (
            unsent > 0
            and (
                now - self._first_at >= limits.flush_s
                or self._bytes >= limits.flush_bytes
                or unsent >= RESERVED_IDS // 2
                or (self._is_boundary and now - self._written_at >= limits.boundary_s)
            )
        )

    def _begin(self, write: Coroutine[None, None, bool]) -> None:
        self._writing = asyncio.create_task(write, name=f"journal of run {self.run.id}")
        self._writing.add_done_callback(self._done)

    async def _append(self, now: float) -> bool:
        through, self._sent = self._through, self._through
        self._bytes, self._is_boundary = 0, False
        appended = await self._runs.append(
            self.run,
            beat=self.beat,
            entries=self._transcript.entries[self.kept_id : through],
            expires_at=self._clock.now() + timedelta(seconds=self._limits.journal_s),
        )
        self.beat = appended.beat
        self.kept_id = through
        self._written_at = self._told_at = now
        return appended.cancel_requested

    async def _look(self, now: float) -> bool:
        is_cancelled = await self._runs.is_cancelled(self.run, beat=self.beat)
        self._told_at = now
        return is_cancelled

    def _done(self, writing: "asyncio.Task[bool]") -> None:
        self._writing = None
        error = asyncio.CancelledError() if writing.cancelled() else writing.exception()
        stop = None
        if isinstance(error, LeaseLost):
            self._is_closed = True
            stop = Stop.LEASE_LOST
        elif error is not None:
            self._failed(error)
        elif writing.result():
            stop = Stop.CANCELLED
        self._told(stop)
        if self._through > self._sent:
            self.tick()

    def _failed(self, error: BaseException) -> None:
        self._sent = self.kept_id
        self._not_before = self._clock.monotonic() + self._limits.flush_s
        level = logging.WARNING if isinstance(error, Unavailable) else logging.ERROR
        extra = {"run_id": self.run.id, "error": type(error).__name__}
        logger.log(level, "run_journal_failed", extra=extra)
