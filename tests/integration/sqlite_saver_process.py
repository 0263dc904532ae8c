"""Processes of their own that use an embedded saver: they start, resume, die where they are told.

`python -m tests.integration.sqlite_saver_process sweep FOLDER SWEEP` prints one JSON line a death:
a child process ends at its k-th store call (or SQL statement), for every k of a whole run, then
another one goes on. The children are forked from this process, which imports once and opens no
file and no loop itself.

`python -m tests.integration.sqlite_saver_process turn FILE TURN` does one thing on a file and
prints one JSON line. SWEEP and TURN are JSON, the fields of the classes below.
"""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Durability

from ibid.adapters.sqlite.saver import EmbeddedSaver
from ibid.adapters.sqlite.saver_file import SaverFile
from ibid.domain.errors import CheckpointFailed, LeaseLost, ThreadLeased
from ibid.domain.leases import Lease
from tests.contract import saver_graphs as graphs

KILLED = 9
_THREAD = "t"
_TERM_S = 0.02


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Which run dies where: at the k-th `call` or `statement`; `naive` splits a task's writes."""

    graph: str
    durability: Durability
    dies_at: str = "call"
    is_naive: bool = False


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One thing to do, alone on a thread.

    Attributes:
        graph: A name of `saver_graphs.GRAPHS`.
        do: "start", "resume" or "read".
        answers: By question, for the questions that are pending and to be answered now.
        input: What to start with.
        ran: A file that notes the nodes that ran.
        waits: Say "ready" and wait for a line before the lease is taken; with the lease, say
            "held" and wait for another.
        stops: Say "stopping" and stop (SIGSTOP) before the first write of a task.
        watches: Ask for the lease until it is had.
    """

    graph: str
    do: str
    answers: dict[str, Any] = field(default_factory=dict)
    input: dict[str, Any] = field(default_factory=dict)
    ran: str | None = None
    waits: bool = False
    stops: bool = False
    watches: bool = False


class NaiveSaver(EmbeddedSaver):
    """Stores each write of a task by itself, as a saver with one item a write does."""

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        for count in range(1, len(writes) + 1):  # those before are stored already and stay
            await super().aput_writes(config, list(writes)[:count], task_id, task_path)


class StoppingSaver(EmbeddedSaver):
    """Stops its process before it stores what a task wrote."""

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        _say("stopping")
        os.kill(os.getpid(), signal.SIGSTOP)
        await super().aput_writes(config, writes, task_id, task_path)


def _say(line: object) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def _leased(saver: EmbeddedSaver, owner: str) -> Lease:
    while True:
        try:
            return await saver.take_lease(_THREAD, owner)
        except ThreadLeased:
            await asyncio.sleep(_TERM_S)


async def _run(path: Path, sweep: Sweep) -> dict[str, Any]:
    """Bring the graph to its end from wherever it is, and return its state."""
    kind = NaiveSaver if sweep.is_naive else EmbeddedSaver
    saver = await kind.open(path, lease_term_s=_TERM_S)
    lease = await _leased(saver, str(os.getpid()))
    config: RunnableConfig = {"configurable": lease.configurable}
    graph = graphs.GRAPHS[sweep.graph](saver)
    state = await graph.aget_state(config)
    while True:
        # `next` says nothing here: it is empty too when all tasks of a step are stored and the
        # checkpoint after them is not
        work: Any = None
        if state.created_at is None:
            work = graphs.DIAMOND_INPUT
        elif state.interrupts:
            work = Command(resume={one.id: graphs.PAUSE_ANSWER for one in state.interrupts})
        await graph.ainvoke(work, config, durability=sweep.durability)
        state = await graph.aget_state(config)
        if not state.interrupts:
            break
    await saver.release(lease)
    await saver.close()
    return dict(state.values)


def _counting_calls(die: Callable[[], None]) -> None:
    write = SaverFile._write  # noqa: SLF001 - where every store call passes

    def counted(self: SaverFile, work: Callable[[sqlite3.Connection], Any]) -> object:
        result = write(self, work)
        die()
        return result

    patch.object(SaverFile, "_write", counted).start()


def _counting_statements(die: Callable[[], None]) -> None:
    connect = SaverFile._connect  # noqa: SLF001 - where every connection comes from

    def traced(self: SaverFile) -> sqlite3.Connection:
        connection = connect(self)
        connection.set_trace_callback(lambda _: die())
        return connection

    patch.object(SaverFile, "_connect", traced).start()


def _forked(
    work: Callable[[], Coroutine[Any, Any, dict[str, Any]]], before: Callable[[], None]
) -> tuple[int, Any]:
    """Run `work` in a forked child; return its exit code and what it gave, if it came to that."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            before()
            result = asyncio.run(work())
            with os.fdopen(writing, "w") as pipe:
                json.dump(result, pipe)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, json.loads(text) if text else None


def _sweep(folder: Path, sweep: Sweep) -> None:
    counting = {"call": _counting_calls, "statement": _counting_statements}[sweep.dies_at]
    at = 0
    while True:
        at += 1
        left = at

        def die() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os._exit(KILLED)

        path = folder / f"{at}.sqlite"
        code, result = _forked(lambda: _run(path, sweep), lambda: counting(die))  # noqa: B023 - used at once
        if code == 0:
            _say({"at": at, "died": False, "end": result})
            return
        if code != KILLED:
            _say({"at": at, "died": False, "end": None})
            return
        code, result = _forked(lambda: _run(path, sweep), lambda: None)  # noqa: B023 - used at once
        _say({"at": at, "died": True, "end": result})


async def _turn(path: Path, turn: Turn) -> object:
    kind = StoppingSaver if turn.stops else EmbeddedSaver
    saver = await kind.open(path, lease_term_s=_TERM_S)
    graph = graphs.GRAPHS[turn.graph](saver)
    try:
        if turn.waits:
            _say("ready")
            await asyncio.to_thread(sys.stdin.readline)
        if turn.do == "read":
            state = await graph.aget_state(graphs.thread(_THREAD))
            return {"values": state.values, "pending": graphs.pending(state)}
        owner = str(os.getpid())
        lease = (
            await _leased(saver, owner) if turn.watches else await saver.take_lease(_THREAD, owner)
        )
        config: RunnableConfig = {"configurable": {**lease.configurable, graphs.RAN: turn.ran}}
        work: Any = turn.input
        if turn.do == "resume":
            pending = graphs.pending(await graph.aget_state(config))
            work = Command(resume={pending[key]: value for key, value in turn.answers.items()})
        if turn.waits:
            _say("held")
            await asyncio.to_thread(sys.stdin.readline)
        await graph.ainvoke(work, config, durability="sync")
        state = await graph.aget_state(config)
        await saver.release(lease)
        return {"values": state.values, "pending": graphs.pending(state)}
    except (CheckpointFailed, LeaseLost) as error:
        return {"error": error.code}
    finally:
        await saver.close()


def fork() -> None:
    """Count in a parent, in its forked child, and in the parent again, on one open saver."""
    saver = asyncio.run(EmbeddedSaver.open(Path(sys.argv[1])))
    config = graphs.thread(_THREAD)

    def count() -> None:
        values = asyncio.run(graphs.counting(saver).ainvoke({"log": []}, config))
        _say({"count": values["count"]})

    count()
    child = os.fork()
    if child == 0:
        count()
        os._exit(0)
    os.waitpid(child, 0)
    count()
    asyncio.run(saver.close())


if __name__ == "__main__":
    where, what = Path(sys.argv[2]), json.loads(sys.argv[3])
    if sys.argv[1] == "sweep":
        _sweep(where, Sweep(**what))
    else:
        _say(asyncio.run(_turn(where, Turn(**what))))
