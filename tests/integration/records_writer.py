"""A process of its own that writes to an app store: it says what was acknowledged, line by line.

python -m tests.integration.records_writer FILE NAME TURNS
"""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from ibid.adapters.sqlite.records import SqliteRecords
from ibid.domain.errors import RunNumberTaken
from tests.contract.run_steps import append, begin, end, numbered, some_events
from tests.fakes.samples import a_conversation, a_project, a_run


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def _write(path: Path, name: str, turns: int) -> None:
    records = await SqliteRecords.open(path, busy_s=30)
    await records.projects.create(a_project(name))
    await records.conversations.create(a_conversation(name, project_id=name))
    _say("ready")
    await asyncio.to_thread(sys.stdin.readline)
    for number in range(1, turns + 1):
        run = a_run(number, conversation_id=name)
        await begin(records, run)
        await append(records, run, 0, numbered(some_events(run.id)))
        await end(records, run, beat=1, event_id=4)
        _say(run.id)
    shared = replace(a_run(conversation_id="shared"), lease_owner=name)
    try:
        await begin(records, shared)
    except RunNumberTaken:
        _say("lost")
    else:
        _say(f"won {name}")
    await records.close()


if __name__ == "__main__":
    asyncio.run(_write(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
