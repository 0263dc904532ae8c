"""One checkpoint file and several processes: pauses that outlive them, writers that meet."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ibid.adapters.sqlite.saver import EmbeddedSaver
from tests.contract.saver_graphs import (
    DIAMOND_END,
    DIAMOND_INPUT,
    FORKED_INPUT,
    FORKED_QUESTIONS,
    NESTED_INPUT,
    NESTED_QUESTIONS,
    PAUSE_ANSWER,
    PAUSE_END,
    PAUSE_INPUT,
    PAUSE_QUESTION,
    REFERENCE_END_LOG,
    TWICE_INPUT,
    TWICE_QUESTIONS,
    counting,
    forked_end,
    nested_end,
    ran,
    thread,
    twice_end,
)


@contextmanager
def started(folder: Path, **job: object) -> "Iterator[subprocess.Popen[str]]":
    what = {
        "maker": "tests.contract.saver_makers:embedded",
        "place": {"folder": str(folder)},
        **job,
    }
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


def done(folder: Path, **job: object) -> Any:  # noqa: ANN401 - whatever a process says
    with started(folder, **job) as process:
        return said(process)


def go(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


FORK = """
import asyncio, os, sys
from tests.contract.saver_makers import embedded
from tests.contract.saver_graphs import counting, thread
saver = embedded({"folder": sys.argv[1]})
graph = counting(saver)
def count():
    print(asyncio.run(graph.ainvoke({"log": []}, thread("t")))["count"], flush=True)
def close():
    asyncio.run(saver.close())
count()
closed, closing = os.pipe()
has_counted, says_so = os.pipe()
child = os.fork()
if child == 0:
    count()
    os.write(says_so, b"x")
    os.read(closed, 1)
    count()
    close()
    os._exit(0)
os.read(has_counted, 1)
"""
PARENT_GOES_ON = """
count()
os.write(closing, b"x")
assert os.waitpid(child, 0)[1] == 0
count()
close()
"""
PARENT_CLOSES_FIRST = """
close()
os.write(closing, b"x")
assert os.waitpid(child, 0)[1] == 0
saver = embedded({"folder": sys.argv[1]})
graph = counting(saver)
count()
close()
"""
FORK_AMID_WRITES = """
import os, sys, threading
from tests.contract.saver_makers import embedded
from tests.contract.saver_graphs import thread
from langgraph.checkpoint.base import empty_checkpoint
saver = embedded({"folder": sys.argv[1]})
over = threading.Event()
wrote = []
def write():
    while not over.is_set():
        config = {"configurable": {"thread_id": "parent", "checkpoint_ns": ""}}
        wrote.append(saver.put(config, empty_checkpoint(), {}, {}))
writing = threading.Thread(target=write)
writing.start()
for number in range(20):
    before = len(wrote)
    while len(wrote) == before:
        pass
    child = os.fork()
    if child == 0:
        config = {"configurable": {"thread_id": f"child {number}", "checkpoint_ns": ""}}
        saver.put(config, empty_checkpoint(), {}, {})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
over.set()
writing.join()
print(sum(1 for _ in saver.list({"configurable": {"thread_id": "parent"}})) - len(wrote))
print(sum(1 for found in saver.list(None)) - len(wrote))
"""


MANY_WRITERS = """
import asyncio, os, random, sys
from tests.contract.saver_makers import embedded
from tests.contract.saver_graphs import DURABILITIES, counting, thread
from ibid.domain.errors import ThreadLeased
draw = random.Random(sys.argv[2])
async def main():
    saver = embedded({"folder": sys.argv[1]})
    graph = counting(saver)
    for _ in range(40):
        name = draw.choice("abc")
        while True:
            try:
                async with saver.leased(name, sys.argv[2]) as lease:
                    config = {"configurable": lease.configurable}
                    work = {"doc": "x" * draw.randrange(30_000)}
                    durability = draw.choice(DURABILITIES)
                    await graph.ainvoke(work, config, durability=durability)
                    if draw.random() < 0.2:
                        await saver.aprune([name])
                break
            except ThreadLeased:
                await asyncio.sleep(0.01)
    await saver.close()
asyncio.run(main())
"""
ON_A_FULL_DISK = """
import asyncio, resource, sys
from tests.contract.saver_child import Job, Runner
from ibid.domain.errors import StoreUnavailable
folder, room = sys.argv[1:]
job = Job(
    maker="tests.contract.saver_makers:embedded", place={"folder": folder}, graph="reference"
)
async def main():
    runner = Runner(job, "t")
    if room != "any":
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), int(room)))
    try:
        print(",".join((await runner.to_the_end())["log"]))
    except StoreUnavailable as error:
        print(error.code)
    await runner.close()
asyncio.run(main())
"""


@dataclass(frozen=True)
class TwoPauses:
    graph: str
    input: dict[str, Any]
    questions: tuple[str, str]
    end: Callable[[object, object], dict[str, Any]]


@pytest.mark.parametrize(
    "case",
    [
        TwoPauses("nested", NESTED_INPUT, NESTED_QUESTIONS, nested_end),
        TwoPauses("forked", FORKED_INPUT, FORKED_QUESTIONS, forked_end),
        TwoPauses("twice", TWICE_INPUT, TWICE_QUESTIONS, twice_end),
    ],
    ids=lambda case: case.graph,
)
def test_two_pauses_are_answered_one_by_one_over_four_processes(
    case: TwoPauses, tmp_path: Path
) -> None:
    first, second = case.questions

    asked = done(tmp_path, graph=case.graph, do="start", input=case.input)
    # an empty answer is one
    after_first = done(tmp_path, graph=case.graph, do="resume", answers={first: ""})
    after_second = done(tmp_path, graph=case.graph, do="resume", answers={second: "b"})
    read = done(tmp_path, graph=case.graph, do="read")

    assert first in asked["pending"]
    assert list(after_first["pending"]) == [second]
    assert after_second == read == {"values": case.end("", "b"), "pending": {}}


def both(folder: Path, **job: object) -> tuple[Any, Any]:
    """Let two processes do the same at the same time; return the winner's end, then the other's."""
    with ExitStack() as stack:
        pair = [
            stack.enter_context(started(folder, waits=True, holds=True, **job)) for _ in range(2)
        ]
        assert [said(process) for process in pair] == ["ready", "ready"]
        for process in pair:
            go(process)
        # the winner holds the thread until the other has been told
        answers = [said(process) for process in pair]
        winner = answers.index("held")
        go(pair[winner])
        return said(pair[winner]), answers[1 - winner]


def test_of_two_inputs_at_once_one_wins_and_the_other_is_told(tmp_path: Path) -> None:
    noted = str(tmp_path / "ran")

    won, lost = both(tmp_path, graph="diamond", do="start", input=DIAMOND_INPUT, ran=noted)

    assert won["values"] == DIAMOND_END
    assert lost == {"error": "THREAD_LEASED"}
    assert sorted(ran(noted)) == ["a", "b", "c", "d", "e"]


def test_of_two_resumes_at_once_one_wins_and_the_other_is_told(tmp_path: Path) -> None:
    noted = str(tmp_path / "ran")
    done(tmp_path, graph="pausing", do="start", input=PAUSE_INPUT, ran=noted)

    won, lost = both(
        tmp_path, graph="pausing", do="resume", answers={PAUSE_QUESTION: PAUSE_ANSWER}, ran=noted
    )

    assert won["values"] == PAUSE_END
    assert lost == {"error": "THREAD_LEASED"}
    # a node that paused is run again from its top
    assert ran(noted) == ["before", "ask", "ask", "after"]


def test_a_frozen_process_that_thaws_is_refused_and_spoils_nothing(tmp_path: Path) -> None:
    resume = {"graph": "pausing", "do": "resume", "answers": {PAUSE_QUESTION: PAUSE_ANSWER}}
    done(tmp_path, graph="pausing", do="start", input=PAUSE_INPUT)

    stopping = "tests.contract.saver_makers:stopping_embedded"
    with started(tmp_path, **{**resume, "maker": stopping}) as frozen:
        os.waitpid(frozen.pid, os.WUNTRACED)
        taken_over = done(tmp_path, watches=True, **resume)
        os.kill(frozen.pid, signal.SIGCONT)
        thawed = said(frozen)

    assert taken_over["values"] == PAUSE_END
    assert thawed == {"error": "CHECKPOINT_STALE"}
    assert done(tmp_path, graph="pausing", do="read")["values"] == PAUSE_END


def run(script: str, folder: Path, *more: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder), *more],
        capture_output=True,
        check=True,
        text=True,
        timeout=100,
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("parent", "runs"), [(PARENT_GOES_ON, 5), (PARENT_CLOSES_FIRST, 4)], ids=["goes on", "closes"]
)
def test_a_fork_goes_on_with_the_file_whatever_its_parent_does(
    parent: str, runs: int, tmp_path: Path
) -> None:
    counts = run(FORK + parent, tmp_path)

    assert counts == [str(number) for number in range(1, runs + 1)]


def test_forks_amid_the_writes_of_another_thread_lose_none(tmp_path: Path) -> None:
    assert run(FORK_AMID_WRITES, tmp_path) == ["0", "20"]


async def test_what_three_processes_write_on_three_threads_is_all_counted(tmp_path: Path) -> None:
    runs = [asyncio.to_thread(run, MANY_WRITERS, tmp_path, str(seed)) for seed in range(3)]

    await asyncio.gather(*runs)

    async with EmbeddedSaver.from_conn_string(str(tmp_path / "c.sqlite")) as saver:
        states = [await counting(saver).aget_state(thread(name)) for name in "abc"]
    assert sum(state.values["count"] for state in states) == 3 * 40


@pytest.mark.parametrize("room", [120_000, 230_000])
def test_a_full_disk_fails_a_run_by_name_and_with_room_it_goes_on(
    room: int, tmp_path: Path
) -> None:
    assert run(ON_A_FULL_DISK, tmp_path, str(room)) == ["STORE_UNAVAILABLE"]
    assert run(ON_A_FULL_DISK, tmp_path, "any") == [",".join(REFERENCE_END_LOG)]
