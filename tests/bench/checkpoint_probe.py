"""One saver's figures, in its own environment.

`python -m tests.bench.checkpoint_probe count JSON` prints one JSON line: calls and units of both
invocations of the reference workload. `time` instead of `count` prints what they take with a delay
in every call, once a line of its input.
"""

# ruff: noqa: ANN401 - botocore's calls and LangGraph's inputs

import asyncio
import json
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
_DELAY_S = 0.005


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


async def probe(job: Job) -> dict[str, Any]:
    """Count the calls and units of both invocations, or of the one of ten `Send`s."""
    if job.graph == "fan_out":
        return {"fan_out": await turn(job, job.thread, {"log": []}, 0)}
    first = await turn(job, job.thread, graphs.reference_input(), 0)
    return {"first": first, "second": await turn(job, job.thread, Command(resume="yes"), 0)}


async def time_by_turns(job: Job) -> None:
    """Time both invocations whenever a line comes in, and print the milliseconds.

    So the processes of several savers can take turns invocation by invocation, and what else the
    machine does meets all of them.
    """
    for at, _ in enumerate(sys.stdin):
        thread = f"{job.thread}-{at}"
        first = await turn(job, thread, graphs.reference_input(), _DELAY_S)
        second = await turn(job, thread, Command(resume="yes"), _DELAY_S)
        print(json.dumps({"ms": [first["ms"], second["ms"]]}), flush=True)


if __name__ == "__main__":
    what = Job(**json.loads(sys.argv[2]))
    if sys.argv[1] == "time":
        asyncio.run(time_by_turns(what))
    else:
        print(json.dumps(asyncio.run(probe(what))))
