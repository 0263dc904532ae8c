"""A process ends right after its k-th store call, for every k; a new process goes on."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.contract.saver_graphs import DIAMOND_END, DURABILITIES, PAUSE_END
from tests.fakes.ministack import Stack

pytestmark = pytest.mark.ministack

ENDS = {"diamond": DIAMOND_END, "pausing": PAUSE_END}
CALLS = {  # checkpoints and tasks' writes; a lease adds its taking and its return
    ("diamond", "sync"): 11,
    ("diamond", "async"): 11,
    ("diamond", "exit"): 1,
    ("pausing", "sync"): 10,
    ("pausing", "async"): 10,
    ("pausing", "exit"): 3,
}


def swept(stack: Stack, **job: object) -> list[dict[str, Any]]:
    """Return what became of each death, the whole run without one last."""
    what = {"maker": "tests.contract.saver_makers:ibid", "place": stack.place, **job}
    done = subprocess.run(
        [sys.executable, "-m", "tests.contract.saver_child", "sweep", json.dumps(what)],
        capture_output=True,
        check=True,
        text=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("graph", ENDS)
def test_a_leased_run_ends_right_whichever_store_call_its_process_died_after(
    graph: str, durability: str, stack: Stack
) -> None:
    deaths = swept(stack, graph=graph, durability=durability)

    assert [death["end"] for death in deaths] == [ENDS[graph]] * len(deaths)
    assert sum(death["died"] for death in deaths) == CALLS[graph, durability] + 2


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("graph", ENDS)
def test_a_run_without_a_lease_does_too(
    graph: str, durability: str, stack: Stack, *, is_async: bool
) -> None:
    deaths = swept(
        stack,
        graph=graph,
        durability=durability,
        is_async=is_async,
        is_leased=False,
        options={"fencing": False},
    )

    assert [death["end"] for death in deaths] == [ENDS[graph]] * len(deaths)
    assert sum(death["died"] for death in deaths) == CALLS[graph, durability]


def test_so_does_one_whose_parts_are_all_objects(stack: Stack) -> None:
    deaths = swept(stack, graph="pausing", options={"inline_bytes": 0})

    assert [death["end"] for death in deaths] == [PAUSE_END] * len(deaths)
    assert sum(death["died"] for death in deaths) > 2 * CALLS["pausing", "sync"]


def test_the_sweep_finds_a_saver_that_stores_a_tasks_writes_one_by_one(stack: Stack) -> None:
    deaths = swept(stack, maker="tests.contract.saver_makers:naive", graph="diamond")

    assert deaths[-1]["end"] == DIAMOND_END  # without a death it works
    assert any(death["end"] not in (DIAMOND_END, None) for death in deaths)
