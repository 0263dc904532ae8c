"""Stopping runs that somebody wants stopped, in this process and in others."""

import asyncio
from collections.abc import Mapping

from ibid.domain.conversations import LIVE_STATES, Run, RunState, parse_run_id
from ibid.domain.errors import LeaseLost, RunNotFound, ThreadBusy
from ibid.domain.principals import Principal
from ibid.ports.runs import RunStore
from ibid.runs.dead_runs import DeadRuns
from ibid.runs.keeping import Keeper
from ibid.runs.leases import Key
from ibid.runs.limits import RunLimits
from ibid.runs.live_run import LiveRun
from ibid.runs.terminator import Stop


class Stopping:
    """Stops runs of this process at once, and asks other processes to stop theirs.

    Args:
        live: This process's runs by id, as they come and go.
        runs: The runs of all processes.
        dead: Ends the runs of processes that died.
        keeper: Knows whose end is owed.
        limits: The term of a lease.
    """

    def __init__(
        self,
        live: Mapping[str, LiveRun],
        *,
        runs: RunStore,
        dead: DeadRuns,
        keeper: Keeper,
        limits: RunLimits,
    ) -> None:
        self._live = live
        self._runs = runs
        self._dead = dead
        self._keeper = keeper
        self._limits = limits
        # a dead run is found out and ended by then
        self._patience_s = limits.term_s + 2 * limits.beat_s

    def own(self, run_id: str, principal: Principal) -> LiveRun | None:
        """Return a run of this process that is the principal's."""
        live = self._live.get(run_id)
        return live if live is not None and _asker(live.run) == principal else None

    async def run(self, run_id: str, *, principal: Principal) -> Run:
        """Stop one run, or expire it where it has paused; see `RunEngine.cancel_run`."""
        live = self.own(run_id, principal)
        if live is not None:
            live.stop(Stop.CANCELLED)
            await live.wait_ended()
            if live.run.state is not RunState.PAUSED:
                return live.run
        run = await self._cancelled(run_id, principal)
        if run.state is RunState.PAUSED and run.resumed_by is None:
            await self._runs.expire(run)
            run = await self._runs.get(run_id, principal=principal)
        return run

    async def runs_of(
        self, *, tenant: str, conversation_id: str | None, project_id: str | None
    ) -> None:
        """Stop all runs of something and wait for their ends; see `RunEngine.cancel`."""

        def is_meant(run: Run) -> bool:
            return (
                run.tenant == tenant
                and conversation_id in {None, run.conversation_id}
                and project_id in {None, run.project_id}
            )

        chosen = [live for live in self._live.values() if is_meant(live.run)]
        for live in chosen:
            live.stop(Stop.CANCELLED)
        elsewhere: list[Key] = []
        for of, run_id in await self._runs.live():
            name = parse_run_id(run_id)
            is_near = name is None or conversation_id in {None, name[0]}
            if of == tenant and is_near and run_id not in self._live:
                run = await self._runs.read_dead(run_id, tenant=tenant)
                if run is not None and is_meant(run) and await self._request(run):
                    elsewhere.append((tenant, run_id))
        for live in chosen:
            await live.wait_ended()
        if elsewhere:
            await self._dead.wait_ended(elsewhere, timeout_s=self._patience_s)

    async def busy(self, busy: ThreadBusy, *, principal: Principal) -> None:
        """Stop the run that a thread is busy with, and wait for its end.

        Raises:
            ThreadBusy: It did not end in time.
        """
        live = self.own(busy.run_id, principal)
        if live is not None:
            live.stop(Stop.CANCELLED)
            await live.wait_ended()
            if owed := self._keeper.owed.get(busy.run_id):
                await asyncio.wait({owed}, timeout=self._limits.keep_s)
            return
        try:
            run = await self._cancelled(busy.run_id, principal)
        except RunNotFound:
            return
        key = (run.tenant, run.id)
        if not await self._dead.wait_ended([key], timeout_s=self._patience_s):
            raise busy

    async def _cancelled(self, run_id: str, principal: Principal) -> Run:
        """Ask for a run to be stopped; one that waits in a queue is ended, as nobody else would."""
        run = await self._runs.request_cancel(run_id, principal=principal)
        if not run.is_in_queue:
            return run
        try:
            return await self._keeper.end_waiting(run, Stop.CANCELLED)
        except LeaseLost:  # who has adopted it meanwhile is told
            return await self._runs.get(run_id, principal=principal)

    async def _request(self, run: Run) -> bool:
        """Ask another process to stop a run, and say if it is live."""
        try:
            now = await self._cancelled(run.id, _asker(run))
        except RunNotFound:
            return False
        return now.state in LIVE_STATES


def _asker(run: Run) -> Principal:
    return Principal(tenant=run.tenant, subject=run.subject)
