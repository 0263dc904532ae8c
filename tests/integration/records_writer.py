"""A process of its own that writes to an app store: it says what was acknowledged, line by line.

python -m tests.integration.records_writer FILE NAME TURNS
"""

import asyncio
import sys
from pathlib import Path

from ibid.adapters.sqlite.records import SqliteRecords
from ibid.domain.conversations import RunState
from ibid.domain.errors import ThreadBusy
from ibid.runs.terminator import terminator
from tests.fakes.samples import (
    NOON,
    a_conversation,
    a_project,
    a_question,
    a_result,
    a_run,
    an_answer,
)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def _write(path: Path, name: str, turns: int) -> None:
    records = await SqliteRecords.open(path, busy_s=30)
    await records.projects.create(a_project(name))
    await records.conversations.create(a_conversation(name, project_id=name))
    _say("ready")
    await asyncio.to_thread(sys.stdin.readline)
    for number in range(turns):
        run = a_run(f"{name}-{number}", conversation_id=name)
        await records.runs.begin(run, question=a_question(run), title="t")
        await records.runs.end(
            run.id,
            tenant=run.tenant,
            owner="me",
            state=RunState.COMPLETED,
            terminator=terminator(a_result(), message_id=run.message_id),
            event_id=5,
            answer=an_answer(run),
            at=NOON,
        )
        _say(run.id)
    shared = a_run(f"{name}-shared", conversation_id="shared")
    try:
        await records.runs.begin(shared, question=a_question(shared), title="t")
    except ThreadBusy as busy:
        _say(f"busy {busy.run_id}")
    else:
        _say(f"won {shared.id}")
    await records.close()


if __name__ == "__main__":
    asyncio.run(_write(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
