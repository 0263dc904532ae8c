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
from tests.fakes.ministack import Stack
from tests.integration.run_kill_sweep import Sweep, arguments

pytestmark = pytest.mark.slow

SCRIPTED = ("plain", "pause")
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
    assert not [death for death in deaths if not death["killed"] and death["lost"]]


@pytest.mark.parametrize("dies_at", ["call", "await"])
@pytest.mark.parametrize("deed", SCRIPTED)
def test_a_process_killed_at_any_point_leaves_one_terminator(
    deed: str, dies_at: str, tmp_path: Path
) -> None:
    place = {"path": str(tmp_path / "app.sqlite")}

    deaths = _swept(Sweep(store="sqlite", place=place, deed=deed, dies_at=dies_at))

    _check(deaths, PLACES[deed, dies_at])
    # every kind of end; a sample of the places need not have each among them
    assert sum(death["lost"] for death in deaths) > PLACES[deed, dies_at] // 2
    assert sum(death["cut"] for death in deaths) > 0  # shown and not kept


@pytest.mark.ministack
@pytest.mark.parametrize("dies_at", ["call", "await"])
@pytest.mark.parametrize("deed", SCRIPTED)
async def test_so_does_one_killed_on_dynamodb(deed: str, dies_at: str, ministack_url: str) -> None:
    async with AppTable.opened(ministack_url) as table:
        place = {"url": table.url, "table": table.name}

        deaths = _swept(Sweep(store="dynamodb", place=place, deed=deed, dies_at=dies_at, most=30))

    _check(deaths, 18)


def test_so_does_one_killed_in_the_real_graph_as_it_pauses_and_is_resumed(tmp_path: Path) -> None:
    place = {"path": str(tmp_path / "app.sqlite"), "checkpoints": str(tmp_path / "steps.sqlite")}

    deaths = _swept(Sweep(store="sqlite", place=place, deed="ask", dies_at="await", most=40))

    _check(deaths, 30)


@pytest.mark.ministack
async def test_so_does_one_killed_in_the_real_graph_on_dynamodb(stack: Stack) -> None:
    url = stack.place["client"]["endpoint_url"]
    async with AppTable.opened(url) as table:
        place = {"url": url, "table": table.name}
        place |= {name: stack.place[name] for name in ("checkpoints", "writes")}

        deaths = _swept(Sweep(store="dynamodb", place=place, deed="ask", dies_at="await", most=20))

    _check(deaths, 12)


def test_the_sweep_finds_a_store_that_says_too_early_that_an_end_is_kept(tmp_path: Path) -> None:
    place = {"path": str(tmp_path / "app.sqlite")}
    flaw = "ends are kept late"

    deaths = _swept(Sweep(store="sqlite", place=place, deed="plain", dies_at="call", flaw=flaw))

    found = [death["problem"] for death in deaths if death["problem"]]
    assert found == ["AssertionError: a terminator was shown and not kept"] * len(found)
    assert found
