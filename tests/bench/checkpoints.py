"""Our DynamoDB saver beside its peers, on one ministack in one run: `make bench-checkpoints`.

Every peer has an environment of its own in the user's cache, as two of them own the same import
name. What is a yes or a no is a test, and the tests of the claims run here, too.
"""

# ruff: noqa: ANN401 - a job's fields

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
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
UNTIMED = {"ibid, by transactions"}  # it is there for its units
ROUNDS = 10
PASSES = 8  # of new processes: a saver a round adds up, as not every peer's can be closed
INVOCATIONS = (1, 10, 100, 1_000)
CLAIMS = {
    "conformance kit 0.0.2, both savers: 81 tests, all 8 capabilities": (
        "test_dynamodb_saver_kit.py",
        "test_sqlite_saver_kit.py",
    ),
    "5 MB byte for byte; every size from 340 to 420 KB": (
        "test_dynamodb_saver_writes.py::test_five_megabytes_come_back_byte_for_byte",
        "test_dynamodb_saver_writes.py::test_every_size_around_the_limit_comes_back",
    ),
    "two `asyncio.run`, a fork, a frozen and thawed process": (
        "test_dynamodb_saver_processes.py::test_one_saver_serves_one_event_loop_after_another",
        "test_dynamodb_saver_processes.py::test_a_saver_works_on_after_a_fork_in_both_processes",
        "test_dynamodb_saver_processes.py::test_a_process_that_slept_through_its_lease_is_never_read",
    ),
    "two resumes at once, two inputs at once": (
        (
            "test_dynamodb_saver_fence.py"
            "::test_of_two_resumes_at_once_one_is_refused_and_no_node_runs_twice"
        ),
        "test_dynamodb_saver_processes.py::test_two_inputs_at_once_start_one_run",
    ),
    "the kill sweep of the embedded saver": ("test_sqlite_saver_kill_sweep.py",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Saver:
    """What was measured of one; None or no entry where it failed.

    Attributes:
        by_step: Of both invocations of the reference workload, as the probe gives them.
        at_exit: Likewise, with durability "exit".
        fan_out: Calls of ten `Send`s.
        ms: Milliseconds of both invocations with 5 ms in every call, round by round, by mode; a
            round is the same for all savers.
        wrong: How many deaths ended wrong, of how many, by durability.
    """

    by_step: Mapping[str, Mapping[str, float]] | None
    at_exit: Mapping[str, Mapping[str, float]] | None
    fan_out: float | None
    ms: Mapping[str, Sequence[Sequence[float]]]
    wrong: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run: savers by name, (invocations, items, bytes) of storage, (passed, all) by claim."""

    savers: Mapping[str, Saver]
    stored: Sequence[tuple[int, int, int]]
    claims: Mapping[str, tuple[int, int]]


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


def surroundings(place: dict[str, Any]) -> dict[str, str]:
    """Return the environment variables of a saver's process."""
    client = place["client"]
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": ".",
        "AWS_ENDPOINT_URL": client["endpoint_url"],
        "AWS_DEFAULT_REGION": client["region_name"],
        "AWS_ACCESS_KEY_ID": client["aws_access_key_id"],
        "AWS_SECRET_ACCESS_KEY": client["aws_secret_access_key"],
        "LANGSMITH_TRACING": "false",
        "PYTHONWARNINGS": "ignore",
    }


def run(python: Path | str, module: str, *arguments: str, place: dict[str, Any]) -> list[Any]:
    """Run a module in an environment and return its JSON lines."""
    done = subprocess.run(
        [str(python), "-m", module, *arguments],
        capture_output=True,
        check=False,
        text=True,
        timeout=1_800,
        env=surroundings(place),
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
    """Return what the probe counted; empty if the saver failed."""
    what = {**job, "thread": f"t{time.time_ns()}", **more}
    lines = run(
        python, "tests.bench.checkpoint_probe", "count", json.dumps(what), place=job["place"]
    )
    return lines[-1] if lines else {}


MODES: dict[str, dict[str, Any]] = {
    "sync": {"is_async": False},
    "async": {"is_async": True},
    "exit": {"is_async": False, "durability": "exit"},
}


def timed(
    all_jobs: Mapping[str, tuple[Path | str, dict[str, Any]]], mode: str
) -> dict[str, list[list[float]]]:
    """Return both invocations' times in every round by saver, in milliseconds.

    The savers take turns, each time in another order.
    """
    found: dict[str, list[list[float]]] = {}
    with ExitStack() as stack:
        turns = []
        for name, (python, job) in all_jobs.items():
            if name in UNTIMED or (name == "base" and mode == "async"):
                continue  # base has no async methods
            what = {**job, "graph": "reference", "thread": f"t{time.time_ns()}", **MODES[mode]}
            process = stack.enter_context(
                subprocess.Popen(
                    [python, "-m", "tests.bench.checkpoint_probe", "time", json.dumps(what)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    env=surroundings(job["place"]),
                )
            )
            turns.append((name, process))
        for at in range(ROUNDS + 1):
            for name, process in turns[at % len(turns) :] + turns[: at % len(turns)]:
                took = _taken(process)
                if at:  # the first warms up
                    found.setdefault(name, []).append(took)
    return found


def _taken(process: "subprocess.Popen[str]") -> list[float]:
    """Have a process run both invocations; return what they took."""
    pipes = process.stdin, process.stdout
    if pipes[0] is None or pipes[1] is None:
        raise RuntimeError("a process without pipes")
    pipes[0].write("\n")
    pipes[0].flush()
    while not (line := pipes[1].readline()).startswith("{"):  # ldc logs there
        if not line:
            raise RuntimeError("a saver's process ended early")
    took: list[float] = json.loads(line)["ms"]
    return took


def swept(python: Path | str, job: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Return how many deaths end wrong, of how many, by durability."""
    found: dict[str, tuple[int, int]] = {}
    for durability in DURABILITIES:
        what = {**job, "graph": "diamond", "durability": durability, "is_async": False}
        what["thread"] = f"k{time.time_ns()}"
        lines = run(
            python, "tests.contract.saver_child", "sweep", json.dumps(what), place=job["place"]
        )
        deaths = [one for one in lines if one["died"]]
        found[durability] = (sum(one["end"] != DIAMOND_END for one in deaths), len(deaths))
    return found


async def grown(stack: Stack) -> list[tuple[int, int, int]]:
    """Return what a thread holds while invocations on it go on, pruned after each."""
    saver, found = stack.saver(), []
    graph = counting(saver)
    for at in range(1, INVOCATIONS[-1] + 1):
        async with saver.leased("long", "bench") as lease:
            await graph.ainvoke({"doc": prose(20_000)}, {"configurable": lease.configurable})
        await saver.aprune(["long"])
        if at in INVOCATIONS:
            items = stack.items("checkpoints") + stack.items("writes")
            found.append((at, len(items), sum(map(size_of, items))))
    return found


def proven(tests: Sequence[str]) -> tuple[int, int]:
    """Run tests; return how many pass, of how many."""
    ids = [f"tests/integration/{one}" for one in tests]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--timeout", "600", *ids],
        capture_output=True,
        check=False,
        text=True,
    )
    counts = {
        word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)
    }
    return counts.get("passed", 0), sum(counts.values())


def compared() -> dict[str, Saver]:
    """Measure every saver on one ministack."""
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
        all_jobs = jobs(place)
        times: dict[str, dict[str, list[list[float]]]] = {name: {} for name in all_jobs}
        for mode in MODES:
            for at in range(PASSES):
                print(f"times, {mode}, pass {at + 1} of {PASSES}", flush=True)
                for name, rounds in timed(all_jobs, mode).items():
                    times[name].setdefault(mode, []).extend(rounds)
        found = {}
        for name, (python, job) in all_jobs.items():
            print(f"calls, units and kills of {name}", flush=True)
            step = probe(python, job, graph="reference", is_async=False)
            at_exit = probe(python, job, graph="reference", is_async=False, durability="exit")
            fan = probe(python, job, graph="fan_out", is_async=False)
            found[name] = Saver(
                by_step=step or None,
                at_exit=at_exit or None,
                fan_out=fan["fan_out"]["calls"] if fan else None,
                ms=times[name],
                wrong=swept(python, job),
            )
        return found


def measure() -> Measured:
    """Measure all of it; about a quarter of an hour."""
    savers = compared()
    print(f"storage after {INVOCATIONS[-1]:,} invocations", flush=True)
    with ministack() as url, Stack.made(url) as stack:
        stored = asyncio.run(grown(stack))
    print("claims", flush=True)
    claims = {claim: proven(tests) for claim, tests in CLAIMS.items()}
    return Measured(savers=savers, stored=stored, claims=claims)
