"""Keeping a run's end: one store write, tried again while the store is away."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

from ibid.domain.answers import TurnResult
from ibid.domain.conversations import Message, Run
from ibid.domain.errors import LeaseLost, RunNotFound, StoreUnavailable, Unavailable
from ibid.domain.events import Done, Failed, Terminator
from ibid.ports.clock import Clock
from ibid.ports.runs import RunStore
from ibid.runs.journal import Journal
from ibid.runs.limits import RunLimits
from ibid.runs.states import end_state, finish_reason
from ibid.runs.terminator import Ending, Stop, terminator
from ibid.runs.transcript import Transcript

logger = logging.getLogger(__name__)

GiveUpAt = Callable[[], float]

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
_LOOK_S = 0.25  # between two looks at the time


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """A terminator, the id it is shown under, and the message that is kept with it."""

    terminator: Terminator
    event_id: int
    message: Message

    def of(self, run: Run) -> Run:
        """Return the run as it is once this end is kept."""
        return replace(
            run,
            state=end_state(self.terminator),
            terminator=self.terminator,
            last_event_id=self.event_id,
            ended_at=self.message.created_at,
        )


class Keeper:
    """Keeps the ends of one process's runs.

    An end that can't be kept in time is owed: it is shown as `STORE_UNAVAILABLE` and kept, just
    as it was shown, when the store is back.

    Args:
        runs: Where.
        clock: For the message's time.
        limits: How long journals are kept, and pauses wait.

    Attributes:
        owed: What goes on trying, by run id.
    """

    def __init__(self, runs: RunStore, clock: Clock, limits: RunLimits) -> None:
        self._runs = runs
        self._clock = clock
        self._limits = limits
        self.owed: dict[str, asyncio.Task[None]] = {}

    def end(
        self,
        run: Run,
        transcript: Transcript,
        ending: Ending,
        *,
        is_kept: bool = True,
        is_plain: bool = False,
    ) -> End:
        """Make a run's end of what was shown and of how it went.

        Args:
            run: Which.
            transcript: What was shown.
            ending: How it went.
            is_kept: Whether the terminator may name the message.
            is_plain: Leave out the citations, which may be what can't be kept.
        """
        now = self._clock.now()
        event = terminator(
            ending,
            message_id=run.message_id if is_kept else None,
            expires_at=now + timedelta(seconds=self._limits.pause_s),
        )
        message = Message(
            id=run.message_id,
            conversation_id=run.conversation_id,
            run_id=run.id,
            role="assistant",
            content=transcript.text,
            created_at=now,
            finish_reason=finish_reason(event),
        )
        if isinstance(event, Done):
            message = replace(
                message,
                model=event.model,
                intent=event.intent,
                citations=event.citations,
                cited_indexes=event.cited_indexes,
                grounding_warnings=event.grounding_warnings,
                retrieval_attempts=event.retrieval_attempts,
                degraded=event.degraded,
            )
        else:
            citations = () if is_plain else transcript.citations
            error_code = event.code if isinstance(event, Failed) else None
            message = replace(message, error_code=error_code, citations=citations)
        return End(terminator=event, event_id=transcript.last_id + 1, message=message)

    async def keep(
        self, journal: Journal, transcript: Transcript, ending: Ending, *, give_up_at: GiveUpAt
    ) -> Run:
        """Keep a run's end, and return the run with the end that is to be shown.

        That is the end that is kept: this one, or one that came first. Only where none can be
        kept in time is it one that is owed, or that can't be kept any more.

        Args:
            journal: The run's; what it has not kept is kept with the end.
            transcript: What was shown; citations are added to it where a `Done` needs them.
            ending: How it went.
            give_up_at: Tells the loop's time after which the end is owed; it may come nearer.
        """
        run = journal.run
        if isinstance(ending, TurnResult):
            transcript.complete()
        failure: Ending = RuntimeError()
        for candidate in (
            self.end(run, transcript, ending),
            self.end(run, transcript, failure, is_plain=True),
        ):
            try:
                return await self._insist(journal, candidate, give_up_at=give_up_at)
            except RunNotFound:
                return self.end(run, transcript, Stop.DELETED, is_kept=False).of(run)
            except LeaseLost:
                return self.end(run, transcript, Stop.LEASE_LOST, is_kept=False).of(run)
            except Unavailable:
                failure = StoreUnavailable("The answer could not be kept in time.")
                break
            except Exception as error:  # noqa: BLE001 - an edge: whatever can't be kept, a run ends
                _log(logging.ERROR, "run_end_unkeepable", run, error)
        if not isinstance(failure, Unavailable):
            return self.give_up(journal, transcript)
        owed = self.end(run, transcript, failure, is_kept=False)
        self.owe(journal, owed)
        return owed.of(run)

    async def end_waiting(self, run: Run, ending: Ending) -> Run:
        """End a run that waits in a queue, in the name of nobody, by one try.

        Returns:
            The run as it is kept: with this end, or with one that came first.

        Raises:
            RunNotFound: It was deleted.
            LeaseLost: A process has adopted it since it was read.
            StoreUnavailable: The store gave no answer; the run may have ended or not.
        """
        transcript = Transcript()
        journal = Journal(run, transcript, runs=self._runs, clock=self._clock, limits=self._limits)
        give_up_at = _time() + self._limits.keep_s
        return await self._attempt(
            journal, self.end(run, transcript, ending), give_up_at=lambda: give_up_at
        )

    def give_up(self, journal: Journal, transcript: Transcript) -> Run:
        """Owe the end of a run that could not even be tried, and return it as it is shown."""
        owed = self.end(journal.run, transcript, RuntimeError(), is_kept=False, is_plain=True)
        self.owe(journal, owed)
        return owed.of(journal.run)

    def owe(
        self, journal: Journal, end: End, *, after: "asyncio.Future[Any] | None" = None
    ) -> None:
        """Go on trying to keep an end in the background.

        Args:
            journal: Of the run, which need not have been kept.
            end: What was shown, or would be.
            after: What may still be writing the run.
        """
        run = journal.run
        _log(logging.WARNING, "run_end_owed", run, None)
        task = asyncio.create_task(self._pay(journal, end, after), name=f"owed end of run {run.id}")
        self.owed[run.id] = task
        task.add_done_callback(lambda _: self.owed.pop(run.id, None))

    async def _insist(self, journal: Journal, end: End, *, give_up_at: GiveUpAt) -> Run:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return await self._attempt(journal, end, give_up_at=give_up_at)
            except Unavailable as error:
                _log(logging.WARNING, "run_end_retried", journal.run, error)
                if give_up_at() - _time() <= pause_s:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LOOK_S)

    async def _attempt(self, journal: Journal, end: End, *, give_up_at: GiveUpAt) -> Run:
        """Try to keep an end, and again if the run's own beats overtook the try.

        A try may wait for its turn while the journal moves the counter on; the store then takes
        it for a stranger's.
        """
        while True:
            beat = journal.beat
            try:
                return await self._try(journal, end, beat=beat, give_up_at=give_up_at)
            except LeaseLost:
                if journal.beat == beat:
                    raise

    async def _try(self, journal: Journal, end: End, *, beat: int, give_up_at: GiveUpAt) -> Run:
        at = end.message.created_at
        writing = asyncio.ensure_future(
            self._runs.end(
                journal.run,
                beat=beat,
                state=end_state(end.terminator),
                terminator=end.terminator,
                entries=journal.unkept(),
                event_id=end.event_id,
                answer=end.message,
                at=at,
                expires_at=at + timedelta(seconds=self._limits.journal_s),
            )
        )
        writing.add_done_callback(_take_note)
        # not awaited itself: a write that was begun is finished, whoever stops waiting for it
        await asyncio.wait({writing}, timeout=_LOOK_S)
        while not writing.done() and _time() < give_up_at():
            await asyncio.wait({writing}, timeout=_LOOK_S)
        if not writing.done():
            raise StoreUnavailable("the app store gave no answer in time")
        return writing.result()

    async def _pay(self, journal: Journal, end: End, after: "asyncio.Future[Any] | None") -> None:
        run = journal.run
        if after is not None:
            await asyncio.wait({after})
        pause_s = _FIRST_PAUSE_S
        while True:
            wait_until = _time() + _LONGEST_PAUSE_S
            try:
                await self._attempt(journal, end, give_up_at=partial(float, wait_until))
            except (RunNotFound, LeaseLost):
                return
            except Unavailable:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            except Exception as error:  # noqa: BLE001 - an edge: nobody awaits this task
                _log(logging.ERROR, "run_end_given_up", run, error)
                return
            else:
                _log(logging.INFO, "run_end_paid", run, None)
                return


def _time() -> float:
    return asyncio.get_running_loop().time()


def _take_note(writing: "asyncio.Future[Run]") -> None:
    """Look at a failure that nobody may be waiting for any more, else asyncio reports it."""
    if not writing.cancelled():
        writing.exception()


def _log(level: int, event: str, run: Run, error: BaseException | None) -> None:
    error_name = None if error is None else type(error).__name__
    logger.log(level, event, extra={"run_id": run.id, "error": error_name})
