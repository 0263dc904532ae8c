"""A run of this process, from its first event to its terminator.

Three parties: the *turn*, a task that makes events; the *supervisor*, a task that waits for the
first ending, stops the turn, keeps the end and shows the terminator; and the *reader*, who may
leave at any time. The turn waits for a reader that lags, never for one that has left; the
terminator waits for nobody.

A task that is cancelled before its first step runs no `finally`: what must happen hangs on the
tasks' callbacks. What was shown is collected here, since a cancelled graph loses it.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable

from ibid.domain.answers import TurnInput, TurnPause, TurnResult
from ibid.domain.conversations import Run
from ibid.domain.errors import Unavailable
from ibid.domain.events import Entry, Phase, StatusChanged, TurnEvent
from ibid.runs.keeping import Keeper
from ibid.runs.limits import RunLimits
from ibid.runs.places import Place
from ibid.runs.stages import Stage, can_move
from ibid.runs.terminator import Ending, Stop
from ibid.runs.transcript import Transcript
from ibid.runs.turns import OnDisconnect, Work

logger = logging.getLogger(__name__)

_FINISHES = 5  # tries at an end, each after a failure that no store made


class LiveRun:
    """One run; made by the engine.

    Args:
        run: As it was kept.
        prepare: Makes the turn's input.
        work: Makes the turn's events, and its result as the last one.
        announce: Tells the store that the run has a place now.
        place: Its place, taken or waited for.
        keeper: Keeps the end.
        limits: Time-outs and the number of unread entries.
        on_disconnect: What becomes of it when its reader leaves.

    Attributes:
        run: As it was kept.
        stage: Where it is.
        ended: Done once the terminator is shown.
    """

    def __init__(
        self,
        run: Run,
        *,
        prepare: Callable[[], Awaitable[TurnInput]],
        work: Work,
        announce: Callable[[], Awaitable[None]],
        place: Place,
        keeper: Keeper,
        limits: RunLimits,
        on_disconnect: OnDisconnect,
    ) -> None:
        self.run = run
        self._prepare = prepare
        self._work = work
        self._announce = announce
        self._place = place
        self._keeper = keeper
        self._limits = limits
        self._on_disconnect = on_disconnect
        self._transcript = Transcript()
        self._read = 0  # entries that the reader has taken
        self._is_read = True  # until nobody comes, or the reader leaves
        self._has_reader = False
        loop = asyncio.get_running_loop()
        self.stage = Stage(run.state.value)
        self.ended: asyncio.Future[None] = loop.create_future()
        self._ending: asyncio.Future[Ending] = loop.create_future()
        self._news: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._give_up_at = float("inf")
        self._finishes_left = _FINISHES
        self._unattended = loop.call_later(limits.attach_s, self._leave)
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
        self._unattended.cancel()
        self._has_reader = self._is_read = True
        try:
            while not self._is_read_up():
                yield await self._next(ping_s)
        finally:
            self._has_reader = False
            self._leave()

    def stop(self, reason: Stop) -> None:
        """End the run for a reason, unless it is ending already."""
        self._settle(reason)

    def hurry(self, give_up_at: float) -> None:
        """Owe the end if it can't be kept by that time of the loop."""
        self._give_up_at = min(self._give_up_at, give_up_at)

    async def wait_ended(self) -> None:
        """Wait until the terminator is shown."""
        await asyncio.wait({self.ended})

    def _is_read_up(self) -> bool:
        return self.stage is Stage.ENDED and self._unread() == 0

    def _unread(self) -> int:
        return len(self._transcript.entries) - self._read

    async def _next(self, ping_s: float) -> Entry | None:
        if self._unread() == 0:
            loop = asyncio.get_running_loop()
            self._news = loop.create_future()
            ping = loop.call_later(ping_s, _wake, self._news)
            try:
                await self._news
            finally:
                ping.cancel()
            if self._unread() == 0:
                return None
        entry = self._transcript.entries[self._read]
        self._read += 1
        if self._unread() <= self._limits.unread // 2:
            _wake(self._room)
        return entry

    def _leave(self) -> None:
        self._is_read = False
        _wake(self._room)
        if self._on_disconnect == "stop" and self._settle(Stop.DISCONNECTED):
            self._transcript.cut(self._read)  # what is kept is what was shown

    async def _take_turn(self) -> TurnResult:
        if self.stage is Stage.QUEUED:
            await self._queue()
        events = self._work(await self._prepare(), self._proceed)
        try:
            async for event in events:
                if isinstance(event, TurnResult):
                    return event
                if isinstance(event, TurnPause):
                    raise RuntimeError("a pause")
                self._show(event)
                await self._wait_for_room()
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()
        raise RuntimeError("a turn ended without its result")

    async def _proceed(self) -> None:
        await asyncio.sleep(0)

    async def _queue(self) -> None:
        if not self._place.is_taken:
            logger.info("run_queued", extra={"run_id": self.id})
            self._show(StatusChanged(phase=Phase.QUEUED))
            await self._place.taken()
        self._move(Stage.RUNNING)
        with contextlib.suppress(Unavailable):  # the next beat says it again
            await self._announce()

    def _show(self, event: TurnEvent) -> None:
        if self.stage in {Stage.QUEUED, Stage.RUNNING}:
            self._transcript.show(event)
            _wake(self._news)

    async def _wait_for_room(self) -> None:
        while self._is_read and self._unread() >= self._limits.unread:
            self._room = asyncio.get_running_loop().create_future()
            await self._room

    def _turn_done(self, turn: asyncio.Task[TurnResult]) -> None:
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
        await asyncio.wait({self._ending}, timeout=self._limits.run_timeout_s)
        self._settle(Stop.TIMED_OUT)
        await self._finish()

    async def _finish(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._turn.done():
            self._turn.cancel()
            await asyncio.wait({self._turn}, timeout=self._limits.stop_s)
        if not self._turn.done():
            self._log(logging.ERROR, "run_cleanup_abandoned", None)
        self.hurry(loop.time() + self._limits.keep_s)
        ending = self._ending.result()
        entry = await self._keeper.keep(
            self.run, self._transcript, ending, give_up_at=lambda: self._give_up_at
        )
        self._show_end(entry)

    def _supervisor_done(self, supervisor: asyncio.Task[None]) -> None:
        """Finish in another task what a cancelled or failed one left."""
        error = None if supervisor.cancelled() else supervisor.exception()
        if self.stage is Stage.ENDED:
            return
        self._settle(asyncio.CancelledError() if error is None else error)
        self._log(logging.ERROR, "run_end_interrupted", error)
        if self._finishes_left == 0:
            self._show_end(self._keeper.give_up(self.run, self._transcript))
            return
        self._finishes_left -= 1
        self._supervisor = asyncio.create_task(self._finish(), name=f"end of run {self.id}")
        self._supervisor.add_done_callback(self._supervisor_done)

    def _show_end(self, entry: Entry) -> None:
        self._move(Stage.ENDED)
        self._unattended.cancel()
        self._transcript.end(entry)
        logger.info("run_ended", extra={"run_id": self.id, "last_event_id": entry.id})
        _wake(self._news)
        self.ended.set_result(None)

    def _log(self, level: int, event: str, error: BaseException | None) -> None:
        error_name = None if error is None else type(error).__name__
        logger.log(level, event, extra={"run_id": self.id, "error": error_name})


def _wake(waiter: "asyncio.Future[None] | None") -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
