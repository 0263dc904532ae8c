"""A run of this process, from its first event to its terminator.

Three parties: the *turn*, a task that makes events; the *supervisor*, a task that waits for the
first ending, minds the journal meanwhile, stops the turn, keeps the end and shows the terminator;
and the *readers*: the one who asked, who may leave at any time, and any number of followers, who
count for nothing. The turn waits for its reader that lags, never for one that has left; the
terminator waits for nobody. The journal keeps only what somebody has been shown, so that what is
kept of a run whose reader left is what was read.

A task that is cancelled before its first step runs no `finally`: what must happen hangs on the
tasks' callbacks. What was shown is collected here, since a cancelled graph loses it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from ibid.domain.answers import TurnInput, TurnPause, TurnResult
from ibid.domain.conversations import Run, RunState
from ibid.domain.events import RESERVED_IDS, Entry, Phase, StatusChanged, TurnEvent
from ibid.ports.clock import Clock
from ibid.ports.runs import RunStore
from ibid.runs.journal import Journal
from ibid.runs.keeping import Keeper
from ibid.runs.limits import RunLimits
from ibid.runs.places import Place, Places
from ibid.runs.readings import Reading
from ibid.runs.stages import Stage, can_move
from ibid.runs.terminator import Ending, Stop
from ibid.runs.transcript import Transcript
from ibid.runs.turns import OnDisconnect, Work

logger = logging.getLogger(__name__)

_FINISHES = 5  # tries at an end, each after a failure that no store made
_LAST_WRITE_S = 1.0  # for a write of the journal that is under way as the run ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What all runs of a process share."""

    runs: RunStore
    clock: Clock
    limits: RunLimits
    keeper: Keeper
    places: Places


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What one run has to do.

    Attributes:
        admitted: Waits until a queued run is running in the store; calls what it is given if
            that takes a while.
        prepare: Makes the turn's input.
        work: Makes the turn's events, and its result or its pause as the last one.
        on_disconnect: What becomes of it when its reader leaves.
        attended: False where no reader is expected.
        timeout_s: Seconds until it times out.
    """

    admitted: Callable[[Callable[[], None]], Awaitable[None]]
    prepare: Callable[[], Awaitable[TurnInput]]
    work: Work
    on_disconnect: OnDisconnect
    attended: bool
    timeout_s: float


class LiveRun:
    """One run; made by the engine.

    Args:
        run: As it was kept.
        job: What it has to do.
        process: Where it runs.

    Attributes:
        run: As it was kept at its begin; once the terminator is shown, as it ended.
        stage: Where it is.
        ended: Done once the terminator is shown.
    """

    def __init__(self, run: Run, job: Job, process: Process) -> None:
        self.run = run
        self._job = job
        self._keeper = process.keeper
        self._limits = process.limits
        self._places = process.places
        self._place: Place | None = None
        self._transcript = Transcript()
        self._reader = Reading(self._transcript)
        self._followers: set[Reading] = set()
        self._shown = 0  # entries that anybody has taken
        self._is_read = job.attended  # until nobody comes, or the reader leaves
        self._has_reader = False
        self._said_queued = False
        loop = asyncio.get_running_loop()
        self.stage = Stage.QUEUED
        self.ended: asyncio.Future[None] = loop.create_future()
        self._ending: asyncio.Future[Ending] = loop.create_future()
        self._room: asyncio.Future[None] | None = None
        self._give_up_at = float("inf")
        self._time_out_at = loop.time() + job.timeout_s
        self._finishes_left = _FINISHES
        self.journal = Journal(
            run,
            self._transcript,
            runs=process.runs,
            clock=process.clock,
            limits=process.limits,
            told=self._told,
        )
        self._unattended: asyncio.TimerHandle | None = None
        if job.attended:
            self._unattended = loop.call_later(self._limits.attach_s, self._leave)
        self._turn = asyncio.create_task(self._take_turn(), name=f"turn of run {run.id}")
        self._turn.add_done_callback(self._turn_done)
        self._supervisor = asyncio.create_task(self._supervise(), name=f"run {run.id}")
        self._supervisor.add_done_callback(self._supervisor_done)

    @property
    def id(self) -> str:
        """The run's id."""
        return self.run.id

    @property
    def message_id(self) -> str:
        """Of the assistant message that the run will leave."""
        return self.run.message_id

    async def events(self, ping_s: float) -> AsyncGenerator[Entry | None, None]:
        """Read the run's events in order, and the terminator as the last one.

        Closing it earlier tells that the client has gone. One reader at a time; another one goes
        on where the last one left.

        Args:
            ping_s: Seconds of silence after which None is given, above 0.
        """
        if self._has_reader:
            raise RuntimeError("a run has one reader at a time")
        self._stop_waiting_for_a_reader()
        self._has_reader = self._is_read = True
        try:
            while not self._is_read_up(self._reader):
                yield await self._next(self._reader, ping_s)
        finally:
            self._has_reader = False
            self._leave()

    async def follow(self, ping_s: float, *, after: int) -> AsyncGenerator[Entry | None, None]:
        """Read the events with ids above `after`, and in any case the terminator, as the last one.

        Closing it changes nothing.
        """
        reading = Reading(self._transcript, after=after)
        self._followers.add(reading)
        if self._transcript.has_ended:
            reading.reach_end()
        try:
            while not self._is_read_up(reading):
                yield await self._next(reading, ping_s)
        finally:
            self._followers.discard(reading)

    def stop(self, reason: Stop) -> None:
        """End the run for a reason, unless it is ending already."""
        self._settle(reason)

    def hurry(self, give_up_at: float) -> None:
        """Owe the end if it can't be kept by that time of the loop."""
        self._give_up_at = min(self._give_up_at, give_up_at)

    async def wait_ended(self) -> None:
        """Wait until the terminator is shown."""
        await asyncio.wait({self.ended})

    async def keep_alive(self) -> None:
        """Move the lease's counter if it is time, and wait for that a while."""
        self.journal.tick()
        await self.journal.wait_written(self._limits.beat_s)

    def _is_read_up(self, reading: Reading) -> bool:
        return self.stage is Stage.ENDED and reading.unread == 0

    async def _next(self, reading: Reading, ping_s: float) -> Entry | None:
        if reading.unread == 0:
            await reading.wait(ping_s)
            if reading.unread == 0:
                return None
        entry = reading.take()
        if reading.taken > self._shown and not self._transcript.has_ended:
            self._shown = reading.taken
            self.journal.shown(self._shown)
        if self._reader.unread <= self._limits.unread // 2:
            _wake(self._room)
        return entry

    def _stop_waiting_for_a_reader(self) -> None:
        if self._unattended is not None:
            self._unattended.cancel()
            self._unattended = None

    def _leave(self) -> None:
        self._is_read = False
        if self._job.on_disconnect == "continue" or not self._job.attended:
            self._show_all()
        elif self._settle(Stop.DISCONNECTED):
            self._transcript.cut(self._shown)  # what is kept is what was shown
        _wake(self._room)

    def _show_all(self) -> None:
        """Keep what comes though nobody reads: a reload shows it."""
        if not self._transcript.has_ended:
            self._shown = len(self._transcript.entries)
            self.journal.shown(self._shown)

    async def _take_turn(self) -> TurnResult | TurnPause:
        await self._queue()
        events = self._job.work(await self._job.prepare(), self._proceed)
        try:
            async for event in events:
                if isinstance(event, TurnResult | TurnPause):
                    return event
                self._show(event)
                await self._wait_for_room()
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()
        raise RuntimeError("a turn ended without its result")

    async def _proceed(self) -> None:
        if self.stage is Stage.RUNNING:
            await self.journal.ask()
        if self.stage is not Stage.RUNNING:  # whoever asked is being cancelled
            await asyncio.get_running_loop().create_future()

    async def _queue(self) -> None:
        if self.run.state is RunState.QUEUED:
            await self._job.admitted(self._say_queued)
        self._place = self._places.claim()
        if not self._place.is_taken:
            self._say_queued()
            await self._place.taken()
        self._move(Stage.RUNNING)

    def _say_queued(self) -> None:
        if not self._said_queued:
            self._said_queued = True
            logger.info("run_queued", extra={"run_id": self.id})
            self._show(StatusChanged(phase=Phase.QUEUED))

    def _show(self, event: TurnEvent) -> None:
        if self.stage in {Stage.QUEUED, Stage.RUNNING}:
            self._transcript.show(event)
            if not self._is_read:
                self._show_all()
            self._wake_readers()

    def _wake_readers(self) -> None:
        self._reader.wake()
        for follower in self._followers:
            follower.wake()

    async def _wait_for_room(self) -> None:
        while (self._is_read and self._reader.unread >= self._limits.unread) or (
            self._transcript.last_id - self.journal.kept_id >= RESERVED_IDS
        ):
            self._room = asyncio.get_running_loop().create_future()
            await self._room

    def _told(self, stop: Stop | None) -> None:
        """Take in what a write of the journal was answered."""
        if stop is not None:
            self._settle(stop)
        _wake(self._room)

    def _turn_done(self, turn: "asyncio.Task[TurnResult | TurnPause]") -> None:
        if self._place is not None:
            self._place.free()
        if turn.cancelled():
            self._settle(asyncio.CancelledError())
        else:
            error = turn.exception()
            ending: Ending = turn.result() if error is None else error
            if not self._settle(ending) and error is not None:
                self._log(logging.WARNING, "run_cleanup_failed", error)

    def _move(self, to: Stage) -> bool:
        if not can_move(self.stage, to):
            return False
        self.stage = to
        return True

    def _settle(self, ending: Ending) -> bool:
        """Let the run end like this, and say so, unless another ending came first."""
        if not self._move(Stage.ENDING):
            return False
        if isinstance(ending, BaseException):
            self._log(logging.WARNING, "run_failed", ending)
        self._ending.set_result(ending)
        return True

    async def _supervise(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._ending.done():
            left_s = self._time_out_at - loop.time()
            if left_s <= 0:
                self._settle(Stop.TIMED_OUT)
                break
            self.journal.tick()
            await asyncio.wait({self._ending}, timeout=min(left_s, self.journal.wait_s()))
        await self._finish()

    async def _finish(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._turn.done():
            self._turn.cancel()
            await asyncio.wait({self._turn}, timeout=self._limits.stop_s)
        if not self._turn.done():
            self._log(logging.ERROR, "run_cleanup_abandoned", None)
        self.hurry(loop.time() + self._limits.keep_s)
        await self.journal.wait_written(min(_LAST_WRITE_S, self._give_up_at - loop.time()))
        ending = self._ending.result()
        ended = await self._keeper.keep(
            self.journal, self._transcript, ending, give_up_at=lambda: self._give_up_at
        )
        self._show_end(ended)

    def _supervisor_done(self, supervisor: asyncio.Task[None]) -> None:
        """Finish in another task what a cancelled or failed one left."""
        error = None if supervisor.cancelled() else supervisor.exception()
        if self.stage is Stage.ENDED:
            return
        self._settle(asyncio.CancelledError() if error is None else error)
        self._log(logging.ERROR, "run_end_interrupted", error)
        if self._finishes_left == 0:
            self._show_end(self._keeper.give_up(self.journal, self._transcript))
            return
        self._finishes_left -= 1
        self._supervisor = asyncio.create_task(self._finish(), name=f"end of run {self.id}")
        self._supervisor.add_done_callback(self._supervisor_done)

    def _show_end(self, ended: Run) -> None:
        self._move(Stage.ENDED)
        self._stop_waiting_for_a_reader()
        self.run = ended
        if ended.terminator is None:
            raise RuntimeError("an end without a terminator")
        self._transcript.end(Entry(id=ended.last_event_id, event=ended.terminator))
        extra = {"run_id": self.id, "last_event_id": ended.last_event_id}
        logger.info("run_ended", extra=extra)
        for follower in self._followers:
            follower.reach_end()
        self._reader.wake()
        self.ended.set_result(None)

    def _log(self, level: int, event: str, error: BaseException | None) -> None:
        error_name = None if error is None else type(error).__name__
        logger.log(level, event, extra={"run_id": self.id, "error": error_name})


def _wake(waiter: "asyncio.Future[None] | None") -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
