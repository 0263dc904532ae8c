"""Runs that wait in a queue: handed to it, taken from it, and ended while nobody has them.

A queue delivers a ticket once or more often, so it decides nothing. The store does: of many that
would take a run one adopts it, by the write that makes it the owner, and a run has one owner that
works on it in all its life. A ticket that comes again finds that the run waits no more.

Between the run's begin and its ticket's way into the queue the process may die, and then nobody
would ever take the run. So its counter, which stands at 0, is moved once the ticket is in the
queue: a run at 0 is as dead as any other whose counter does not move.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from ibid.domain.conversations import Message, Run
from ibid.domain.errors import (
    ConversationNotFound,
    LeaseLost,
    Refused,
    RunNotFound,
    Unavailable,
)
from ibid.domain.events import Failed
from ibid.domain.principals import Principal
from ibid.domain.tickets import RunTicket
from ibid.ports.clock import Clock
from ibid.ports.conversations import ConversationStore
from ibid.ports.queue import RunQueue
from ibid.ports.runs import RunStore
from ibid.runs.history import generation_of
from ibid.runs.journal import Journal
from ibid.runs.keeping import Keeper
from ibid.runs.limits import RunLimits
from ibid.runs.terminator import Ending, Stop
from ibid.runs.transcript import Transcript
from ibid.runs.turns import NewTurn, Work, WorkFor

logger = logging.getLogger(__name__)

_NEWEST, _PAGE = 20, 200  # messages among which a question is looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A run that this process has adopted, `queued` still, and what it needs to work on it."""

    run: Run
    turn: NewTurn
    work: Work


class Waiting:
    """Hands runs to queues and takes them from there.

    Args:
        conversations: Where the questions are.
        runs: Where runs are kept.
        clock: For the records.
        limits: How long to try.
        keeper: Keeps ends.
    """

    def __init__(
        self,
        *,
        conversations: ConversationStore,
        runs: RunStore,
        clock: Clock,
        limits: RunLimits,
        keeper: Keeper,
    ) -> None:
        self._conversations = conversations
        self._runs = runs
        self._clock = clock
        self._limits = limits
        self._keeper = keeper

    async def hand_over(self, run: Run, turn: NewTurn, queue: RunQueue) -> Run:
        """Send a run's ticket; if that fails the run ends so.

        Returns:
            The run as it waits now, or waited until somebody took it.

        Raises:
            QueueUnavailable: Nobody has the ticket, or nobody can use it any more.
        """
        ticket = RunTicket(
            tenant=run.tenant,
            subject=run.subject,
            run_id=run.id,
            style=turn.style,
            path_prefix=turn.path_prefix,
            reply_language=turn.reply_language,
            is_behind=turn.strategy == "enqueue",
        )
        try:
            await queue.send(ticket)
            run = await self._confirmed(run)
        except Exception as error:
            if not await self._is_adopted(run, error):
                raise
        except asyncio.CancelledError as error:
            self._keeper.owe(self._journal(run), self._keeper.end(run, Transcript(), error))
            raise
        logger.info("run_enqueued", extra={"run_id": run.id, "project_id": run.project_id})
        return run

    async def take(
        self, ticket: RunTicket, work_for: WorkFor, *, owner: str, deadline_s: float | None
    ) -> Taken | None:
        """Adopt a run that waits; None where there is nothing to do.

        A run that can't be worked on any more is ended, and says why.

        Raises:
            Unavailable: A store gave no answer; the ticket is to come again.
        """
        principal = ticket.principal
        try:
            run = await self._runs.get(ticket.run_id, principal=principal)
            if not run.is_in_queue:
                return None
            conversation = await self._conversations.get(run.conversation_id, principal=principal)
            question = await self._question(run, principal)
        except (RunNotFound, ConversationNotFound):  # deleted as it waited
            return None
        if run.cancel_requested:
            await self._end(run, Stop.CANCELLED)
            return None
        try:
            project, work = await work_for(run)
            generation_of(project)
        except Refused as error:
            await self._end(run, error)
            return None
        adopt = partial(self._runs.adopt, owner=owner)
        adopted = await self._while_waiting(run, lambda now: adopt(now, beat=now.beat))
        if adopted is None:
            return None
        turn = NewTurn(
            principal=principal,
            conversation=conversation,
            project=project,
            question=question.content,
            style=ticket.style,
            path_prefix=ticket.path_prefix,
            reply_language=ticket.reply_language,
            on_disconnect="continue",
            graph=run.graph,
            strategy="enqueue" if ticket.is_behind else "reject",
            attended=False,
            deadline_s=deadline_s,
        )
        return Taken(run=adopted, turn=turn, work=work)

    async def _is_adopted(self, run: Run, error: Exception) -> bool:
        """End a run whose ticket may be nowhere; True if a worker has it, ticket and all."""
        give_up_at = asyncio.get_running_loop().time() + self._limits.keep_s
        ended = await self._keeper.keep(
            self._journal(run), Transcript(), error, give_up_at=lambda: give_up_at
        )
        end = ended.terminator
        return isinstance(end, Failed) and end.code == LeaseLost.code

    async def _confirmed(self, run: Run) -> Run:
        """Move the counter of a run whose ticket is in the queue; return the run as it is then."""
        until = self._clock.now() + timedelta(seconds=self._limits.journal_s)
        try:
            told = await self._runs.append(run, beat=run.beat, entries=(), expires_at=until)
        except LeaseLost:  # a worker was quicker, or it was cancelled or deleted
            return run
        except Unavailable as error:  # a worker may take it all the same; else it is ended
            extra = {"run_id": run.id, "error": error.code}
            logger.warning("run_ticket_unconfirmed", extra=extra)
            return run
        return replace(run, beat=told.beat)

    async def _end(self, run: Run, ending: Ending) -> None:
        await self._while_waiting(run, lambda now: self._keeper.end_waiting(now, ending))

    async def _while_waiting(self, run: Run, write: Callable[[Run], Awaitable[Run]]) -> Run | None:
        """Write by the counter that a run waits with; None if it is another's, over, or gone.

        The counter may move once since it was read: as the ticket is confirmed that came first.
        """
        principal = Principal(tenant=run.tenant, subject=run.subject)
        while run.is_in_queue:
            beat = run.beat
            try:
                with suppress(LeaseLost):
                    return await write(run)
                run = await self._runs.get(run.id, principal=principal)
            except RunNotFound:
                return None
            if run.beat == beat:
                return None
        return None

    async def _question(self, run: Run, principal: Principal) -> Message:
        """Return the asker's message of a run.

        Raises:
            ConversationNotFound: It is gone.
        """
        async for message in self._messages(run.conversation_id, principal):
            if message.role == "user" and message.run_id == run.id:
                return message
        raise ConversationNotFound(f"the question of run {run.id!r} is gone")

    async def _messages(self, conversation_id: str, principal: Principal) -> AsyncIterator[Message]:
        """Yield the newest messages, where a question mostly is, then all of them."""
        for message in await self._conversations.latest_messages(
            conversation_id, principal=principal, limit=_NEWEST
        ):
            yield message
        cursor: str | None = None
        while True:
            page = await self._conversations.messages(
                conversation_id, principal=principal, cursor=cursor, limit=_PAGE
            )
            for message in page.items:
                yield message
            cursor = page.next_cursor
            if cursor is None:
                return

    def _journal(self, run: Run) -> Journal:
        return Journal(run, Transcript(), runs=self._runs, clock=self._clock, limits=self._limits)
