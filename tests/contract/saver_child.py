"""Processes of their own that use a saver, one of ours or another package's.

`python -m tests.contract.saver_child sweep JSON` prints one JSON line a death: a child process
ends right after its k-th store call, for every k of a whole run, then another one goes on. The
children are forked from this process, which imports all once and opens no connection and no file.

`python -m tests.contract.saver_child turn JSON` does one thing on a thread and prints one line.

Nothing here needs Ibid: a saver comes from the maker that the JSON names (`module:function`), and
the bench runs this file in environments that have only the peers.
"""

import asyncio
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from typing import Any
from unittest.mock import patch

from botocore.client import BaseClient
from langgraph.types import Command, Durability

from tests.contract import saver_graphs as graphs

KILLED = 9
STORES = frozenset(
    {
        "BatchWriteItem",
        "DeleteItem",
        "PutItem",
        "PutObject",
        "TransactWriteItems",
        "UpdateItem",
    }
)
INPUTS: dict[str, dict[str, Any]] = {
    "diamond": graphs.DIAMOND_INPUT,
    "pausing": graphs.PAUSE_INPUT,
    "reference": graphs.reference_input(),
}
_CALL = "_make_api_call"  # where every call of every client passes
_TERM_S = 0.02
_LONG_S = 60.0  # a writer that has shown no sign of life for a term makes a call more


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to do, where.

    Attributes:
        maker: `module:function`, called with `place` and the keywords in `options`.
        place: The endpoint and the names of the tables and the bucket, or the folder of the files;
            in a sweep with a `thread`.
        counts: `module:function`, called with what to do after every store call, giving a context;
            None for botocore's calls.
        graph: A name of `saver_graphs.GRAPHS`.
        durability: LangGraph's.
        thread: The thread, or the start of the threads' ids in a sweep.
        is_async: By `ainvoke`, else by `invoke`.
        is_leased: Under a lease, which only our saver has.
        options: More keywords for the maker.
        do: "start", "resume" or "read"; a sweep does all.
        input: What to start with.
        answers: By question, for those that are to be answered.
        ran: A file that notes the nodes that ran.
        stops: Stop (SIGSTOP) between the lease and the graph's run.
        waits: Say "ready" and wait for a line before the lease is taken.
        holds: With the lease, say "held" and wait for a line.
        watches: Ask for the lease until it is had.
    """

    maker: str
    place: dict[str, Any]
    counts: str | None = None
    graph: str
    durability: Durability = "sync"
    thread: str = "t"
    is_async: bool = True
    is_leased: bool = True
    options: dict[str, Any] = field(default_factory=dict)
    do: str = "start"
    input: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    ran: str | None = None
    stops: bool = False
    waits: bool = False
    holds: bool = False
    watches: bool = False

    def saver(self, *, term_s: float) -> Any:  # noqa: ANN401 - any package's
        """Make the saver, ours with a term after which it takes a lease for dead."""
        options = {**self.options, **({"term_s": term_s} if self.is_leased else {})}
        return _named(self.maker)(self.place, **options)

    def counting(self, after: Callable[[], None]) -> AbstractContextManager[Any]:
        """Return a context in which `after` is called once a call has changed the store."""
        return counting_calls(after) if self.counts is None else _named(self.counts)(after)


def _named(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    module, function = name.split(":")
    return getattr(importlib.import_module(module), function)


def say(line: object) -> None:
    """Print one line at once."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def ask(question: str) -> None:
    """Print a line and wait for one."""
    say(question)
    sys.stdin.readline()


def counting_calls(after: Callable[[], None]) -> AbstractContextManager[Any]:
    """Return a patch that calls `after` once a client's call has changed the store."""
    plain = vars(BaseClient)[_CALL]

    def counted(self: BaseClient, operation_name: str, api_params: Any) -> Any:  # noqa: ANN401 - botocore's own
        found = plain(self, operation_name, api_params)
        if operation_name in STORES:
            after()
        return found

    return patch.object(BaseClient, _CALL, counted)


class Runner:
    """A graph on a saver, by `invoke` or `ainvoke`, with or without a lease."""

    def __init__(self, job: Job, thread: str, *, term_s: float = _TERM_S) -> None:
        self.job = job
        self.saver = job.saver(term_s=term_s)
        self.graph = graphs.GRAPHS[job.graph](self.saver)
        self.thread = thread
        self.config: Any = graphs.thread(thread)

    @classmethod
    async def ending(cls, job: Job, thread: str, *, term_s: float = _TERM_S) -> dict[str, Any]:
        """Do `to_the_end` on a saver that is closed then."""
        runner = cls(job, thread, term_s=term_s)
        end = await runner.to_the_end()
        await runner.close()
        return end

    async def lease(self) -> Any:  # noqa: ANN401 - a lease, if the saver has such
        """Take the lease, waiting for a dead one's end."""
        if not self.job.is_leased:
            return None
        while True:
            try:
                return await self.take()
            except Exception as error:
                if type(error).__name__ != "ThreadLeased":
                    raise
                await asyncio.sleep(_TERM_S)

    async def take(self) -> Any:  # noqa: ANN401 - a lease
        """Take the lease, if it is free or its holder known to be dead."""
        lease = await self.saver.take_lease(self.thread, str(os.getpid()))
        self.config["configurable"].update(lease.configurable)
        return lease

    async def close(self) -> None:
        """Close the saver, if it can be."""
        closing = getattr(self.saver, "close", lambda: None)()
        if isawaitable(closing):
            await closing

    async def state(self) -> Any:  # noqa: ANN401 - LangGraph's snapshot
        """Read the state."""
        if self.job.is_async:
            return await self.graph.aget_state(self.config)
        return self.graph.get_state(self.config)

    async def run(self, work: object) -> None:
        """Run until the end or a pause."""
        if self.job.is_async:
            await self.graph.ainvoke(work, self.config, durability=self.job.durability)
        else:
            self.graph.invoke(work, self.config, durability=self.job.durability)

    async def to_the_end(self) -> dict[str, Any]:
        """Bring the graph to its end from wherever it is, and return its state."""
        lease = await self.lease()
        state = await self.state()
        for _ in range(10):
            work: Any = None
            if state.created_at is None:
                work = INPUTS[self.job.graph]
            elif state.interrupts:
                work = Command(resume={one.id: graphs.PAUSE_ANSWER for one in state.interrupts})
            await self.run(work)
            state = await self.state()
            if not state.interrupts and not state.next:
                break
        if lease is not None:
            await self.saver.release(lease)
        return dict(state.values)


def _forked(work: Callable[[], object]) -> tuple[int, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            signal.alarm(60)
            result = work()
            with os.fdopen(writing, "w") as pipe:
                json.dump(result, pipe)
            code = 0
        except Exception as error:  # noqa: BLE001 - it is reported as what the run came to
            with os.fdopen(writing, "w") as pipe:
                json.dump({"error": type(error).__name__}, pipe)
            code = 3
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, json.loads(text) if text else None


def sweep(job: Job) -> None:
    """Die after every store call in turn; print each end."""
    _named(job.maker)  # imports here, once, what every child needs
    run_id, at = f"{job.thread}-{time.time_ns()}", 0
    while True:
        at += 1
        thread = f"{run_id}-{at}"
        mine = replace(job, place={**job.place, "thread": thread})

        def dying(mine: Job = mine, thread: str = thread, at: int = at) -> object:
            left = at

            def after() -> None:
                nonlocal left
                left -= 1
                if left == 0:
                    os._exit(KILLED)

            with mine.counting(after):
                return asyncio.run(Runner.ending(mine, thread, term_s=_LONG_S))

        code, end = _forked(dying)
        if code != KILLED:
            say({"at": at, "died": False, "end": end})
            return

        def going_on(mine: Job = mine, thread: str = thread) -> object:
            return asyncio.run(Runner.ending(mine, thread))

        _, end = _forked(going_on)
        say({"at": at, "died": True, "end": end})


async def turn(job: Job) -> object:
    """Do one thing, and return the state after it, or the error's code."""
    runner = Runner(job, job.thread)
    try:
        if job.waits:
            await asyncio.to_thread(ask, "ready")
        if job.do == "read":
            state = await runner.state()
            return {"values": state.values, "pending": graphs.pending(state)}
        lease = await (runner.lease() if job.watches else runner.take())
        runner.config["configurable"][graphs.RAN] = job.ran
        work: Any = job.input
        if job.do == "resume":
            pending = graphs.pending(await runner.state())
            work = Command(resume={pending[key]: value for key, value in job.answers.items()})
        if job.holds:
            await asyncio.to_thread(ask, "held")
        if job.stops:
            say("stopping")
            os.kill(os.getpid(), signal.SIGSTOP)
        await runner.run(work)
        state = await runner.state()
        await runner.saver.release(lease)
        return {"values": state.values, "pending": graphs.pending(state)}
    except Exception as error:
        code = getattr(error, "code", None)
        if code is None:
            raise
        return {"error": code}
    finally:
        await runner.close()


if __name__ == "__main__":
    what = Job(**json.loads(sys.argv[2]))
    if sys.argv[1] == "sweep":
        sweep(what)
    else:
        say(asyncio.run(turn(what)))
