"""What `AsyncSqliteSaver` does by itself where the embedded saver, made from it, does otherwise.

Each test here has its counterpart in the other `test_sqlite_saver_*` files or in
`tests/unit/adapters/sqlite`; together they show that those can fail.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command, StateSnapshot

from tests.contract.saver_graphs import (
    PAUSE_ANSWER,
    PAUSE_END,
    PAUSE_INPUT,
    PAUSE_QUESTION,
    RAN,
    counting,
    pausing,
    pending,
    ran,
    thread,
)
from tests.fakes.machines import machine


def answered(state: StateSnapshot, answer: str) -> Any:  # noqa: ANN401 - LangGraph's own
    return Command(resume={pending(state)[PAUSE_QUESTION]: answer})


@asynccontextmanager
async def two_that_meet(folder: Path) -> AsyncIterator[tuple[AsyncSqliteSaver, AsyncSqliteSaver]]:
    """Open two savers on a file; while both run, neither goes on before the other has read."""
    both = asyncio.Barrier(2)

    class Meeting(AsyncSqliteSaver):
        async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
            found = await super().aget_tuple(config)
            await both.wait()
            return found

    name = str(folder / "c.sqlite")
    async with AsyncSqliteSaver.from_conn_string(name) as first:
        await pausing(first).ainvoke(PAUSE_INPUT, thread("paused", **{RAN: str(folder / "ran")}))
    async with Meeting.from_conn_string(name) as one, Meeting.from_conn_string(name) as two:
        yield one, two


async def test_of_two_inputs_at_once_one_is_lost(tmp_path: Path) -> None:
    async with two_that_meet(tmp_path) as pair:
        runs = [counting(saver).ainvoke({"log": []}, thread("t")) for saver in pair]

        ends = await asyncio.gather(*runs)

    assert [end["count"] for end in ends] == [1, 1]


async def test_two_resumes_at_once_both_run(tmp_path: Path) -> None:
    noted = str(tmp_path / "ran")
    config = thread("paused", **{RAN: noted})
    async with two_that_meet(tmp_path) as pair:
        states = await asyncio.gather(*(pausing(saver).aget_state(config) for saver in pair))
        runs = [
            pausing(saver).ainvoke(answered(state, answer), config)
            for saver, state, answer in zip(pair, states, ("yes", "no"), strict=True)
        ]

        await asyncio.gather(*runs)

    assert ran(noted).count("after") == 2


async def test_an_answer_on_a_clock_that_is_behind_is_lost(tmp_path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.sqlite")) as saver:
        graph = pausing(saver)
        with machine(minutes_ahead=0):
            await graph.ainvoke(PAUSE_INPUT, thread("t"))
        state = await graph.aget_state(thread("t"))

        with machine(minutes_ahead=-5):
            await graph.ainvoke(answered(state, PAUSE_ANSWER), thread("t"))

        assert (await graph.aget_state(thread("t"))).values != PAUSE_END


async def test_an_altered_value_is_served_as_if_it_were_the_state(tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        graph = counting(saver)
        await graph.ainvoke({"doc": "hello"}, thread("t"))
        connection = sqlite3.connect(file)
        connection.execute(
            """
            UPDATE checkpoints
            SET checkpoint = CAST(replace(checkpoint, 'hello', 'jello') AS BLOB)
            """
        )
        connection.commit()
        connection.close()

        assert (await graph.aget_state(thread("t"))).values["doc"] == "jello"


async def test_it_cannot_be_pruned_and_keeps_every_checkpoint(tmp_path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.sqlite")) as saver:
        graph = counting(saver)
        for _ in range(10):
            await graph.ainvoke({"log": []}, thread("t"))

        with pytest.raises(NotImplementedError):
            await saver.aprune(["t"])

        assert len([found async for found in saver.alist(thread("t"))]) == 30


async def test_a_listing_holds_its_lock_while_its_reader_is_busy(tmp_path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.sqlite")) as saver:
        await counting(saver).ainvoke({"log": []}, thread("t"))

        async for _ in saver.alist(thread("t")):
            assert saver.lock.locked()


async def test_a_plain_call_on_its_loop_is_refused(tmp_path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.sqlite")) as saver:
        with pytest.raises(asyncio.InvalidStateError):
            saver.get_tuple(thread("t"))
