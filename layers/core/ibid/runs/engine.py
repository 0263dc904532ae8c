"""The runs of one process: start, resume, enqueue, adopt, follow, cancel, watch, drain."""

import asyncio
import logging
import uuid
from collections.abc import Callable, Collection, Iterable
from typing import Any

from ibid.domain.answers import TurnInput
from ibid.domain.conversations import Message, Run, RunState
from ibid.domain.errors import ShuttingDown, ThreadBusy, Unavailable
from ibid.domain.principals import Principal
from ibid.domain.projects import Project
from ibid.domain.tickets import RunTicket
from ibid.ports.clock import Clock
from ibid.ports.conversations import ConversationStore
from ibid.ports.queue import RunQueue
from ibid.ports.runs import Begun, Kept, RunStore
from ibid.runs.beginning import Beginning
from ibid.runs.dead_runs import DeadRuns
from ibid.runs.following import Followed, FollowedElsewhere, FollowedHere
from ibid.runs.history import MESSAGES_READ, generation_of, resumption_input, turn_input
from ibid.runs.keeping import Keeper
from ibid.runs.limits import RunLimits
from ibid.runs.line import Line
from ibid.runs.live_run import Job, LiveRun, Process
from ibid.runs.places import Places
from ibid.runs.stopping import Stopping
from ibid.runs.terminator import Stop
from ibid.runs.turns import NewResumption, NewTurn, Work, WorkFor
from ibid.runs.waiting import Waiting

__all__ = ["LiveRun", "NewResumption", "NewTurn", "RunEngine", "RunLimits", "Work"]

logger = logging.getLogger(__name__)

_LAST_KEEP_S = 0.5  # of a drain: what can't be kept by then is shown as owed
_POLL_S = 0.05

MakeInput = Callable[[Run, Iterable[Message]], TurnInput]


class RunEngine:
    """Starts runs, keeps their leases alive, and ends those of processes that died.

    Args:
        conversations: Where a turn's history is.
        runs: Where runs are kept.
        clock: Monotonic for leases, wall time for records.
        limits: How many, how long.
        owner: This process, as its leases name it: random, made at its start.
    """

    def __init__(
        self,
        *,
        conversations: ConversationStore,
        runs: RunStore,
        clock: Clock,
        limits: RunLimits,
        owner: str,
    ) -> None:
        self._conversations = conversations
        self._runs = runs
        self._limits = limits
        self._keeper = Keeper(runs, clock, limits)
        self._process = Process(
            runs=runs,
            clock=clock,
            limits=limits,
            keeper=self._keeper,
            places=Places(limits.process),
        )
        self._line = Line(runs, limits)
        self._dead = DeadRuns(runs, clock, limits)
        self._observer = self._dead.observer()
        self._beginning = Beginning(
            conversations=conversations,
            runs=runs,
            clock=clock,
            limits=limits,
            owner=owner,
            keeper=self._keeper,
            line=self._line,
            interrupt=self._interrupt,
        )
        self._live: dict[str, LiveRun] = {}
        self._stopping = Stopping(
            self._live, runs=runs, dead=self._dead, keeper=self._keeper, limits=limits
        )
        self._waiting = Waiting(
            conversations=conversations,
            runs=runs,
            clock=clock,
            limits=limits,
            keeper=self._keeper,
        )
        self._owner = owner
        self._is_draining = False

    async def start(self, turn: NewTurn, work: Work) -> LiveRun:
        """Keep the run and the question, and set the work going.

        Args:
            turn: Admitted already.
            work: Called once, with the turn's input; closed in the end, whatever happens.

        Raises:
            ThreadBusy: Another run of the conversation is live, and was not stopped in time if
                it was to be.
            PausePending: The conversation's last run waits for an answer.
            ShuttingDown: `drain` was called.
            ConversationNotFound: It was deleted meanwhile.
            ProjectNotReady: The project has no generation that can be searched.
            StoreUnavailable: The run can't be kept.
        """
        self._check_may_start(turn.project)
        begun = await self._beginning.turn(turn)
        return self._set_going(
            turn, begun, work, lambda run, messages: turn_input(turn, run, messages)
        )

    async def resume(self, resumption: NewResumption, work: Work) -> LiveRun:
        """Keep a decision with the run that carries it out, and set the work going.

        Raises:
            RunNotFound: The paused run is gone.
            NothingPending: It is no paused run.
            PauseResolved: Another decision came first; the error names the run that goes on.
            PauseExpired: Its time is over.
            ShuttingDown: `drain` was called.
            ProjectNotReady: The project has no generation that can be searched.
            StoreUnavailable: The decision can't be kept.
        """
        self._check_may_start(resumption.project)
        begun = await self._beginning.resumption(resumption)
        return self._set_going(
            resumption,
            begun,
            work,
            lambda run, messages: resumption_input(resumption, run, messages),
        )

    async def enqueue(self, turn: NewTurn, queue: RunQueue) -> Run:
        """Keep the run and the question for whoever adopts it, and hand it to a queue.

        A ticket that can't be handed over ends the run.

        Args:
            turn: Admitted already; nobody reads it here.
            queue: Of the workers.

        Returns:
            The run, `queued`.

        Raises:
            QueueUnavailable: The run has ended so.
            ThreadBusy: As for `start`; so are the others.
        """
        self._check_may_start(turn.project)
        begun = await self._beginning.turn(turn, waits=True)
        return await self._waiting.hand_over(begun.run, turn, queue)

    async def adopt(
        self, ticket: RunTicket, work_for: WorkFor, *, deadline_s: float | None = None
    ) -> LiveRun | None:
        """Take over a run that waits in a queue, and set its work going.

        Args:
            ticket: May have come before, here or elsewhere.
            work_for: Called once if the run waits; what it refuses ends the run.
            deadline_s: As in a `NewTurn`.

        Returns:
            None where there is nothing to do: the run has ended or is gone, or a process has it,
            alive or dead. A dead one's is ended as any other dead run, and never done twice.

        Raises:
            ShuttingDown: `drain` was called.
            Unavailable: A store gave no answer; the ticket is to come again.
        """
        self._check_not_draining()
        owner = f"{self._owner}/{uuid.uuid4().hex[:12]}"
        taken = await self._waiting.take(ticket, work_for, owner=owner, deadline_s=deadline_s)
        if taken is None:
            return None
        turn = taken.turn
        return self._set_going(
            turn,
            Begun(run=taken.run, messages=()),
            taken.work,
            lambda run, messages: turn_input(turn, run, messages),
        )

    async def follow(self, run_id: str, *, principal: Principal, after: int = 0) -> Followed:
        """Find what a run has shown and will show, wherever it runs.

        Args:
            run_id: Which.
            principal: Whose; nobody else's is found.
            after: The id of the last event that is known, 0 for none.

        Raises:
            RunNotFound: The principal has none of this id.
            JournalExpired: It has ended, and its events are not kept any more.
            StoreUnavailable: The store gave no answer.
        """
        live = self._stopping.own(run_id, principal)
        if live is not None:
            return FollowedHere(live, after=after)
        run = await self._runs.get(run_id, principal=principal)
        if run.terminator is not None and after >= run.last_event_id:
            part = Kept(entries=(), run=run, has_more=False)
        else:
            part = await self._runs.entries(run, after=after)
        return FollowedElsewhere(
            part, after=after, runs=self._runs, dead=self._dead, limits=self._limits
        )

    async def cancel_run(self, run_id: str, *, principal: Principal) -> Run:
        """Stop a run: one of this process at once, another's within a second or so.

        A paused run that nobody has answered expires. A run that has ended stays as it is.

        Returns:
            The run as it stands now.

        Raises:
            RunNotFound: The principal has none of this id.
            StoreUnavailable: The store gave no answer.
        """
        return await self._stopping.run(run_id, principal=principal)

    async def cancel(
        self, *, tenant: str, conversation_id: str | None = None, project_id: str | None = None
    ) -> None:
        """Cancel the runs of a conversation or of a project in every process, and await their ends.

        A run that does not end within a lease's term and a little is left to its fence: once its
        conversation is deleted it can keep nothing.

        Args:
            tenant: Whose.
            conversation_id: None means any.
            project_id: None means any.

        Raises:
            StoreUnavailable: The store gave no answer.
        """
        await self._stopping.runs_of(
            tenant=tenant, conversation_id=conversation_id, project_id=project_id
        )

    async def drain(self, timeout_s: float) -> bool:
        """Start no run any more, stop those that run, and wait until all ends are kept.

        Args:
            timeout_s: Seconds for all of it; ends that can't be kept by then are shown as such.

        Returns:
            Whether every end was kept.
        """
        self._is_draining = True
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + timeout_s
        while True:
            for live in self._live.values():
                live.hurry(give_up_at - _LAST_KEEP_S)
                live.stop(Stop.SHUTTING_DOWN)
            pending = self._pending()
            left_s = give_up_at - loop.time()
            if not pending or left_s <= 0:
                return not pending
            await asyncio.wait(pending, timeout=min(left_s, _POLL_S))

    async def watch(self) -> None:
        """Beat and look for ever; cancel it to stop. A store that is away is tried again later."""
        while True:
            try:
                await self.look()
            except Unavailable as error:
                self._observer.forget()
                logger.warning("run_watch_failed", extra={"error": error.code})
            except Exception as error:  # noqa: BLE001 - an edge: a watch that ends is never missed
                logger.error("run_watch_failed", extra={"error": type(error).__name__})
            await asyncio.sleep(self._limits.beat_s)

    async def look(self) -> None:
        """See to it that this process's runs beat, and end the dead ones of others.

        Raises:
            StoreUnavailable: The store gave no answer.
        """
        await asyncio.gather(*(live.keep_alive() for live in self._live.values()))
        counters = await self._runs.live()
        ours = {(live.run.tenant, live.run.id) for live in self._live.values()}
        others = {key: beat for key, beat in counters.items() if key not in ours}
        dead = await self._observer.look(others)
        ended = await self._dead.end_all(dead)
        for key, _ in dead:
            if key not in ended:
                self._observer.watch_again(key)

    def _check_may_start(self, project: Project) -> None:
        self._check_not_draining()
        generation_of(project)

    def _check_not_draining(self) -> None:
        if self._is_draining:
            raise ShuttingDown("the server is stopping")

    def _set_going(
        self, request: NewTurn | NewResumption, begun: Begun, work: Work, make: MakeInput
    ) -> LiveRun:
        run = begun.run
        is_behind = isinstance(request, NewTurn) and request.strategy == "enqueue"

        async def prepare() -> TurnInput:
            messages = begun.messages
            if run.state is RunState.QUEUED:  # others may have ended meanwhile
                messages = await self._conversations.latest_messages(
                    run.conversation_id, principal=request.principal, limit=MESSAGES_READ
                )
            return make(run, messages)

        job = Job(
            admitted=lambda waits: self._line.admitted(run, is_behind=is_behind, waits=waits),
            prepare=prepare,
            work=work,
            on_disconnect=request.on_disconnect,
            attended=request.attended,
            timeout_s=self._timeout_s(request.deadline_s),
        )
        live = LiveRun(run, job, self._process)
        self._live[run.id] = live
        live.ended.add_done_callback(lambda _: self._forget(run.id))
        logger.info("run_started", extra={"run_id": run.id, "project_id": run.project_id})
        if self._is_draining:
            live.stop(Stop.SHUTTING_DOWN)
        return live

    def _timeout_s(self, deadline_s: float | None) -> float:
        if deadline_s is None:
            return self._limits.run_timeout_s
        return min(self._limits.run_timeout_s, max(deadline_s - self._limits.margin_s, 0.0))

    async def _interrupt(self, busy: ThreadBusy, principal: Principal) -> None:
        """Stop the run that a thread is busy with, and wait for its end.

        Raises:
            ThreadBusy: It did not end in time.
            ShuttingDown: This process is to start no run any more.
        """
        await self._stopping.busy(busy, principal=principal)
        self._check_not_draining()

    def _forget(self, run_id: str) -> None:
        """Drop an ended run; one whose end is owed keeps its lease until that is paid."""
        self._line.wake()
        if owed := self._keeper.owed.get(run_id):
            owed.add_done_callback(lambda _: self._drop(run_id))
        else:
            self._drop(run_id)

    def _drop(self, run_id: str) -> None:
        live = self._live.pop(run_id, None)
        if live is not None:
            live.journal.close()

    def _pending(self) -> Collection["asyncio.Future[Any]"]:
        ends = [live.ended for live in self._live.values()]
        futures: list[asyncio.Future[Any]] = [
            *self._beginning.writing,
            *self._keeper.owed.values(),
            *ends,
        ]
        return [future for future in futures if not future.done()]
