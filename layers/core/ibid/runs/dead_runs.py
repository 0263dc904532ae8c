"""Ending the runs of processes that died, and waiting for the ends of those that live.

A run that waits in a queue has no process, so nothing beats for it, and it is ended only once it
has waited too long. How long that is the observer's wall time decides, against the time that the
run was kept with. Nobody's right to write hangs on that: whoever ends the run does so while its
counter is the one that was seen to stand for a term, whoever adopts it moves the counter, and of
the two the store lets one be first. A clock that goes wrong makes the wait longer or shorter, as
it does for a pause; no two runs come of it. An observer's own monotonic time could not tell: a
sweep watches for no longer than a term.

That is for a run whose ticket is in the queue, which has moved its counter. One whose counter still
stands at its beginning waits for a process to send its ticket, and dies with that process.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence
from datetime import timedelta

from ibid.domain.conversations import LIVE_STATES, Message, Run
from ibid.domain.errors import JournalExpired, RunNotFound, Unavailable
from ibid.domain.events import RESERVED_IDS
from ibid.ports.clock import Clock
from ibid.ports.runs import RunStore
from ibid.runs.leases import Key, LeaseObserver, a_few_at_a_time
from ibid.runs.limits import RunLimits
from ibid.runs.terminator import lost
from ibid.runs.transcript import Transcript

logger = logging.getLogger(__name__)


class DeadRuns:
    """Ends runs whose lease is dead; safe to do from many processes at once.

    Args:
        runs: The runs of all processes.
        clock: For the records, and for watching leases.
        limits: The term of a lease, and how long a journal is kept.
    """

    def __init__(self, runs: RunStore, clock: Clock, limits: RunLimits) -> None:
        self._runs = runs
        self._clock = clock
        self._limits = limits

    def observer(self) -> LeaseObserver:
        """Return a fresh observer of leases."""
        return LeaseObserver(self._clock, self._limits, try_write=self._try_write)

    async def _try_write(self, key: Key) -> None:
        tenant, run_id = key
        await self._runs.try_write(run_id, tenant=tenant)

    async def end(self, run_id: str, *, tenant: str, beat: int) -> bool:
        """End a run whose counter stood at `beat` for a term, and say if this call did.

        What its journal holds is kept as its message. A run whose rows can't be read stays as it
        is: it must not hold up the ends of others.

        Raises:
            StoreUnavailable: The store gave no answer.
        """
        try:
            return await self._end(run_id, tenant=tenant, beat=beat)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - an edge: one damaged run must not stop a watch
            extra = {"run_id": run_id, "error": type(error).__name__}
            logger.error("run_lost_unendable", extra=extra)
            return False

    async def end_all(self, dead: Sequence[tuple[Key, int]]) -> Collection[Key]:
        """End runs as `end` does, a few at a time; return those that this call did end.

        Args:
            dead: As an observer tells them: key and counter of each.

        Raises:
            StoreUnavailable: The store gave no answer; what was ended stays ended.
        """

        async def end(one: tuple[Key, int]) -> bool:
            (tenant, run_id), beat = one
            return await self.end(run_id, tenant=tenant, beat=beat)

        have_ended = await a_few_at_a_time(dead, end)
        return {key for (key, _), has in zip(dead, have_ended, strict=True) if has}

    async def _end(self, run_id: str, *, tenant: str, beat: int) -> bool:
        run = await self._runs.read_dead(run_id, tenant=tenant)
        if run is None or run.state not in LIVE_STATES or run.beat != beat or self.is_early(run):
            return False
        try:
            transcript = await self._kept(run)
        except (RunNotFound, JournalExpired):  # deleted, or ended, as it was read
            return False
        now = self._clock.now()
        event = lost(
            message_id=run.message_id,
            kept_through_id=transcript.last_id,
            was_taken=not _is_waited_for(run),
        )
        answer = Message(
            id=run.message_id,
            conversation_id=run.conversation_id,
            run_id=run.id,
            role="assistant",
            content=transcript.text,
            created_at=now,
            finish_reason=event.finish_reason,
            error_code=event.code,
            citations=transcript.citations,
        )
        has_ended = await self._runs.end_dead(
            run,
            terminator=event,
            event_id=transcript.last_id + RESERVED_IDS + 1,
            answer=answer,
            at=now,
            expires_at=now + timedelta(seconds=self._limits.journal_s),
        )
        if has_ended:
            logger.warning("run_lost", extra={"run_id": run_id})
        return has_ended

    def is_early(self, run: Run) -> bool:
        """Whether a run waits in a queue, may do so still, and nobody wants it stopped."""
        until = run.created_at + timedelta(seconds=self._limits.queue_wait_s)
        return _is_waited_for(run) and not run.cancel_requested and self._clock.now() < until

    async def wait_ended(self, keys: Collection[Key], *, timeout_s: float) -> bool:
        """Wait until runs of other processes have ended or are gone; dead ones are ended.

        Args:
            keys: Tenant and id of each.
            timeout_s: Seconds, by the loop's time.

        Returns:
            Whether all have.

        Raises:
            StoreUnavailable: The store gave no answer.
        """
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + timeout_s
        observer = self.observer()
        pending = set(keys)
        while True:
            live: dict[Key, int] = {}
            for tenant, run_id in pending:
                run = await self._runs.read_dead(run_id, tenant=tenant)
                if run is not None and run.state in LIVE_STATES:
                    live[tenant, run_id] = run.beat
            pending = live.keys() - set(await self.end_all(await observer.look(live)))
            if not pending or loop.time() >= give_up_at:
                return not pending
            await asyncio.sleep(self._limits.poll_s)

    async def _kept(self, run: Run) -> Transcript:
        transcript = Transcript()
        while True:
            part = await self._runs.entries(run, after=transcript.last_id)
            transcript.entries.extend(part.entries)
            if not part.has_more:
                return transcript


def _is_waited_for(run: Run) -> bool:
    """Whether a run's ticket is in a queue."""
    return run.is_in_queue and run.beat > 0
