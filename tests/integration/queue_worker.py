"""A worker process that adopts a run, keeps a few tokens of it, says so, and waits to be killed.

python -m tests.integration.queue_worker FILE TICKET
"""

import asyncio
import sys
from pathlib import Path

from ibid.adapters.sqlite.records import SqliteRecords
from ibid.adapters.system_clock import SystemClock
from ibid.domain.conversations import Run
from ibid.domain.events import CitationsFound, TokenDelta
from ibid.domain.projects import Project
from ibid.domain.tickets import RunTicket
from ibid.runs.engine import RunEngine
from ibid.runs.limits import RunLimits
from ibid.runs.turns import Work
from tests.fakes.app import citation, scripted_work

SHOWN = (CitationsFound(citations=[citation()]), TokenDelta(text="It is"))


async def work(file: Path, ticket: RunTicket) -> None:
    records = await SqliteRecords.open(file, busy_s=30.0)
    engine = RunEngine(
        conversations=records.conversations,
        runs=records.runs,
        clock=SystemClock(),
        limits=RunLimits(flush_s=0.0, boundary_s=0.0, beat_s=0.5, term_s=2.0),
        owner="to be killed",
    )

    is_kept = asyncio.Event()

    async def say_so() -> None:
        await is_kept.wait()
        print("ready", flush=True)  # noqa: T201 - the test waits for it
        await asyncio.Event().wait()

    async def work_for(run: Run) -> tuple[Project, Work]:
        project = await records.projects.get(run.project_id, tenant=run.tenant)
        return project, scripted_work(*SHOWN, say_so)

    live = await engine.adopt(ticket, work_for)
    assert live is not None
    deadline = asyncio.get_running_loop().time() + 60
    while live.journal.kept_id < len(SHOWN):
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.01)
    is_kept.set()
    await live.wait_ended()


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1]), RunTicket.from_json(sys.argv[2])))
