"""A server or a worker is killed at any point of a background run that goes through a queue.

What one sweep does, and what it checks after each death, is in `queue_kill_sweep`: one key begins
one run, which is worked on once at most, ends once, and leaves a thread that goes on.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.app_table import AppTable
from tests.integration.queue_kill_sweep import DEED, arguments
from tests.integration.run_kill_sweep import Sweep

pytestmark = pytest.mark.slow


def _swept(store: str, place: dict[str, str], dies_at: str, **more: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - a Sweep's
    sweep = Sweep(store=store, place=place, deed=DEED, dies_at=dies_at, **more)
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
def test_a_background_run_whose_process_was_killed_at_any_point_is_done_or_ended_once(
    dies_at: str, tmp_path: Path
) -> None:
    deaths = _swept("sqlite", {"path": str(tmp_path / "app.sqlite")}, dies_at)

    _check(deaths, 35)
    # every kind of end; a sample of the places need not have each among them
    killed = [death for death in deaths if death["killed"]]
    assert sum(death["lost"] for death in killed) >= 7
    assert sum(not death["lost"] for death in killed) >= 7  # others have taken it, or begun it
    assert sum(death["shown"] for death in killed) > 0


@pytest.mark.ministack
@pytest.mark.parametrize("dies_at", ["call", "await"])
async def test_so_is_one_on_dynamodb(dies_at: str, ministack_url: str) -> None:
    async with AppTable.opened(ministack_url) as table:
        place = {"url": table.url, "table": table.name}

        deaths = _swept("dynamodb", place, dies_at, most=40)

    _check(deaths, 25)


def test_the_sweep_finds_a_store_whose_adoptions_are_not_fenced(tmp_path: Path) -> None:
    place = {"path": str(tmp_path / "app.sqlite")}

    deaths = _swept("sqlite", place, "call", flaw="adoptions are not fenced")

    assert [death for death in deaths if "worked on 2 times" in (death["problem"] or "")]
