"""Our DynamoDB saver beside its peers, on one ministack in one run: `make bench-checkpoints`.

Every peer has an environment of its own in the user's cache, as two of them own the same import
name. Prints a table in Markdown.
"""

# ruff: noqa: ANN401 - a job's fields

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ibid.adapters.dynamodb.rows import size_of
from tests.contract.saver_graphs import DIAMOND_END, DURABILITIES, counting, prose
from tests.fakes.ministack import Stack, ministack

LANGGRAPH = "langgraph==1.2.24"
PEERS = {
    "base": "langgraph-checkpoint-dynamodb==0.1.0",
    "aws": "langgraph-checkpoint-aws==1.2.6",
    "amz": "langgraph-checkpoint-amazon-dynamodb==0.1.3",
    "ldc": "langgraph-dynamodb-checkpoint==0.5.0",
}
OURS: dict[str, dict[str, Any]] = {
    "ibid, fencing off": {"is_leased": False, "options": {"fencing": False}},
    "ibid": {"is_leased": True},
    "ibid, by transactions": {
        "is_leased": True,
        "maker": "tests.bench.checkpoint_makers:transacted",
    },
}
ROUNDS = 5
PASSES = 5
INVOCATIONS = 1_000


def environment(name: str) -> Path:
    """Return the interpreter of a peer's environment, made if it is not there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "ibid-checkpoint-peers" / PEERS[name].replace("==", "-")
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, PEERS[name], LANGGRAPH], check=True)
        (folder / ".ready").touch()
    return python


def run(python: Path | str, module: str, *arguments: str, place: dict[str, Any]) -> list[Any]:
    """Run a module in an environment and return its JSON lines."""
    client = place["client"]
    done = subprocess.run(
        [str(python), "-m", module, *arguments],
        capture_output=True,
        check=False,
        text=True,
        timeout=1_800,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": ".",
            "AWS_ENDPOINT_URL": client["endpoint_url"],
            "AWS_DEFAULT_REGION": client["region_name"],
            "AWS_ACCESS_KEY_ID": client["aws_access_key_id"],
            "AWS_SECRET_ACCESS_KEY": client["aws_secret_access_key"],
            "LANGSMITH_TRACING": "false",
            "PYTHONWARNINGS": "ignore",
        },
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        print(f"{module} {arguments}: {done.stderr[-800:]}", file=sys.stderr)
    return lines


def jobs(place: dict[str, Any]) -> dict[str, tuple[Path | str, dict[str, Any]]]:
    """Return every saver's interpreter and job."""
    found: dict[str, tuple[Path | str, dict[str, Any]]] = {
        name: (
            sys.executable,
            {"maker": "tests.contract.saver_makers:ibid", "place": place, **more},
        )
        for name, more in OURS.items()
    }
    for name in PEERS:
        job = {
            "maker": f"tests.bench.checkpoint_makers:{name}",
            "place": place,
            "is_leased": False,
        }
        found[name] = environment(name), job
    return found


def probe(python: Path | str, job: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return what the probe found; empty if the saver failed."""
    what = {**job, "rounds": 0, "thread": f"t{time.time_ns()}", **more}
    lines = run(python, "tests.bench.checkpoint_probe", json.dumps(what), place=job["place"])
    return lines[-1] if lines else {}


def counted(python: Path | str, job: dict[str, Any]) -> list[str]:
    """Return the cells of calls and units."""

    def cell(found: dict[str, Any], what: str) -> str:
        if "first" not in found:
            return "fails"
        return f"{found['first'][what]:g}/{found['second'][what]:g}"

    by_step = probe(python, job, graph="reference", is_async=False)
    at_exit = probe(python, job, graph="reference", is_async=False, durability="exit")
    fan = probe(python, job, graph="fan_out", is_async=False).get("fan_out")
    return [
        cell(by_step, "calls"),
        cell(by_step, "lease_calls"),
        cell(by_step, "units"),
        cell(at_exit, "calls"),
        cell(at_exit, "units"),
        f"{fan['calls']:g}" if fan else "fails",
    ]


MODES: dict[str, dict[str, Any]] = {
    "sync": {"is_async": False},
    "async": {"is_async": True},
    "exit": {"is_async": False, "durability": "exit"},
}


def timed(all_jobs: dict[str, tuple[Path | str, dict[str, Any]]]) -> dict[str, list[str]]:
    """Return the cells of times by saver: each one's best pass, the savers taking turns.

    A machine that does something else beside slows a whole pass, not one saver.
    """
    best: dict[tuple[str, str], list[float]] = {}
    for _ in range(PASSES):
        for mode, more in MODES.items():
            for name, (python, job) in all_jobs.items():
                if name == "base" and mode == "async":
                    continue  # it has no async methods
                took = probe(python, job, graph="reference", rounds=ROUNDS, **more).get("ms")
                if took:
                    key = name, mode
                    best[key] = [min(two) for two in zip(best.get(key, took), took, strict=True)]
    return {
        name: [
            "/".join(f"{one:.0f}" for one in best[name, mode]) if (name, mode) in best else "none"
            for mode in MODES
        ]
        for name in all_jobs
    }


def swept(python: Path | str, job: dict[str, Any]) -> str:
    """Return how many deaths end wrong, of how many, by durability."""
    cells = []
    for durability in DURABILITIES:
        what = {**job, "graph": "diamond", "durability": durability, "is_async": False}
        what["thread"] = f"k{time.time_ns()}"
        lines = run(
            python, "tests.contract.saver_child", "sweep", json.dumps(what), place=job["place"]
        )
        deaths = [one for one in lines if one["died"]]
        wrong = [one for one in deaths if one["end"] != DIAMOND_END]
        cells.append(f"{len(wrong)}/{len(deaths)}")
    return ", ".join(cells)


def stored(stack: Stack) -> str:
    """Return how many items and bytes both tables hold."""
    items = stack.items("checkpoints") + stack.items("writes")
    return f"{len(items)} items, {sum(map(size_of, items))} bytes"


async def grown(stack: Stack) -> None:
    """Print what a thread holds while invocations on it go on, pruned after each."""
    saver = stack.saver()
    graph = counting(saver)
    for at in range(1, INVOCATIONS + 1):
        async with saver.leased("long", "bench") as lease:
            await graph.ainvoke({"doc": prose(20_000)}, {"configurable": lease.configurable})
        await saver.aprune(["long"])
        if at in {1, 10, 100, INVOCATIONS}:
            print(f"after {at} invocations: {stored(stack)}", flush=True)


def main() -> None:
    heads = ["saver", "calls", "lease", "write units", "exit: calls", "units", "10 sends"]
    heads += ["5 ms a call: sync", "async", "exit", "kills that end wrong: sync, async, exit"]
    with ministack() as url, Stack.made(url) as stack:
        single = f"single-{time.time_ns()}"
        client = stack.boto("dynamodb")
        client.create_table(
            TableName=single,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[
                {"AttributeName": key, "AttributeType": "S"} for key in ("PK", "SK")
            ],
            KeySchema=[
                {"AttributeName": "PK", "KeyType": "HASH"},
                {"AttributeName": "SK", "KeyType": "RANGE"},
            ],
        )
        client.close()
        place = {**stack.place, "single": single, "own": f"own-{time.time_ns()}"}
        print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
        all_jobs = jobs(place)
        times = timed(all_jobs)
        for name, (python, job) in all_jobs.items():
            cells = [name, *counted(python, job), *times[name], swept(python, job)]
            print(f"| {' | '.join(cells)} |", flush=True)
    print()
    with ministack() as url, Stack.made(url) as stack:
        asyncio.run(grown(stack))


if __name__ == "__main__":
    main()
