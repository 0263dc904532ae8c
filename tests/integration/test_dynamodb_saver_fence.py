"""One writer a thread: leases, what a writer without one may do, and clocks that differ."""

import asyncio
import time
from typing import Any

import pytest
from langgraph.checkpoint.base import id as generator
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)
from langgraph.types import Command

from ibid.adapters.dynamodb.saver import DynamoSaver
from ibid.domain.errors import (
    CheckpointStale,
    LeaseLost,
    Misconfigured,
    ThreadGone,
    ThreadLeased,
)
from ibid.domain.leases import Lease
from tests.contract.saver_graphs import (
    PAUSE_ANSWER,
    PAUSE_END,
    PAUSE_INPUT,
    nested,
    nested_end,
    pausing,
    thread,
)
from tests.fakes.aws_faults import intercepted, lost
from tests.fakes.ministack import Stack

pytestmark = pytest.mark.ministack


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def put(saver: DynamoSaver, configurable: dict[str, Any], *, ns: str = "", **values: object) -> Any:  # noqa: ANN401 - a config
    config: Any = {"configurable": {**configurable, "checkpoint_ns": ns}}
    made = generate_checkpoint(channel_values=values, channel_versions=dict.fromkeys(values, 1))
    stored = saver.put(config, made, generate_metadata(), {})
    return {"configurable": {**configurable, **stored["configurable"]}}


def read(saver: DynamoSaver, config: Any) -> Any:  # noqa: ANN401 - a config, a state
    found = saver.get_tuple(config)
    if found is None:
        return None
    writes = [(channel, value) for _, channel, value in found.pending_writes or []]
    return found.checkpoint["channel_values"], writes


async def taken_over(saver: DynamoSaver, clock: Clock, thread_id: str = "t") -> Lease:
    """Take a lease whose holder shows no sign of life."""
    with pytest.raises(ThreadLeased):
        await saver.take_lease(thread_id, "observer")
    clock.now += 15
    return await saver.take_lease(thread_id, "observer")


async def test_a_lease_has_one_holder_and_its_token_rises(stack: Stack) -> None:
    saver, other = stack.saver(), stack.saver()

    first = await saver.take_lease("t", "one")
    with pytest.raises(ThreadLeased, match="'one'"):
        await other.take_lease("t", "two")
    await saver.release(first)
    second = await other.take_lease("t", "two")

    assert (first.token, second.token) == (1, 2)
    with pytest.raises(LeaseLost):
        await saver.beat(first)


async def test_of_ten_who_ask_at_once_one_gets_the_lease(stack: Stack) -> None:
    savers = [stack.saver() for _ in range(10)]

    asked = [saver.take_lease("t", str(at)) for at, saver in enumerate(savers)]
    found = await asyncio.gather(*asked, return_exceptions=True)

    assert sorted(type(one).__name__ for one in found) == ["Lease"] + ["ThreadLeased"] * 9


async def test_a_lease_that_moves_is_never_taken_and_one_that_does_not_is(stack: Stack) -> None:
    clock = Clock()
    holder, observer = stack.saver(), stack.saver(monotonic=clock)
    lease = await holder.take_lease("t", "holder")
    for _ in range(3):
        with pytest.raises(ThreadLeased):
            await observer.take_lease("t", "observer")
        await holder.beat(lease)
        clock.now += 100
    with pytest.raises(ThreadLeased):
        await observer.take_lease("t", "observer")
    clock.now += 14.9
    with pytest.raises(ThreadLeased):
        await observer.take_lease("t", "observer")
    clock.now += 0.1

    assert (await observer.take_lease("t", "observer")).token == 2
    with pytest.raises(LeaseLost):
        await holder.beat(lease)


async def test_a_taking_whose_reply_was_lost_is_still_ones_own(stack: Stack) -> None:
    saver = stack.saver()

    with intercepted(lost(frozenset({"PutItem"}), 1)):
        lease = await saver.take_lease("t", "one")

    await saver.beat(lease)
    assert lease.token == 1


async def test_what_a_stale_writer_stores_after_the_cut_is_never_read(stack: Stack) -> None:
    clock = Clock()
    stale, saver = stack.saver(), stack.saver(monotonic=clock)
    old = (await stale.take_lease("t", "stale")).configurable
    head = put(stale, old, v="before")
    stale.put_writes(head, [("c", "before")], "task1")
    child = put(stale, old, ns="child:1", v="child before")
    stale.put_writes(child, [("c", "child before")], "task")

    lease = await taken_over(saver, clock)
    later = put(stale, old, v="after")
    stale.put_writes(head, [("c", "after")], "task2")
    stale.put_writes(later, [("c", "after")], "task3")
    put(stale, old, ns="child:1", v="child after")
    put(stale, old, ns="child:2", v="another child")
    stale.put_writes(child, [("d", "child after")], "task2")

    for reader in (saver, stack.saver(), stale):
        assert read(reader, generate_config("t")) == ({"v": "before"}, [("c", "before")])
        assert read(reader, generate_config("t", checkpoint_ns="child:1")) == (
            {"v": "child before"},
            [("c", "child before")],
        )
        assert read(reader, generate_config("t", checkpoint_ns="child:2")) is None
        assert read(reader, later) is None
        assert len(list(reader.list(generate_config("t")))) == 1
    assert saver.get_tuple({"configurable": lease.configurable}) is not None


async def test_a_stale_writer_cannot_change_what_the_next_one_has_read(stack: Stack) -> None:
    clock = Clock()
    stale, saver = stack.saver(), stack.saver(monotonic=clock)
    old = (await stale.take_lease("t", "stale")).configurable
    head = put(stale, old, v=1)
    stale.put_writes(head, [("__resume__", ["yes"])], "task")
    await taken_over(saver, clock)

    with pytest.raises(CheckpointStale):
        stale.put_writes(head, [("__resume__", ["no"])], "task")

    assert read(saver, generate_config("t")) == ({"v": 1}, [("__resume__", ["yes"])])


async def test_the_next_writers_work_goes_before_a_stale_ones(stack: Stack) -> None:
    clock = Clock()
    stale, saver = stack.saver(), stack.saver(monotonic=clock)
    old = (await stale.take_lease("t", "stale")).configurable
    head = put(stale, old, v=1)
    new = (await taken_over(saver, clock)).configurable
    mine: Any = {"configurable": {**head["configurable"], **new}}

    stale.put_writes(head, [("c", "stale"), ("d", "stale")], "task")
    saver.put_writes(mine, [("c", "mine")], "task")
    stale.put_writes(head, [("c", "stale"), ("e", "stale")], "task")

    assert read(saver, generate_config("t")) == ({"v": 1}, [("c", "mine")])


async def test_a_taker_that_died_before_it_had_sealed_loses_nothing(stack: Stack) -> None:
    clock = Clock()
    writer, dying, saver = stack.saver(), stack.saver(monotonic=clock), stack.saver(monotonic=clock)
    old = (await writer.take_lease("t", "writer")).configurable
    head = put(writer, old, v=1)
    writer.put_writes(head, [("c", 1)], "task")

    class Died(BaseException):
        pass

    def dies(operation: str, params: Any, call: Any) -> Any:  # noqa: ANN401 - botocore's own
        if operation == "UpdateItem":
            raise Died
        return call(params)

    with intercepted(dies), pytest.raises(Died):
        await taken_over(dying, clock)
    assert read(saver, generate_config("t")) == ({"v": 1}, [("c", 1)])
    put(writer, old, v="stale")
    await taken_over(saver, clock)
    writer.put_writes(head, [("c", "stale")], "task2")

    assert read(saver, generate_config("t")) == ({"v": 1}, [("c", 1)])


async def test_a_holder_without_a_sign_of_life_for_a_term_asks_before_it_writes(
    stack: Stack,
) -> None:
    frozen, clock = Clock(), Clock()
    holder, saver = stack.saver(monotonic=frozen), stack.saver(monotonic=clock)
    old = (await holder.take_lease("t", "holder")).configurable
    head = put(holder, old, v=1)
    frozen.now += 15
    head = put(holder, old, v=2)  # nobody took it: it is alive again
    await taken_over(saver, clock)
    frozen.now += 15

    with pytest.raises(CheckpointStale):
        put(holder, old, v=3)
    with pytest.raises(CheckpointStale):
        holder.put_writes(head, [("c", 1)], "task")

    assert len(stack.items("checkpoints")) == 3  # the fence and two


async def test_a_run_without_a_lease_cannot_write_to_a_leased_thread(stack: Stack) -> None:
    saver = stack.saver()
    graph = pausing(saver)
    async with saver.leased("t", "one") as lease:
        await graph.ainvoke(PAUSE_INPUT, {"configurable": lease.configurable})
    state = await graph.aget_state(thread("t"))

    with pytest.raises(CheckpointStale, match="no token"):
        await graph.ainvoke(answer(state), thread("t"))
    with pytest.raises(CheckpointStale, match="no token"):
        await graph.aupdate_state(thread("t"), {"log": ["x"]})

    async with saver.leased("t", "two") as lease:
        await graph.ainvoke(answer(state), {"configurable": lease.configurable})
    assert (await graph.aget_state(thread("t"))).values == PAUSE_END


async def test_a_thread_that_was_written_without_leases_can_be_leased(stack: Stack) -> None:
    saver = stack.saver()
    graph = nested(saver)
    await graph.ainvoke(PAUSE_INPUT, thread("t"))
    for given in ("Ann", "blue"):
        async with saver.leased("t", "one") as lease:
            config: Any = {"configurable": lease.configurable}
            await graph.ainvoke(answer(await graph.aget_state(config), given), config)

    assert (await graph.aget_state(thread("t"))).values == nested_end("Ann", "blue")


def answer(state: Any, given: object = PAUSE_ANSWER) -> Any:  # noqa: ANN401 - LangGraph's own
    return Command(resume={one.id: given for one in state.interrupts})


async def test_of_two_resumes_at_once_one_is_refused_and_no_node_runs_twice(stack: Stack) -> None:
    savers = [stack.saver(), stack.saver()]
    async with savers[0].leased("t", "start") as lease:
        await pausing(savers[0]).ainvoke(PAUSE_INPUT, {"configurable": lease.configurable})

    refusal = asyncio.Event()

    async def resumed(saver: DynamoSaver, given: str) -> str:
        graph = pausing(saver)
        try:
            lease = await saver.take_lease("t", given)
        except ThreadLeased:
            refusal.set()
            raise
        await refusal.wait()
        config: Any = {"configurable": lease.configurable}
        await graph.ainvoke(answer(await graph.aget_state(config), given), config)
        await saver.release(lease)
        return given

    done = await asyncio.gather(
        resumed(savers[0], "yes"), resumed(savers[1], "no"), return_exceptions=True
    )

    (won,) = [one for one in done if isinstance(one, str)]
    (refused,) = [one for one in done if not isinstance(one, str)]
    assert isinstance(refused, ThreadLeased)
    state = await pausing(savers[0]).aget_state(thread("t"))
    assert state.values == {**PAUSE_END, "answers": [won]}


async def test_a_lease_that_is_lost_in_a_run_is_told_at_its_end(stack: Stack) -> None:
    clock = Clock()
    holder, saver = stack.saver(), stack.saver(monotonic=clock)

    async def run() -> None:
        async with holder.leased("t", "holder") as lease:
            put(holder, lease.configurable, v="before")
            await taken_over(saver, clock)
            put(holder, lease.configurable, v="after")

    with pytest.raises(LeaseLost):
        await run()

    assert read(saver, generate_config("t")) == ({"v": "before"}, [])


async def test_a_deleted_thread_stays_deleted_whoever_still_writes(stack: Stack) -> None:
    saver, other = stack.saver(), stack.saver()
    lease = await saver.take_lease("t", "one")
    head = put(saver, lease.configurable, v=1)

    await other.adelete_thread("t")
    put(saver, lease.configurable, v=2)
    saver.put_writes(head, [("c", 1)], "task")

    with pytest.raises(ThreadGone):
        other.get_tuple(generate_config("t"))
    with pytest.raises(ThreadGone):
        await other.take_lease("t", "two")
    with pytest.raises(LeaseLost):
        await saver.release(lease)
    with pytest.raises(CheckpointStale):
        put(saver, lease.configurable, v=3)
    await other.adelete_thread("t")
    assert [item["checkpoint_id"]["S"] for item in stack.items("checkpoints")] == ["~fence"]
    assert stack.items("writes") == []


async def test_a_saver_without_fencing_has_no_leases(stack: Stack) -> None:
    with pytest.raises(Misconfigured):
        await stack.saver(fencing=False).take_lease("t", "one")


async def test_a_release_waits_for_the_writes_under_way(stack: Stack) -> None:
    saver = stack.saver()
    lease = await saver.take_lease("t", "one")
    order: list[str] = []

    def slow(operation: str, params: Any, call: Any) -> Any:  # noqa: ANN401 - botocore's own
        if operation == "PutItem":
            time.sleep(0.3)
        found = call(params)
        order.append(operation)
        return found

    with intercepted(slow):
        config: Any = {"configurable": {**lease.configurable, "checkpoint_ns": ""}}
        writing = asyncio.create_task(
            saver.aput(config, generate_checkpoint(), generate_metadata(), {})
        )
        await asyncio.sleep(0.1)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await saver.release(lease)

    assert order == ["PutItem", "UpdateItem"]


@pytest.mark.parametrize("skew_s", [-300, 300])
async def test_a_resume_on_a_machine_with_another_clock_is_what_is_read(
    skew_s: int, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, config = pausing(stack.saver()), thread("t")
    await graph.ainvoke(PAUSE_INPUT, config)
    state = await graph.aget_state(config)
    now = time.time_ns
    monkeypatch.setattr(generator, "_last_v6_timestamp", None)  # another process
    monkeypatch.setattr(time, "time_ns", lambda: now() + skew_s * 1_000_000_000)

    await pausing(stack.saver()).ainvoke(answer(state), config)

    monkeypatch.undo()
    assert (await graph.aget_state(config)).values == PAUSE_END
    history = [
        one.config["configurable"]["checkpoint_id"]
        async for one in graph.aget_state_history(config)
    ]
    assert history == sorted(history, reverse=True)


def test_with_the_unmodified_package_a_clock_behind_loses_the_answer(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, config = pausing(stack.unmodified()), thread("t")
    graph.invoke(PAUSE_INPUT, config)
    state = graph.get_state(config)
    now = time.time_ns
    monkeypatch.setattr(generator, "_last_v6_timestamp", None)
    monkeypatch.setattr(time, "time_ns", lambda: now() - 300 * 1_000_000_000)

    graph.invoke(answer(state), config)

    assert graph.get_state(config).values != PAUSE_END


async def test_an_edit_of_an_earlier_checkpoint_on_a_clock_behind_is_the_newest(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, config = pausing(stack.saver()), thread("t")
    await graph.ainvoke(PAUSE_INPUT, config)
    history = [one async for one in graph.aget_state_history(config)]
    now = time.time_ns
    monkeypatch.setattr(generator, "_last_v6_timestamp", None)
    monkeypatch.setattr(time, "time_ns", lambda: now() - 300 * 1_000_000_000)

    await graph.aupdate_state(history[-2].config, {"log": ["edited"]})

    assert "edited" in (await graph.aget_state(config)).values["log"]


def test_an_id_below_its_parents_is_refused(stack: Stack) -> None:
    saver = stack.saver()
    older = generate_checkpoint()
    parent = put(saver, {"thread_id": "t"}, v=1)

    with pytest.raises(CheckpointStale, match="below its parent"):
        saver.put(parent, older, generate_metadata(), {})
