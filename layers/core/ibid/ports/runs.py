"""Where runs, their journals, their leases and their pauses are kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ibid.domain.conversations import Message, Run, RunState
from ibid.domain.events import Entry, Terminator
from ibid.domain.pages import Page
from ibid.domain.principals import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceLimits:
    """How many runs may be `running` at once; 0 makes a run wait wherever another one runs."""

    tenant: int
    subject: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A run as it was kept, and what its conversation held before.

    Attributes:
        run: `running`, or `queued` where it has to wait.
        messages: The last ones, oldest first, at most as many as were asked for; without the
            run's own question.
    """

    run: Run
    messages: Sequence[Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """What a write of the journal tells.

    Attributes:
        beat: The run's counter now; the next write carries it.
        cancel_requested: Somebody asked to stop the run.
    """

    beat: int
    cancel_requested: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A part of a run's journal, and how the run stood when it was read.

    Attributes:
        entries: In order; the terminator is the last one of an ended run's last part.
        run: As it stands; `last_event_id` is the last id that is kept.
        has_more: There is more to read at once.
    """

    entries: Sequence[Entry]
    run: Run
    has_more: bool


class RunStore(Protocol):
    """Runs, each with its journal, its lease and its one terminator.

    A conversation has at most one running run, and at most one pause that is pending: a paused
    run, neither resumed nor expired. While there is one, no other turn begins or is admitted.
    Every transition is one conditional write, and is on record before it returns. A run's lease
    is dead only when its counter (`beat`) did not move for a full term on the observer's own
    monotonic clock; only its owner's writes move it, and its adoption. Reads see every
    acknowledged write.
    Every method may raise StoreUnavailable.
    """

    async def begin(
        self,
        run: Run,
        *,
        question: Message,
        title: str,
        limits: PlaceLimits | None,
        behind: bool = False,
        history: int = 0,
        idempotency: str | None = None,
    ) -> Begun:
        """Keep a new run and the asker's message, if the conversation is free.

        A conversation without a title gets `title`. A stale number is told before a busy thread,
        and that before a pending pause.

        Args:
            run: Its `number` is one above the conversation's newest run; `state` is ignored.
            question: The asker's message of the run.
            title: 1 to 200 characters.
            limits: Where there is no place the run is kept `queued`. None keeps it `queued` in any
                case: it waits until it is adopted.
            behind: Keep it `queued` behind a live run of the conversation, in place of ThreadBusy.
            history: Messages to return, 0 to 200.
            idempotency: The id of the idempotency record that it answers, deleted with it.

        Raises:
            ConversationNotFound: The run's principal has no such conversation.
            RunNumberTaken: The conversation has begun another run than the one before it.
            ThreadBusy: Another run of the conversation is live; the error names it.
            PausePending: A run of the conversation is paused, neither resumed nor expired.
        """

    async def admit(self, run: Run, *, limits: PlaceLimits) -> bool:
        """Make a queued run `running` if there is a place and no live run before it on its thread.

        Returns:
            Whether it runs now.

        Raises:
            LeaseLost: It has ended, has another owner, or is gone.
            PausePending: A run before it has paused, and is neither resumed nor expired.
        """

    async def adopt(self, run: Run, *, beat: int, owner: str) -> Run:
        """Give a queued run that nobody works on to a process, and move its counter.

        All in one write: of many that try one does, and what was decided of the run by its old
        counter no longer holds. It stays `queued` until it is admitted.

        Args:
            run: As it was read, with the owner that it was kept with.
            beat: The counter as it was read.
            owner: Who works on it from now on.

        Returns:
            The run as it is kept now.

        Raises:
            LeaseLost: It has ended, has another owner or counter, or is gone.
        """

    async def resume(
        self,
        run: Run,
        *,
        paused: str,
        decision: str,
        question: Message,
        limits: PlaceLimits,
        history: int = 0,
        idempotency: str | None = None,
    ) -> Begun:
        """Keep the run that resumes a paused one, which from then on carries `resumed_by`.

        All in one write: a decision is never kept without a run that carries it out. Also taken
        where the run that resumed it before has failed, been cancelled or timed out, is the
        conversation's newest, and had the same decision: then that one is resumed again. A pause
        that is resolved or expired is told before a stale number.

        Args:
            run: Its `resumes` is `paused`, its `turn_id` and `project_id` the paused run's.
            paused: The id of the paused run.
            decision: The asker's answer.
            question: The turn's question, with the answer in parentheses.
            limits: As for `begin`.
            history: As for `begin`.
            idempotency: As for `begin`.

        Raises:
            RunNotFound: The run's principal has no such paused run.
            RunNumberTaken: As for `begin`.
            NothingPending: The run is not a paused one.
            PauseResolved: It carries `resumed_by` already; the error names that run.
            PauseExpired: It has expired.
        """

    async def append(
        self, run: Run, *, beat: int, entries: Sequence[Entry], expires_at: datetime
    ) -> Appended:
        """Keep the next entries of the journal and move the counter; none only moves it.

        A write whose answer was lost may be tried again with the same `beat`, with more entries
        too: what is kept already is not kept twice.

        Args:
            run: As `begin` returned it.
            beat: The counter as the last write told it; at first the run's own.
            entries: Following the last kept one by id; no terminator. Any size: what is over the
                store's limits is split.
            expires_at: After it the journal may be removed.

        Raises:
            LeaseLost: It has ended, has another owner or counter, or is gone. Nothing was kept.
        """

    async def is_cancelled(self, run: Run, *, beat: int) -> bool:
        """Tell if somebody asked to stop the run; cheaper than an empty `append`.

        Raises:
            LeaseLost: It has ended, has another owner, or is gone.
        """

    async def end(
        self,
        run: Run,
        *,
        beat: int,
        state: RunState,
        terminator: Terminator,
        entries: Sequence[Entry],
        event_id: int,
        answer: Message,
        at: datetime,
        expires_at: datetime,
    ) -> Run:
        """Keep the last entries, the terminator and the assistant message in one write.

        It frees the conversation and the run's place. The first end wins: if the run has ended,
        nothing is written.

        Args:
            run: As `begin` returned it.
            beat: As for `append`.
            state: The end that goes with the terminator.
            terminator: The one event that ends it.
            entries: Those that no `append` kept, in order.
            event_id: The terminator's.
            answer: The assistant message.
            at: When.
            expires_at: After it the journal may be removed.

        Returns:
            The run as it is kept: with this terminator, or with the one that came first.

        Raises:
            RunNotFound: The run or its conversation was deleted meanwhile; nothing is written.
            LeaseLost: It is live and has another owner or counter; nothing is written.
        """

    async def request_cancel(self, run_id: str, *, principal: Principal) -> Run:
        """Ask the owner of a live run to stop; on a run that has ended it changes nothing.

        Returns:
            The run as it stands now.

        Raises:
            RunNotFound: The principal has none of this id.
        """

    async def get(self, run_id: str, *, principal: Principal) -> Run:
        """Return one run.

        Raises:
            RunNotFound: The principal has none of this id.
        """

    async def list_for(
        self, conversation_id: str, *, principal: Principal, cursor: str | None, limit: int
    ) -> Page[Run]:
        """List a conversation's runs, newest first; `limit` is 1 to 200.

        Raises:
            ConversationNotFound: The principal has none of this id.
            ValidationFailed: The cursor is not one of this list's.
        """

    async def entries(self, run: Run, *, after: int, limit: int = 2_000) -> Kept:
        """Return the entries of a run with ids above `after`, in order, at most about `limit`.

        Raises:
            RunNotFound: It was deleted.
            JournalExpired: The run has ended and its journal was removed, in part or whole.
        """

    async def live(self) -> Mapping[tuple[str, str], int]:
        """Return the counter of every live run of every tenant, by (tenant, run id)."""

    async def read_dead(self, run_id: str, *, tenant: str) -> Run | None:
        """Return a run of any subject, for who ends it; None if it is gone."""

    async def try_write(self, run_id: str, *, tenant: str) -> None:
        """Write where the run's counter is written, and change nothing; the run may be gone.

        That it returns says that writes went through just then, its owner's too.
        """

    async def end_dead(
        self,
        run: Run,
        *,
        terminator: Terminator,
        event_id: int,
        answer: Message,
        at: datetime,
        expires_at: datetime,
    ) -> bool:
        """End a live run as `failed` if its counter still is `run.beat`; say if this call did.

        From then on its owner can neither keep an entry nor end it.

        Args:
            run: As it was read when its counter had not moved for a term.
            terminator: A Failed that tells what is kept.
            event_id: Above any that the owner can have shown.
            answer: Holds the tokens that are kept.
            at: When.
            expires_at: After it the journal may be removed.
        """

    async def due_pauses(self, now: datetime, *, limit: int = 100) -> Sequence[Run]:
        """Return paused runs of every tenant whose time is over, not yet expired or resumed."""

    async def expire(self, run: Run) -> bool:
        """Make a paused run `expired` unless it was resumed; say if it is expired now."""

    async def purge(self, now: datetime, *, limit: int = 1_000) -> int:
        """Remove what its retention is over of; return how many rows or journals.

        A store that does so by itself has nothing to do.
        """
