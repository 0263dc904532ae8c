"""Keeping a run's end: one store write, tried again while the store is away."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from ibid.domain.answers import TurnResult
from ibid.domain.conversations import Message, Run
from ibid.domain.errors import LeaseLost, RunNotFound, StoreUnavailable, Unavailable
from ibid.domain.events import Done, Entry, Terminator
from ibid.ports.clock import Clock
from ibid.ports.runs import RunStore
from ibid.runs.stages import end_state
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

    @property
    def entry(self) -> Entry:
        """What a reader sees of it."""
        return Entry(id=self.event_id, event=self.terminator)


class Keeper:
    """Keeps the ends of one process's runs.

    An end that can't be kept in time is owed: it is shown as `STORE_UNAVAILABLE` and kept, just
    as it was shown, when the store is back.

    Args:
        runs: Where.
        clock: For the message's time.

    Attributes:
        owed: What goes on trying, by run id.
    """

    def __init__(self, runs: RunStore, clock: Clock) -> None:
        self._runs = runs
        self._clock = clock
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
        event = terminator(ending, message_id=run.message_id if is_kept else None)
        message = Message(
            id=run.message_id,
            conversation_id=run.conversation_id,
            run_id=run.id,
            role="assistant",
            content=transcript.text,
            created_at=self._clock.now(),
            finish_reason=event.finish_reason,
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
            message = replace(message, error_code=event.code, citations=citations)
        return End(terminator=event, event_id=transcript.next_id, message=message)

    async def keep(
        self, run: Run, transcript: Transcript, ending: Ending, *, give_up_at: GiveUpAt
    ) -> Entry:
        """Keep a run's end and return what is to be shown: it, or the end that came first.

        Args:
            run: Which.
            transcript: What was shown; citations are added to it where a `Done` needs them.
            ending: How it went.
            give_up_at: Tells the loop's time after which the end is owed; it may come nearer.
        """
        if isinstance(ending, TurnResult):
            transcript.complete()
        failure: Ending = RuntimeError()
        for candidate in (
            self.end(run, transcript, ending),
            self.end(run, transcript, failure, is_plain=True),
        ):
            try:
                return await self._insist(run, candidate, give_up_at=give_up_at)
            except RunNotFound:
                return self.end(run, transcript, Stop.DELETED, is_kept=False).entry
            except LeaseLost:
                return self.end(run, transcript, Stop.LEASE_LOST, is_kept=False).entry
            except Unavailable:
                failure = StoreUnavailable("The answer could not be kept in time.")
                break
            except Exception as error:  # noqa: BLE001 - an edge: whatever can't be kept, a run ends
                _log(logging.ERROR, "run_end_unkeepable", run, error)
        if not isinstance(failure, Unavailable):
            return self.give_up(run, transcript)
        owed = self.end(run, transcript, failure, is_kept=False)
        self.owe(run, owed)
        return owed.entry

    def give_up(self, run: Run, transcript: Transcript) -> Entry:
        """Owe the end of a run that could not even be tried, and return what is to be shown."""
        owed = self.end(run, transcript, RuntimeError(), is_kept=False, is_plain=True)
        self.owe(run, owed)
        return owed.entry

    def owe(self, run: Run, end: End, *, after: "asyncio.Future[None] | None" = None) -> None:
        """Go on trying to keep an end in the background.

        Args:
            run: Which; it need not have been kept.
            end: What was shown, or would be.
            after: What may still be writing the run.
        """
        _log(logging.WARNING, "run_end_owed", run, None)
        task = asyncio.create_task(self._pay(run, end, after), name=f"owed end of run {run.id}")
        self.owed[run.id] = task
        task.add_done_callback(lambda _: self.owed.pop(run.id, None))

    async def _insist(self, run: Run, end: End, *, give_up_at: GiveUpAt) -> Entry:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return await self._attempt(run, end, give_up_at=give_up_at)
            except Unavailable as error:
                _log(logging.WARNING, "run_end_retried", run, error)
                if give_up_at() - _time() <= pause_s:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LOOK_S)

    async def _attempt(self, run: Run, end: End, *, give_up_at: GiveUpAt) -> Entry:
        writing = asyncio.ensure_future(
            self._runs.end(
                run.id,
                tenant=run.tenant,
                owner=run.lease_owner,
                state=end_state(end.terminator),
                terminator=end.terminator,
                event_id=end.event_id,
                answer=end.message,
                at=end.message.created_at,
            )
        )
        writing.add_done_callback(_take_note)
        # not awaited itself: a write that was begun is finished, whoever stops waiting for it
        await asyncio.wait({writing}, timeout=_LOOK_S)
        while not writing.done() and _time() < give_up_at():
            await asyncio.wait({writing}, timeout=_LOOK_S)
        if not writing.done():
            raise StoreUnavailable("the app store gave no answer in time")
        kept = writing.result()
        return Entry(id=kept.last_event_id, event=kept.terminator or end.terminator)

    async def _pay(self, run: Run, end: End, after: "asyncio.Future[None] | None") -> None:
        if after is not None:
            await asyncio.wait({after})
        pause_s = _FIRST_PAUSE_S
        while True:
            wait_until = _time() + _LONGEST_PAUSE_S
            try:
                await self._attempt(run, end, give_up_at=partial(float, wait_until))
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
