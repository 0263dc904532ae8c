"""A process is killed at any point of a turn: its run ends once, and its thread goes on.

What one sweep does, and what it checks after each death, is in `run_kill_sweep`.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.app_table import AppTable
from tests.integration.run_kill_sweep import DEEDS, Sweep, arguments

pytestmark = pytest.mark.slow

PLACES = {  # to die at, at least
    ("plain", "call"): 20,
    ("plain", "await"): 20,
    ("pause", "call"): 25,
    ("pause", "await"): 35,
}


def _swept(sweep: Sweep) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, *arguments(sweep)], capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _check(deaths: list[dict[str, Any]], at_least: int) -> None:
    assert [death for death in deaths if death["problem"]] == []
    killed = [death for death in deaths if death["killed"]]
    assert len(killed) >= at_least
    assert sum(death["lost"] for death in killed) > at_least // 2  # the others had ended in time
    assert sum(death["cut"] for death in killed) > 0
    assert not [death for death in deaths if not death["killed"] and death["lost"]]


@pytest.mark.parametrize("dies_at", ["call", "await"])
@pytest.mark.parametrize("deed", DEEDS)
def test_a_process_killed_at_any_point_leaves_one_terminator(
    deed: str, dies_at: str, tmp_path: Path
) -> None:
    place = {"path": str(tmp_path / "app.sqlite")}

    deaths = _swept(Sweep(store="sqlite", place=place, deed=deed, dies_at=dies_at))

    _check(deaths, PLACES[deed, dies_at])


@pytest.mark.ministack
@pytest.mark.parametrize("dies_at", ["call", "await"])
@pytest.mark.parametrize("deed", DEEDS)
async def test_so_does_one_killed_on_dynamodb(deed: str, dies_at: str, ministack_url: str) -> None:
    async with AppTable.opened(ministack_url) as table:
        place = {"url": table.url, "table": table.name}

        deaths = _swept(Sweep(store="dynamodb", place=place, deed=deed, dies_at=dies_at, most=30))

    _check(deaths, 18)
