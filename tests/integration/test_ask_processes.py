"""A turn that asks back outlives the processes that work on it."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.ask_process import KILLED

pytestmark = pytest.mark.timeout(300)  # up to four interpreters, one after the other


async def run(*arguments: object) -> tuple[int, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.integration.ask_process"),
        *map(str, arguments),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true"},
    )
    printed, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, json.loads(printed) if printed else None


async def test_a_pause_is_answered_in_another_process_and_nothing_is_computed_twice(
    tmp_path: Path,
) -> None:
    file = tmp_path / "checkpoints.sqlite"

    _, first = await run(file, "t-1")
    code, second = await run(file, "t-2", first["pause"]["interrupt_id"], "src/data.py")

    assert first["tasks"] == ["classify"]
    assert first["searches"] == 1
    assert code == 0
    assert second["answer"] == "It is [1]."
    assert second["paths"] == ["src/data.py", "docs/guide.md"]
    assert second["tasks"] == ["grade", "answer"]
    assert second["searches"] == 0


async def test_a_process_killed_behind_the_answer_is_followed_by_one_that_goes_on(
    tmp_path: Path,
) -> None:
    file = tmp_path / "checkpoints.sqlite"
    _, first = await run(file, "t-1")
    interrupt_id = first["pause"]["interrupt_id"]

    killed, _ = await run(file, "t-2", interrupt_id, "2", "dies")
    code, third = await run(file, "t-3", interrupt_id, "2")
    again, fourth = await run(file, "t-3", interrupt_id, "2")

    assert killed == KILLED
    assert code == 0
    assert third["tasks"] == ["answer"]
    assert third["searches"] == 0
    assert third["paths"] == ["src/data.py", "docs/guide.md"]
    assert again == 0
    assert fourth["answer"] == third["answer"]
    assert fourth["tasks"] == []
