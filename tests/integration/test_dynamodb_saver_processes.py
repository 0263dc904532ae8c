"""Event loops, forks, processes that stop, and pauses that each answer meets in another process."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.contract.saver_child import Job, Runner
from tests.contract.saver_graphs import (
    FORKED_INPUT,
    FORKED_QUESTIONS,
    NESTED_INPUT,
    NESTED_QUESTIONS,
    PAUSE_END,
    PAUSE_INPUT,
    PAUSE_QUESTION,
    TWICE_INPUT,
    TWICE_QUESTIONS,
    counting,
    forked_end,
    nested_end,
    ran,
    thread,
    twice_end,
)
from tests.fakes.aws_faults import intercepted
from tests.fakes.ministack import Stack

pytestmark = pytest.mark.ministack


@contextmanager
def started(stack: Stack, **job: object) -> "Iterator[subprocess.Popen[str]]":
    what = {"maker": "tests.contract.saver_makers:ibid", "place": stack.place, **job}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.contract.saver_child", "turn", json.dumps(what)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]") -> Any:  # noqa: ANN401 - whatever a process says
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def done(stack: Stack, **job: object) -> Any:  # noqa: ANN401 - whatever a process says
    with started(stack, **job) as process:
        return said(process)


@pytest.mark.parametrize(
    ("graph", "start", "questions", "end"),
    [
        ("nested", NESTED_INPUT, NESTED_QUESTIONS, nested_end("one", "two")),
        ("twice", TWICE_INPUT, TWICE_QUESTIONS, twice_end("one", "two")),
        ("forked", FORKED_INPUT, FORKED_QUESTIONS, forked_end("one", "two")),
    ],
)
def test_each_answer_meets_its_pause_in_a_process_of_its_own(
    graph: str,
    start: dict[str, Any],
    questions: tuple[str, str],
    end: dict[str, Any],
    stack: Stack,
) -> None:
    first, second = questions

    paused = done(stack, graph=graph, do="start", input=start)
    assert first in paused["pending"]
    halfway = done(stack, graph=graph, do="resume", answers={first: "one"})
    assert list(halfway["pending"]) == [second]
    done(stack, graph=graph, do="resume", answers={second: "two"})

    assert done(stack, graph=graph, do="read") == {"values": end, "pending": {}}


def test_two_inputs_at_once_start_one_run(stack: Stack, tmp_path: Path) -> None:
    file = str(tmp_path / "ran")
    jobs = [
        {"graph": "pausing", "input": {"log": [name]}, "ran": file, "waits": True} for name in "ab"
    ]
    with started(stack, **jobs[0]) as one, started(stack, **jobs[1]) as two:
        assert [said(one), said(two)] == ["ready", "ready"]
        for process in (one, two):
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        ends = [said(one), said(two)]

    won = [end for end in ends if "error" not in end]
    refused = [end for end in ends if "error" in end]
    # Whoever comes after the other's end goes on with the thread; both is right, a mix is not.
    assert len(won) + len(refused) == 2
    assert all(end["error"] == "THREAD_LEASED" for end in refused)
    assert len(ran(file)) == 2 * len(won)
    assert len(won) >= 1


def test_a_process_that_slept_through_its_lease_is_never_read(stack: Stack) -> None:
    done(stack, graph="pausing", do="start", input=PAUSE_INPUT)
    answers = {PAUSE_QUESTION: "asleep"}
    with started(stack, graph="pausing", do="resume", answers=answers, stops=True) as frozen:
        assert said(frozen) == "stopping"
        job = Job(maker="tests.contract.saver_makers:ibid", place=stack.place, graph="pausing")
        runner = Runner(job, "t")  # waits until the lease is dead
        end = asyncio.run(runner.to_the_end())
        runner.saver.close()
        frozen.send_signal(signal.SIGCONT)
        thawed = said(frozen)

    assert thawed == {"error": "LEASE_LOST"}  # the run was over when it woke: nothing to write
    assert end == PAUSE_END
    assert done(stack, graph="pausing", do="read") == {"values": PAUSE_END, "pending": {}}


def test_one_saver_serves_one_event_loop_after_another(stack: Stack) -> None:
    graph = counting(stack.saver())

    ends = [asyncio.run(graph.ainvoke({"log": []}, thread("t"))) for _ in range(3)]

    assert [end["count"] for end in ends] == [1, 2, 3]


def test_a_saver_works_on_after_a_fork_in_both_processes(stack: Stack) -> None:
    script = """
import asyncio, json, os, sys
from tests.contract.saver_makers import ibid
from tests.contract.saver_graphs import counting, thread
saver = ibid(json.loads(sys.argv[1]))
graph = counting(saver)
def count():
    print(asyncio.run(graph.ainvoke({"log": []}, thread("t")))["count"], flush=True)
count()
child = os.fork()
if child == 0:
    count()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
count()
saver.close()
"""

    ended = subprocess.run(
        [sys.executable, "-c", script, json.dumps(stack.place)],
        capture_output=True,
        check=True,
        text=True,
    )

    assert ended.stdout.split() == ["1", "2", "3"]


async def test_the_event_loop_turns_while_the_store_is_slow(stack: Stack) -> None:
    graph = counting(stack.saver())
    slow_s, turns = 0.1, 0

    def slow(_: str, params: Any, call: Any) -> Any:  # noqa: ANN401 - botocore's own
        time.sleep(slow_s)
        return call(params)

    async def turning() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.create_task(turning())
    with intercepted(slow):
        before = asyncio.get_running_loop().time()
        await graph.ainvoke({"log": []}, thread("t"))
        took = asyncio.get_running_loop().time() - before
    other.cancel()

    assert took > 4 * slow_s  # at least that many calls, one after the other
    assert turns > 100  # a loop that waited for them would have turned a few dozen times


@pytest.mark.parametrize(
    "work",
    [
        lambda saver: saver.aget_tuple({"configurable": {"thread_id": "t"}}),
        lambda saver: anext(saver.alist({"configurable": {"thread_id": "t"}})),
        lambda saver: saver.adelete_thread("t"),
        lambda saver: saver.adelete_for_runs(["r"]),
        lambda saver: saver.acopy_thread("t", "copy"),
        lambda saver: saver.aprune(["t"]),
        lambda saver: saver.take_lease("t", "one"),
    ],
    ids=["get", "list", "delete", "delete_for_runs", "copy", "prune", "lease"],
)
async def test_no_other_method_blocks_the_loop(work: Any, stack: Stack) -> None:  # noqa: ANN401 - a call
    saver = stack.saver()
    await counting(saver).ainvoke({"log": []}, thread("t"))
    loop_thread, waited = threading.get_ident(), []

    def noting(_: str, params: Any, call: Any) -> Any:  # noqa: ANN401 - botocore's own
        waited.append(threading.get_ident())
        return call(params)

    with intercepted(noting):
        await work(saver)

    assert waited
    assert loop_thread not in waited
