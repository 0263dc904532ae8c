"""A process ends after every store call, and at every SQL statement; another one goes on."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ibid.adapters.sqlite.saver import EmbeddedSaver
from tests.contract.saver_graphs import DIAMOND_END, DURABILITIES, PAUSE_END

MAKERS = "tests.contract.saver_makers"
STATEMENTS = f"{MAKERS}:counting_statements"
ENDS = {"diamond": DIAMOND_END, "pausing": PAUSE_END}
CALLS = {  # store calls of a whole run: a lease, checkpoints, tasks' writes, the lease's return
    ("diamond", "sync"): 13,
    ("diamond", "async"): 13,
    ("diamond", "exit"): 3,
    ("pausing", "sync"): 12,
    ("pausing", "async"): 12,
    ("pausing", "exit"): 5,
}


def swept(folder: Path, **job: object) -> list[dict[str, Any]]:
    """Return what became of each death, the whole run without one last."""
    saver = asyncio.run(EmbeddedSaver.open(folder / "new.sqlite"))
    asyncio.run(saver.close())
    what = {
        "maker": f"{MAKERS}:quick_embedded",
        "place": {"folder": str(folder)},
        "counts": f"{MAKERS}:counting_transactions",
        **job,
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.contract.saver_child", "sweep", json.dumps(what)],
        capture_output=True,
        check=True,
        text=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("graph", ENDS)
def test_a_run_ends_right_whichever_store_call_its_process_died_after(
    graph: str, durability: str, tmp_path: Path, *, is_async: bool
) -> None:
    deaths = swept(tmp_path, graph=graph, durability=durability, is_async=is_async)

    assert [death["end"] for death in deaths] == [ENDS[graph]] * len(deaths)
    assert sum(death["died"] for death in deaths) == CALLS[graph, durability]


@pytest.mark.slow
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("graph", ENDS)
def test_a_run_ends_right_whichever_sql_statement_its_process_died_at(
    graph: str, durability: str, tmp_path: Path
) -> None:
    deaths = swept(tmp_path, graph=graph, durability=durability, counts=STATEMENTS)

    assert [death["end"] for death in deaths] == [ENDS[graph]] * len(deaths)
    assert sum(death["died"] for death in deaths) > 5 * CALLS[graph, durability]


@pytest.mark.slow
def test_so_does_one_whose_process_died_while_it_made_the_file(tmp_path: Path) -> None:
    deaths = swept(
        tmp_path,
        maker=f"{MAKERS}:embedded",
        graph="pausing",
        durability="exit",
        counts=STATEMENTS,
    )

    assert [death["end"] for death in deaths] == [PAUSE_END] * len(deaths)
    assert sum(death["died"] for death in deaths) > 5 * CALLS["pausing", "exit"] + 30


def test_the_sweep_finds_a_saver_that_stores_a_tasks_writes_one_by_one(tmp_path: Path) -> None:
    deaths = swept(tmp_path, graph="diamond", maker=f"{MAKERS}:naive_embedded")

    assert deaths[-1]["end"] == DIAMOND_END  # without a death it works
    assert any(death["end"] not in (DIAMOND_END, None) for death in deaths)
