"""The runs of one process: start, watch, stop, drain."""

import asyncio
import logging
import uuid
from collections.abc import Collection
from functools import partial

from ibid.domain.conversations import Message, Run, RunState
from ibid.domain.errors import LeaseLost, ProjectNotReady, Refused, ShuttingDown, Unavailable
from ibid.ports.clock import Clock
from ibid.ports.conversations import ConversationStore
from ibid.ports.runs import RunStore
from ibid.runs.history import turn_input
from ibid.runs.keeping import Keeper
from ibid.runs.leases import LeaseObserver
from ibid.runs.limits import RunLimits
from ibid.runs.live_run import LiveRun
from ibid.runs.places import Place, Places
from ibid.runs.stages import live_state
from ibid.runs.terminator import Stop, terminator
from ibid.runs.transcript import Transcript
from ibid.runs.turns import NewTurn, Work

__all__ = ["LOST_EVENT_ID", "LiveRun", "NewTurn", "RunEngine", "RunLimits", "Work"]

logger = logging.getLogger(__name__)

LOST_EVENT_ID = 1_000_000_000
"""The terminator's id where the process died: above any id that a run can have shown."""

_TITLE_CHARACTERS = 200
_LAST_KEEP_S = 0.5  # of a drain: what can't be kept by then is shown as owed
_POLL_S = 0.05


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
        self._clock = clock
        self._limits = limits
        self._owner = owner
        self._keeper = Keeper(runs, clock)
        self._places = Places(limits)
        self._observer = LeaseObserver(clock, limits)
        self._live: dict[str, LiveRun] = {}
        self._beginning: set[asyncio.Task[None]] = set()
        self._is_draining = False

    async def start(self, turn: NewTurn, work: Work) -> LiveRun:
        """Keep the run and the question, and set the work going.

        Args:
            turn: Admitted already.
            work: Called once, with the turn's input; closed in the end, whatever happens.

        Raises:
            ThreadBusy: Another run of the conversation is live.
            ShuttingDown: `drain` was called.
            ConversationNotFound: It was deleted meanwhile.
            ProjectNotReady: The project has no generation that can be searched.
            StoreUnavailable: The run can't be kept.
        """
        if self._is_draining:
            raise ShuttingDown("the server is stopping")
        if turn.project.active_generation is None:
            msg = f"project {turn.project.id!r} has nothing that can be searched yet"
            raise ProjectNotReady(msg)
        place = self._places.claim(turn.principal)
        run = self._new_run(turn, place)
        try:
            await self._begin(run, turn.question)
        except BaseException:
            place.free()
            raise
        live = LiveRun(
            run,
            prepare=partial(turn_input, turn, self._conversations),
            work=work,
            announce=partial(self._beat, run, RunState.RUNNING),
            place=place,
            keeper=self._keeper,
            limits=self._limits,
            on_disconnect=turn.on_disconnect,
        )
        self._live[run.id] = live
        live.ended.add_done_callback(lambda _: self._forget(run.id))
        logger.info("run_started", extra={"run_id": run.id, "project_id": run.project_id})
        if self._is_draining:
            live.stop(Stop.SHUTTING_DOWN)
        return live

    async def cancel(
        self, *, tenant: str, conversation_id: str | None = None, project_id: str | None = None
    ) -> None:
        """Cancel this process's runs of a conversation or of a project, and wait for their ends.

        Args:
            tenant: Whose.
            conversation_id: None means any.
            project_id: None means any.
        """
        chosen = [
            live
            for live in self._live.values()
            if live.run.tenant == tenant
            and conversation_id in {None, live.run.conversation_id}
            and project_id in {None, live.run.project_id}
        ]
        for live in chosen:
            live.stop(Stop.CANCELLED)
        for live in chosen:
            await live.wait_ended()

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
                logger.warning("run_watch_failed", extra={"error": error.code})
            await asyncio.sleep(self._limits.beat_s)

    async def look(self) -> None:
        """Beat every run of this process once, and end the dead ones of others.

        Raises:
            StoreUnavailable: The store gave no answer.
        """
        await asyncio.gather(*(self._keep_alive(live) for live in self._live.values()))
        counters = await self._runs.live()
        ours = {(live.run.tenant, live.run.id) for live in self._live.values()}
        others = {key: beat for key, beat in counters.items() if key not in ours}
        for (tenant, run_id), beat in self._observer.look(others):
            await self._end_dead(tenant, run_id, beat)

    def _new_run(self, turn: NewTurn, place: Place) -> Run:
        return Run(
            tenant=turn.principal.tenant,
            subject=turn.principal.subject,
            id=uuid.uuid4().hex,
            conversation_id=turn.conversation.id,
            project_id=turn.project.id,
            message_id=uuid.uuid4().hex,
            state=RunState.RUNNING if place.is_taken else RunState.QUEUED,
            lease_owner=self._owner,
            beat=0,
            created_at=self._clock.now(),
        )

    async def _begin(self, run: Run, question: str) -> None:
        message = Message(
            id=uuid.uuid4().hex,
            conversation_id=run.conversation_id,
            run_id=run.id,
            role="user",
            content=question,
            created_at=run.created_at,
        )
        title = question[:_TITLE_CHARACTERS]
        writing = asyncio.create_task(self._write_begin(run, message, title))
        self._beginning.add(writing)
        writing.add_done_callback(self._beginning.discard)
        try:
            await asyncio.shield(writing)
        except Refused:  # for certain nothing was kept
            raise
        except BaseException as error:
            # it may have been kept, or may yet be: nobody will work on it, so it ends
            end = self._keeper.end(run, Transcript(), error)
            self._keeper.owe(run, end, after=writing)
            raise

    async def _write_begin(self, run: Run, message: Message, title: str) -> None:
        await self._runs.begin(run, question=message, title=title)

    def _forget(self, run_id: str) -> None:
        """Drop an ended run; one whose end is owed keeps its lease until that is paid."""
        if owed := self._keeper.owed.get(run_id):
            owed.add_done_callback(lambda _: self._live.pop(run_id, None))
        else:
            self._live.pop(run_id, None)

    def _pending(self) -> Collection["asyncio.Future[None]"]:
        ends = [live.ended for live in self._live.values()]
        futures = [*self._beginning, *self._keeper.owed.values(), *ends]
        return [future for future in futures if not future.done()]

    async def _beat(self, run: Run, state: RunState) -> None:
        await self._runs.beat(run.id, tenant=run.tenant, owner=self._owner, state=state)

    async def _keep_alive(self, live: LiveRun) -> None:
        try:
            await self._beat(live.run, live_state(live.stage))
        except LeaseLost:
            live.stop(Stop.LEASE_LOST)  # nothing if it has just ended by itself
        except Unavailable as error:
            extra = {"run_id": live.id, "error": error.code}
            logger.warning("run_beat_failed", extra=extra)

    async def _end_dead(self, tenant: str, run_id: str, beat: int) -> None:
        # without a journal nothing that was shown was kept: a client cuts to id 0
        end = terminator(Stop.PROCESS_DIED, message_id=None, kept_through_id=0)
        now = self._clock.now()
        answer = Message(
            id="",
            conversation_id="",
            run_id=run_id,
            role="assistant",
            content="",
            created_at=now,
            finish_reason=end.finish_reason,
            error_code=Stop.PROCESS_DIED.value[0],
        )
        if await self._runs.end_dead(
            run_id,
            tenant=tenant,
            beat=beat,
            terminator=end,
            event_id=LOST_EVENT_ID,
            answer=answer,
            at=now,
        ):
            logger.warning("run_lost", extra={"run_id": run_id})
