"""Whole graphs on the embedded saver: clocks that differ, time travel, secrets, long threads."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict
from unittest.mock import patch

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Durability

from ibid.adapters.sqlite.saver import EmbeddedSaver
from ibid.domain.errors import CheckpointCorrupt, CheckpointStale, StoreUnavailable
from tests.contract.saver_graphs import (
    DIAMOND_END,
    DIAMOND_INPUT,
    DURABILITIES,
    GRAPHS,
    NESTED_INPUT,
    NESTED_QUESTIONS,
    PAUSE_ANSWER,
    PAUSE_END,
    PAUSE_INPUT,
    PAUSE_QUESTION,
    Graph,
    counting,
    diamond,
    fan_out,
    nested,
    nested_end,
    pausing,
    pending,
    prose,
    thread,
)
from tests.contract.saver_makers import counting_transactions
from tests.fakes.cipher import KeyedCipher
from tests.fakes.machines import machine


@asynccontextmanager
async def opened(folder: Path, **options: Any) -> AsyncIterator[EmbeddedSaver]:  # noqa: ANN401 - the saver's own
    saver = await EmbeddedSaver.open(folder / "c.sqlite", **options)
    try:
        yield saver
    finally:
        await saver.close()


@pytest.mark.parametrize("minutes_ahead", [-5, 5])
@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_resume_counts_on_a_machine_whose_clock_is_five_minutes_off(
    minutes_ahead: float,
    durability: Durability,
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as saver:
        with machine(minutes_ahead=0):
            await pausing(saver).ainvoke(PAUSE_INPUT, thread("t"), durability=durability)

        with machine(minutes_ahead=minutes_ahead):
            graph = pausing(saver)
            asked = pending(await graph.aget_state(thread("t")))[PAUSE_QUESTION]
            command: Any = Command(resume={asked: PAUSE_ANSWER})
            await graph.ainvoke(command, thread("t"), durability=durability)

        with machine(minutes_ahead=0):
            state = await graph.aget_state(thread("t"))
        assert state.values == PAUSE_END


@pytest.mark.parametrize("minutes_ahead", [-5, 5])
async def test_a_fork_from_the_past_is_the_newest_whatever_the_clock_says(
    minutes_ahead: float, tmp_path: Path
) -> None:
    async with opened(tmp_path) as saver:
        graph = diamond(saver)
        with machine(minutes_ahead=0):
            await graph.ainvoke(DIAMOND_INPUT, thread("t"))
        history = [each async for each in graph.aget_state_history(thread("t"))]

        with machine(minutes_ahead=minutes_ahead):
            await graph.aupdate_state(history[-2].config, {"x": "forked"}, as_node="a")

        assert (await graph.aget_state(thread("t"))).values["x"] == "forked"


async def test_an_id_that_were_lost_all_the_same_is_loud(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        with machine(minutes_ahead=0):
            await pausing(saver).ainvoke(PAUSE_INPUT, thread("t"))

        with machine(minutes_ahead=-5), patch("ibid.adapters.sqlite.saver.rise_above"):
            graph = pausing(saver)
            asked = pending(await graph.aget_state(thread("t")))[PAUSE_QUESTION]
            command: Any = Command(resume={asked: PAUSE_ANSWER})
            with pytest.raises(CheckpointStale, match="is not above"):
                await graph.ainvoke(command, thread("t"))


async def test_history_a_state_of_the_past_and_a_fork_from_it(tmp_path: Path) -> None:
    async def answered(graph: Graph, answer: str) -> dict[str, Any]:
        asked = pending(await graph.aget_state(thread("t")))[PAUSE_QUESTION]
        command: Any = Command(resume={asked: answer})
        return await graph.ainvoke(command, thread("t"))

    async with opened(tmp_path) as saver:
        graph = pausing(saver)
        await graph.ainvoke(PAUSE_INPUT, thread("t"))
        await answered(graph, PAUSE_ANSWER)
        history = [each async for each in graph.aget_state_history(thread("t"))]
        paused = history[2]

        past = await graph.aget_state(paused.config)
        forked = await graph.aupdate_state(paused.config, {"x": "other"}, as_node="before")
        await graph.ainvoke(None, forked)
        again = await answered(graph, "that")

        assert [each.next for each in history] == [
            (),
            ("after",),
            ("ask",),
            ("before",),
            ("__start__",),
        ]
        assert past.values == {"log": ["in", "before"], "answers": []}
        assert again == {**PAUSE_END, "answers": ["that"], "x": "other"}
        assert (await graph.aget_state(thread("t"))).values == again
        assert (await graph.aget_state(history[0].config)).values == PAUSE_END


async def test_an_old_checkpoint_can_be_run_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        graph = diamond(saver)
        await graph.ainvoke(DIAMOND_INPUT, thread("t"))
        history = [each async for each in graph.aget_state_history(thread("t"))]

        again = await graph.ainvoke(None, history[-2].config)

        assert again == DIAMOND_END


async def test_a_token_reaches_every_write_of_a_graph_and_its_subgraph(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver, saver.leased("t", "me") as lease:
        graph, config = nested(saver), {"configurable": lease.configurable}

        await graph.ainvoke(NESTED_INPUT, config)  # type: ignore[call-overload]  # a config
        for question, answer in zip(NESTED_QUESTIONS, "12", strict=True):
            asked = pending(await graph.aget_state(thread("t")))[question]
            await graph.ainvoke(Command(resume={asked: answer}), config)  # type: ignore[call-overload]  # a config
        await graph.aupdate_state(config, {"x": "by hand"})  # type: ignore[arg-type]  # a config

        state = await graph.aget_state(thread("t"))
        assert state.values == {**nested_end("1", "2"), "x": "by hand"}


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_run_whose_token_is_over_fails_and_leaves_nothing(
    durability: Durability,
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as saver:
        lease = await saver.take_lease("t", "me")
        await saver.release(lease)
        graph, config = diamond(saver), {"configurable": lease.configurable}

        with pytest.raises(CheckpointStale):
            await graph.ainvoke(DIAMOND_INPUT, config, durability=durability)  # type: ignore[call-overload]  # a config

        assert (await graph.aget_state(thread("t"))).created_at is None


async def test_ten_tasks_of_one_step_keep_their_order(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        values = await fan_out(saver, width=25).ainvoke({"log": []}, thread("t"))

        assert values["answers"] == list(range(25))
        assert (await fan_out(saver).aget_state(thread("t"))).values == values


def test_a_graph_runs_by_plain_calls_too(tmp_path: Path) -> None:
    saver = asyncio.run(EmbeddedSaver.open(tmp_path / "c.sqlite"))
    graph = pausing(saver)

    graph.invoke(PAUSE_INPUT, thread("t"))
    asked = pending(graph.get_state(thread("t")))[PAUSE_QUESTION]
    values = graph.invoke(Command(resume={asked: PAUSE_ANSWER}), thread("t"))

    assert values == PAUSE_END
    assert len(list(graph.get_state_history(thread("t")))) == 5
    asyncio.run(saver.close())


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


@pytest.mark.slow
async def test_a_thread_of_a_thousand_invocations_stays_small_when_it_is_pruned(
    tmp_path: Path,
) -> None:
    sizes = []
    async with opened(tmp_path) as saver:
        graph, simple = nested(saver), counting(saver)
        for number in range(1_000):
            if number % 100 == 0:  # a subgraph's namespaces must not pile up either
                await graph.ainvoke(NESTED_INPUT, thread("nested"))
                await saver.aprune(["nested"])
                sizes.append(_bytes(tmp_path))
            given = {"doc": prose(20_000, seed=number)}
            await simple.ainvoke(given, thread("t"))
            await saver.aprune(["t"])

        state = await simple.aget_state(thread("t"))
        assert state.values["count"] == 1_000
        assert len([each async for each in saver.alist(thread("t"))]) == 1
        assert len([each async for each in saver.alist(thread("nested"))]) <= 3
    # SQLite's log grows to 4 MB before it is written back; without pruning it were over 20
    assert max(sizes) < 6_000_000
    assert _bytes(tmp_path) < 1_000_000  # closed: the log is gone


@dataclass
class Point:
    x: int


class PointState(TypedDict, total=False):
    point: Point
    log: Annotated[list[str], lambda old, new: old + new]


async def test_only_types_that_a_graph_declares_come_back_as_such(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        builder = StateGraph(PointState)
        builder.add_node("make", lambda _: {"point": Point(1), "log": ["made"]})
        builder.add_edge(START, "make")
        graph = builder.compile(checkpointer=saver)
        await graph.ainvoke({"log": []}, thread("t"))

        declared = (await graph.aget_state(thread("t"))).values["point"]
        bare = await saver.aget_tuple(thread("t"))

    assert declared == Point(1)
    assert bare is not None
    assert bare.checkpoint["channel_values"]["point"] == {"x": 1}  # data, not a class that ran


async def test_what_is_stored_is_compressed_then_encrypted(tmp_path: Path) -> None:
    text = "sesame " * 20_000
    serde = EncryptedSerializer(KeyedCipher(b"key"), JsonPlusSerializer())
    async with opened(tmp_path, serde=serde) as saver:
        await counting(saver).ainvoke({"doc": text}, thread("t"))

        state = await counting(saver).aget_state(thread("t"))
        stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())  # noqa: ASYNC240 - a test may block

    assert state.values["doc"] == text
    assert b"sesame" not in stored
    assert len(stored) < len(text)  # three checkpoints of it, and the tables


async def test_another_key_is_a_corrupt_checkpoint_not_an_empty_one(tmp_path: Path) -> None:
    mine, other = (EncryptedSerializer(KeyedCipher(key)) for key in (b"mine", b"other"))
    async with opened(tmp_path, serde=mine) as saver:
        await counting(saver).ainvoke({"doc": "x"}, thread("t"))

    async with opened(tmp_path, serde=other) as saver:
        with pytest.raises(CheckpointCorrupt, match=r"'msgpack\S*\+keyed' can't be unpacked"):
            await counting(saver).aget_state(thread("t"))


RUNS: Mapping[str, tuple[Any, Any]] = {
    "diamond": (DIAMOND_INPUT, DIAMOND_END),
    "pausing": (PAUSE_INPUT, PAUSE_END),
}


async def brought_to_its_end(
    name: str, saver: EmbeddedSaver, thread_id: str, durability: Durability
) -> dict[str, Any]:
    """Start the graph or go on with it, answer what it asks, and return its state."""
    graph = GRAPHS[name](saver)
    async with saver.leased(thread_id, "me") as lease:
        config: Any = {"configurable": lease.configurable}
        state = await graph.aget_state(config)
        while True:
            work: Any = None
            if state.created_at is None:
                work = RUNS[name][0]
            elif state.interrupts:
                work = Command(resume={one.id: PAUSE_ANSWER for one in state.interrupts})
            await graph.ainvoke(work, config, durability=durability)
            state = await graph.aget_state(config)
            if not state.interrupts:
                return dict(state.values)


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("name", RUNS)
async def test_a_run_goes_on_right_whichever_transaction_it_was_cancelled_after(
    name: str, durability: Durability, tmp_path: Path
) -> None:
    ends, at, was_cancelled = [], 0, True
    async with opened(tmp_path) as saver:
        while was_cancelled:
            at += 1
            left, loop = at, asyncio.get_running_loop()
            run = asyncio.ensure_future(brought_to_its_end(name, saver, f"t{at}", durability))

            def cancel(run: "asyncio.Future[Any]" = run, loop: Any = loop) -> None:  # noqa: ANN401 - the loop
                nonlocal left
                left -= 1
                if left == 0:
                    loop.call_soon_threadsafe(run.cancel)

            with counting_transactions(cancel):
                await asyncio.wait([run])
            was_cancelled = left <= 0
            ends.append(await brought_to_its_end(name, saver, f"t{at}", durability))

    assert len(ends) > 3
    assert ends == [RUNS[name][1]] * len(ends)


async def test_a_saver_that_is_closed_in_a_run_fails_it_by_name_and_loses_nothing(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as saver:
        written = asyncio.Event()
        loop = asyncio.get_running_loop()
        with counting_transactions(lambda: loop.call_soon_threadsafe(written.set)):
            run = asyncio.ensure_future(
                fan_out(saver).ainvoke({"log": []}, thread("t"), durability="sync")
            )
            await written.wait()
            await saver.close()

        with pytest.raises(StoreUnavailable, match="is closed"):
            await run

    async with opened(tmp_path) as saver:
        values = await fan_out(saver).ainvoke(None, thread("t"))
    assert values["log"] == ["open", "close"]
    assert values["answers"] == list(range(10))


async def test_the_loop_goes_on_while_a_file_is_busy(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver, opened(tmp_path) as other:
        entered, leave = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def hold(_: object) -> None:
            loop.call_soon_threadsafe(entered.set)
            asyncio.run_coroutine_threadsafe(leave.wait(), loop).result()

        holding = asyncio.ensure_future(other._file.write(hold))  # noqa: SLF001 - to be in its way
        await entered.wait()
        running = asyncio.ensure_future(counting(saver).ainvoke({"doc": "x"}, thread("t")))
        for _ in range(100):  # a loop that were blocked could not let go
            await asyncio.sleep(0)
        leave.set()
        await holding

        assert (await running)["count"] == 1
