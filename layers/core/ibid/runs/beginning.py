"""How a run comes to be: its number, its question, and what is done where the thread is busy."""

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from ibid.domain.conversations import IN_QUEUE, Conversation, Message, Run, RunState, run_id
from ibid.domain.errors import (
    PausePending,
    Refused,
    RunNotFound,
    RunNumberTaken,
    StoreUnavailable,
    ThreadBusy,
)
from ibid.domain.events import Paused
from ibid.domain.principals import Principal
from ibid.ports.clock import Clock
from ibid.ports.conversations import ConversationStore
from ibid.ports.runs import Begun, RunStore
from ibid.runs.history import MESSAGES_READ
from ibid.runs.journal import Journal
from ibid.runs.keeping import Keeper
from ibid.runs.limits import RunLimits
from ibid.runs.line import Line
from ibid.runs.transcript import Transcript
from ibid.runs.turns import NewResumption, NewTurn

_TITLE_CHARACTERS = 200
_TRIES = 50  # each lost to another run that has begun on the thread

Write = Callable[[Run, Message], Coroutine[None, None, Begun]]
Interrupt = Callable[[ThreadBusy, Principal], Coroutine[None, None, None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A run that is to begin, but for its number.

    Attributes:
        turn_id: None for a turn of its own.
        resumes: The paused run that it resumes.
        waits: It is for whoever adopts it.
    """

    request: NewTurn | NewResumption
    project_id: str
    graph: str
    question: str
    turn_id: str | None = None
    resumes: str | None = None
    waits: bool = False


class Beginning:
    """Keeps new runs.

    Args:
        conversations: They know the number of their newest run.
        runs: Where runs are kept.
        clock: For the records.
        limits: How many may run at once.
        owner: This process.
        keeper: Ends a run that may have begun though nobody can work on it.
        line: The runs of this process that wait for a place.
        interrupt: Stops the run that a thread is busy with, and waits for its end.

    Attributes:
        writing: The writes that are under way.
    """

    def __init__(
        self,
        *,
        conversations: ConversationStore,
        runs: RunStore,
        clock: Clock,
        limits: RunLimits,
        owner: str,
        keeper: Keeper,
        line: Line,
        interrupt: Interrupt,
    ) -> None:
        self._conversations = conversations
        self._runs = runs
        self._clock = clock
        self._limits = limits
        self._owner = owner
        self._keeper = keeper
        self._line = line
        self._interrupt = interrupt
        self.writing: set[asyncio.Task[Begun]] = set()

    async def turn(self, turn: NewTurn, *, waits: bool = False) -> Begun:
        """Keep the run of a new turn.

        Args:
            turn: Admitted already.
            waits: Keep it `queued`, for whoever adopts it, in place of this process.

        Raises:
            ThreadBusy: Another run of the conversation is live.
            PausePending: The conversation's last run waits for an answer.
            ConversationNotFound: It was deleted meanwhile.
            StoreUnavailable: The run can't be kept.
        """

        async def write(run: Run, question: Message) -> Begun:
            return await self._runs.begin(
                run,
                question=question,
                title=turn.question[:_TITLE_CHARACTERS],
                limits=None if waits else self._line.places_for(turn.principal),
                behind=turn.strategy == "enqueue",
                history=0 if waits else MESSAGES_READ,
                idempotency=turn.idempotency,
            )

        wanted = Wanted(
            request=turn,
            project_id=turn.conversation.project_id,
            graph=turn.graph,
            question=turn.question,
            waits=waits,
        )
        return await self._begin(wanted, write, may_interrupt=turn.strategy == "interrupt")

    async def resumption(self, resumption: NewResumption) -> Begun:
        """Keep the run that carries a decision out: the one point where it is decided.

        Raises:
            RunNotFound: The paused run is gone.
            NothingPending: It does not wait.
            PauseResolved: Another decision came first.
            PauseExpired: Its time is over.
            StoreUnavailable: The run can't be kept.
        """
        paused = resumption.paused

        async def write(run: Run, question: Message) -> Begun:
            return await self._runs.resume(
                run,
                paused=paused.id,
                decision=resumption.answer,
                question=question,
                limits=self._line.places_for(resumption.principal),
                history=MESSAGES_READ,
                idempotency=resumption.idempotency,
            )

        wanted = Wanted(
            request=resumption,
            project_id=paused.project_id,
            graph=paused.graph,
            question=f"{resumption.question} ({resumption.answer})",
            turn_id=paused.turn_id,
            resumes=paused.id,
        )
        return await self._begin(wanted, write, may_interrupt=False)

    async def _begin(self, wanted: Wanted, write: Write, *, may_interrupt: bool) -> Begun:
        request = wanted.request
        conversation = request.conversation
        for _ in range(_TRIES):
            run = self._new_run(wanted, conversation)
            if request.planned is not None:
                await request.planned(run.id)
            try:
                return await self._keep(run, wanted.question, write)
            except RunNumberTaken:
                pass
            except PausePending as pending:
                if not await self._is_over(pending, wanted):
                    raise
            except ThreadBusy as busy:
                if not may_interrupt:
                    raise
                await self._interrupt(busy, request.principal)
            conversation = await self._conversations.get(
                conversation.id, principal=request.principal
            )
        raise StoreUnavailable("too many other runs have begun on the thread")

    async def _is_over(self, pending: PausePending, wanted: Wanted) -> bool:
        """Say if nobody can answer a pause any more; one whose time is over expires."""
        try:
            paused = await self._runs.get(pending.run_id, principal=wanted.request.principal)
        except RunNotFound:  # deleted meanwhile, with its conversation
            return True
        pause = paused.terminator
        if isinstance(pause, Paused) and pause.expires_at <= self._clock.now():
            await self._runs.expire(paused)
            return True
        return False

    def _new_run(self, wanted: Wanted, conversation: Conversation) -> Run:
        number = conversation.runs_begun + 1
        new_id = run_id(conversation.id, number)
        owner = IN_QUEUE if wanted.waits else f"{self._owner}/"
        return Run(
            tenant=wanted.request.principal.tenant,
            subject=wanted.request.principal.subject,
            id=new_id,
            number=number,
            conversation_id=conversation.id,
            project_id=wanted.project_id,
            graph=wanted.graph,
            turn_id=wanted.turn_id or new_id,
            resumes=wanted.resumes,
            message_id=wanted.request.message_id or uuid.uuid4().hex,
            state=RunState.QUEUED,
            # an earlier try of this process may yet be kept under the same id: not the same run
            lease_owner=owner + uuid.uuid4().hex[:12],
            beat=0,
            created_at=self._clock.now(),
        )

    async def _keep(self, run: Run, question: str, write: Write) -> Begun:
        message = Message(
            id=uuid.uuid4().hex,
            conversation_id=run.conversation_id,
            run_id=run.id,
            role="user",
            content=question,
            created_at=run.created_at,
        )
        writing = asyncio.create_task(write(run, message))
        self.writing.add(writing)
        writing.add_done_callback(self.writing.discard)
        try:
            return await asyncio.shield(writing)
        except (Refused, RunNumberTaken):  # for certain nothing was kept
            raise
        except BaseException as error:
            # it may have been kept, or may yet be: nobody will work on it, so it ends
            transcript = Transcript()
            journal = Journal(
                run, transcript, runs=self._runs, clock=self._clock, limits=self._limits
            )
            self._keeper.owe(journal, self._keeper.end(run, transcript, error), after=writing)
            raise
