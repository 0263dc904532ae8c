"""One saver's figures, in its own environment: `python -m tests.bench.checkpoint_probe JSON`.

Prints one JSON line: calls and units of both invocations of the reference workload, and what they
take with a delay in every call.
"""

# ruff: noqa: ANN401 - botocore's calls and LangGraph's inputs

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

from botocore.client import BaseClient
from langgraph.types import Command

from tests.contract import saver_graphs as graphs
from tests.contract.saver_child import Job

_CALL = "_make_api_call"
_METERED = frozenset(
    {
        "BatchGetItem",
        "BatchWriteItem",
        "DeleteItem",
        "GetItem",
        "PutItem",
        "Query",
        "TransactWriteItems",
        "UpdateItem",
    }
)
_READS = frozenset({"BatchGetItem", "GetItem", "Query"})
_LONG_S = 600.0


class Meter:
    """Counts calls and write units; waits in every call."""

    def __init__(self, delay_s: float = 0) -> None:
        self.calls = 0
        self.units = 0.0
        self.delay_s = delay_s

    def delay(self) -> None:
        if self.delay_s:
            time.sleep(self.delay_s)

    def asking(self, operation: str, params: Any) -> Any:
        """Return the parameters with a question for the units."""
        more = {"ReturnConsumedCapacity": "TOTAL"} if operation in _METERED else {}
        return {**params, **more}

    def count(self, operation: str, found: Any) -> Any:
        """Count a call and its units; return what it found."""
        self.calls += 1
        if operation in _METERED - _READS:
            used = found.get("ConsumedCapacity", [])
            for one in used if isinstance(used, list) else [used]:
                self.units += one["CapacityUnits"]
        return found


@contextmanager
def metered(meter: Meter) -> Iterator[None]:
    """Pass every call of this process's clients through the meter, boto's and aioboto's."""
    plain = vars(BaseClient)[_CALL]

    def call(self: Any, operation_name: str, api_params: Any) -> Any:
        meter.delay()
        return meter.count(
            operation_name, plain(self, operation_name, meter.asking(operation_name, api_params))
        )

    with ExitStack() as patches:
        patches.enter_context(patch.object(BaseClient, _CALL, call))
        if find_spec("aiobotocore"):
            client = import_module("aiobotocore.client").AioBaseClient
            waiting = vars(client)[_CALL]

            async def acall(self: Any, operation_name: str, api_params: Any) -> Any:
                await asyncio.sleep(meter.delay_s)
                asked = meter.asking(operation_name, api_params)
                return meter.count(operation_name, await waiting(self, operation_name, asked))

            patches.enter_context(patch.object(client, _CALL, acall))
        yield


async def turn(job: Job, thread: str, work: Any, delay_s: float) -> dict[str, float]:
    """Run one invocation on a saver of its own, the lease counted by itself."""
    saver = job.saver(term_s=_LONG_S)
    graph = graphs.GRAPHS[job.graph](saver)
    config: Any = graphs.thread(thread)
    if job.is_async:
        await graph.aget_state(graphs.thread(f"{thread}-warm"))
    else:
        graph.get_state(graphs.thread(f"{thread}-warm"))
    lease, around, inside = None, Meter(delay_s), Meter(delay_s)
    with metered(around):
        if job.is_leased:
            lease = await saver.take_lease(thread, "bench")
            config["configurable"].update(lease.configurable)
    with metered(inside):
        began = time.perf_counter()
        if job.is_async:
            await graph.ainvoke(work, config, durability=job.durability)
        else:
            graph.invoke(work, config, durability=job.durability)
        took = time.perf_counter() - began
    with metered(around):
        if lease is not None:
            await saver.release(lease)
    return {
        "calls": inside.calls,
        "units": inside.units + around.units,
        "lease_calls": around.calls,
        "ms": took * 1_000,
    }


async def probe(job: Job, rounds: int) -> dict[str, Any]:
    """Measure; the times are medians over `rounds`."""
    found: dict[str, Any] = {}
    if job.graph == "fan_out":
        found["fan_out"] = await turn(job, f"{job.thread}-f", {"log": []}, 0)
        return found
    times: tuple[list[float], list[float]] = ([], [])
    for at in range(rounds + 1):
        thread, delay = f"{job.thread}-{at}", 0.005 if at else 0.0
        first = await turn(job, thread, graphs.reference_input(), delay)
        second = await turn(job, thread, Command(resume="yes"), delay)
        if not at:
            found["first"], found["second"] = first, second
            continue
        times[0].append(first["ms"])
        times[1].append(second["ms"])
    if rounds:
        found["ms"] = [statistics.median(one) for one in times]
    return found


if __name__ == "__main__":
    what = json.loads(sys.argv[1])
    how_often = what.pop("rounds")
    print(json.dumps(asyncio.run(probe(Job(**what), how_often))))
