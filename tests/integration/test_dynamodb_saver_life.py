"""Deleting, pruning, copying and expiring; history, forks, and storage that stays bounded."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)
from langgraph.types import Command

from ibid.adapters.dynamodb.saver import DynamoSaver
from ibid.domain.errors import ThreadLeased
from tests.contract.saver_child import STORES
from tests.contract.saver_graphs import (
    DIAMOND_END,
    DIAMOND_INPUT,
    NESTED_INPUT,
    PAUSE_ANSWER,
    PAUSE_END,
    PAUSE_INPUT,
    counting,
    diamond,
    nested,
    nested_end,
    noise,
    pausing,
    pending,
    thread,
)
from tests.fakes.aws_faults import intercepted
from tests.fakes.ministack import Stack

pytestmark = pytest.mark.ministack

DAY = 86_400.0


class Clock:
    """Epoch seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def put(saver: DynamoSaver, config: Any, *, run_id: str | None = None, **values: object) -> Any:  # noqa: ANN401 - configs
    made = generate_checkpoint(channel_values=values, channel_versions=dict.fromkeys(values, 1))
    more: dict[str, Any] = {} if run_id is None else {"run_id": run_id}
    return saver.put(config, made, generate_metadata(**more), {})


def answered(state: Any, given: object = PAUSE_ANSWER) -> Any:  # noqa: ANN401 - LangGraph's own
    return Command(resume={one.id: given for one in state.interrupts})


def expire(stack: Stack, clock: Clock, *, newest_first: bool) -> None:
    """Delete what DynamoDB may delete by now, one item short of all, in the worst order."""
    client = stack.boto("dynamodb")
    for table, key in (
        ("checkpoints", ("thread_id", "checkpoint_id")),
        ("writes", ("thread_id_checkpoint_id_checkpoint_ns", "task_id_idx")),
    ):
        over = [one for one in stack.items(table) if float(one["ttl"]["N"]) < clock.now]
        over.sort(key=lambda one: one[key[1]]["S"], reverse=newest_first)
        for item in over[:-1]:
            client.delete_item(TableName=stack.place[table], Key={name: item[name] for name in key})
    client.close()


async def test_a_deleted_thread_leaves_nothing(stack: Stack) -> None:
    saver = stack.saver(inline_bytes=2_000)
    graph = nested(saver)
    await graph.ainvoke({**NESTED_INPUT, "blob": noise(9_000)}, thread("t"))
    other = put(saver, generate_config("other"), v=1)
    assert stack.objects() != []

    await saver.adelete_thread("t")
    await saver.adelete_thread("t")

    assert [one["thread_id"]["S"] for one in stack.items("checkpoints")] == ["other"]
    assert (stack.items("writes"), stack.objects()) == ([], [])
    assert saver.get_tuple(other) is not None


def test_so_do_writes_whose_checkpoint_never_came(stack: Stack) -> None:
    saver = stack.saver()
    saver.put_writes(generate_config("t", checkpoint_id="never"), [("c", 1)], "task")
    saver.put_writes(generate_config("u", checkpoint_id="never"), [("c", 1)], "task")

    saver.delete_thread("t")

    assert [one["orphan_thread"]["S"] for one in stack.items("writes")] == ["u"]


def test_and_an_object_that_nothing_points_to(stack: Stack) -> None:
    saver = stack.saver()
    config = put(saver, generate_config("t"), blob=noise(500_000))
    client = stack.boto("dynamodb")
    key = {"thread_id": {"S": "t"}, "checkpoint_id": {"S": config["configurable"]["checkpoint_id"]}}
    client.delete_item(TableName=stack.place["checkpoints"], Key=key)
    client.close()
    put(saver, generate_config("t2"), blob=noise(500_000))

    saver.delete_thread("t")

    assert ["t-t2/" in key for key in stack.objects()] == [True]


async def test_a_copy_has_everything_and_goes_on_by_itself(stack: Stack) -> None:
    saver = stack.saver(inline_bytes=2_000)
    graph = nested(saver)
    await graph.ainvoke({**NESTED_INPUT, "doc": "x", "blob": noise(9_000)}, thread("t"))
    before = await graph.aget_state(thread("t"), subgraphs=True)

    await saver.acopy_thread("t", "copy")
    await saver.adelete_thread("t")
    copied = await graph.aget_state(thread("copy"), subgraphs=True)
    assert (copied.values, pending(copied)) == (before.values, pending(before))
    for given in ("Ann", "blue"):
        await graph.ainvoke(answered(await graph.aget_state(thread("copy")), given), thread("copy"))

    end = (await graph.aget_state(thread("copy"))).values
    assert end["blob"] == noise(9_000)
    assert {name: end[name] for name in ("log", "answers")} == nested_end("Ann", "blue")


async def test_nobody_copies_onto_a_thread_that_is_being_written(stack: Stack) -> None:
    saver = stack.saver()
    put(saver, generate_config("t"), v=1)
    await saver.take_lease("target", "one")

    with pytest.raises(ThreadLeased):
        await saver.acopy_thread("t", "target")


async def test_a_pruned_pause_goes_on_in_its_subgraph(stack: Stack) -> None:
    saver = stack.saver()
    graph, config = nested(saver), thread("t")
    await graph.ainvoke(NESTED_INPUT, config)
    for given in ("Ann", "blue"):
        await saver.aprune(["t"])
        await graph.ainvoke(answered(await graph.aget_state(config), given), config)

    assert (await graph.aget_state(config)).values == nested_end("Ann", "blue")


async def test_pruning_ends_the_namespaces_of_tasks_that_are_done(stack: Stack) -> None:
    saver = stack.saver()
    graph, config = nested(saver), thread("t")
    await graph.ainvoke(NESTED_INPUT, config)
    for given in ("Ann", "blue"):
        await graph.ainvoke(answered(await graph.aget_state(config), given), config)

    await saver.aprune(["t"])

    assert [one["checkpoint_ns"]["S"] for one in stack.items("checkpoints")] == [""]
    assert stack.items("writes") == []
    assert (await graph.aget_state(config)).values == nested_end("Ann", "blue")


async def test_storage_stays_as_it_is_after_every_invocation_when_it_is_pruned(
    stack: Stack,
) -> None:
    saver = stack.saver()
    graph, config = counting(saver), thread("t")
    sizes = set()
    for _ in range(12):
        async with saver.leased("t", "one") as lease:
            await graph.ainvoke({"doc": "text"}, {"configurable": lease.configurable})
        await saver.aprune(["t"])
        sizes.add((len(stack.items("checkpoints")), len(stack.items("writes"))))

    assert sizes == {(2, 0)}  # the fence and the newest
    assert (await graph.aget_state(config)).values["count"] == 12


def test_pruning_leaves_a_namespace_with_delta_channels_whole(stack: Stack) -> None:
    saver = stack.saver()
    config: Any = generate_config("t")
    for _ in range(3):
        metadata: Any = generate_metadata(counters_since_delta_snapshot={"c": (1, 1)})
        config = saver.put(config, generate_checkpoint(), metadata, {})

    saver.prune(["t"])

    assert len(stack.items("checkpoints")) == 3


def test_a_run_can_be_deleted_after_its_first_checkpoint_was_pruned(stack: Stack) -> None:
    saver = stack.saver()
    config: Any = generate_config("t")
    for number in range(3):
        config = put(saver, config, run_id="run", v=number)
    saver.prune(["t"])
    assert len(stack.items("checkpoints")) == 1

    saver.delete_for_runs(["run", "none"])

    assert stack.items("checkpoints") == []


def test_only_the_first_checkpoint_of_a_run_is_in_the_index(stack: Stack) -> None:
    saver = stack.saver()
    config: Any = generate_config("t")
    for number in range(5):
        config = put(saver, config, run_id=f"run{number // 3}", v=number)

    assert sum("first_of_run" in item for item in stack.items("checkpoints")) == 2


@pytest.mark.parametrize("newest_first", [True, False])
async def test_a_thread_that_is_over_is_none_and_never_an_older_state(
    stack: Stack, *, newest_first: bool
) -> None:
    clock = Clock()
    saver = stack.saver(ttl=timedelta(days=30), clock=clock)
    graph, config = pausing(saver), thread("t")
    await graph.ainvoke(PAUSE_INPUT, config)

    clock.now += 30 * DAY - 60
    late = stack.saver(ttl=timedelta(days=30), clock=lambda: clock.now - 300)  # another's clock
    assert pending(await pausing(late).aget_state(config)) != {}
    clock.now += 60 + 30 * DAY + DAY
    expire(stack, clock, newest_first=newest_first)

    assert (await graph.aget_state(config)).created_at is None
    assert [one async for one in graph.aget_state_history(config)] == []


async def test_a_row_is_over_before_any_item_may_be_deleted(stack: Stack) -> None:
    clock = Clock()
    saver = stack.saver(ttl=timedelta(days=30), clock=clock)
    await pausing(saver).ainvoke(PAUSE_INPUT, thread("t"))

    clock.now += 30 * DAY

    assert saver.get_tuple(generate_config("t")) is None
    assert min(float(one["ttl"]["N"]) for one in stack.items("writes")) > clock.now


async def test_activity_renews_a_pause_its_subgraph_its_writes_and_its_objects(
    stack: Stack,
) -> None:
    clock = Clock()
    saver = stack.saver(ttl=timedelta(days=30), clock=clock, inline_bytes=2_000)
    graph, config = nested(saver), thread("t")
    await graph.ainvoke({**NESTED_INPUT, "blob": noise(9_000)}, config)
    for _ in range(6):  # half a year
        clock.now += 29 * DAY
        assert pending(await graph.aget_state(config)) != {}
        expire(stack, clock, newest_first=True)
    for given in ("Ann", "blue"):
        await graph.ainvoke(answered(await graph.aget_state(config), given), config)

    end = (await graph.aget_state(config)).values
    assert {name: end[name] for name in ("log", "answers")} == nested_end("Ann", "blue")


async def test_a_read_within_the_first_half_of_a_life_writes_nothing(stack: Stack) -> None:
    clock = Clock()
    saver = stack.saver(ttl=timedelta(days=30), clock=clock)
    put(saver, generate_config("t"), v=1)
    before = stack.items("checkpoints")

    clock.now += 14 * DAY
    saver.get_tuple(generate_config("t"))

    assert stack.items("checkpoints") == before


async def test_time_travel_has_a_history_a_state_and_a_fork(stack: Stack) -> None:
    saver = stack.saver()
    graph, config = pausing(saver), thread("t")
    await graph.ainvoke(PAUSE_INPUT, config)
    await graph.ainvoke(answered(await graph.aget_state(config)), config)
    history = [one async for one in graph.aget_state_history(config)]
    assert [one.metadata["step"] for one in history if one.metadata] == [3, 2, 1, 0, -1]
    paused = next(one for one in history if one.next == ("ask",))

    assert (await graph.aget_state(paused.config)).values == {
        "log": ["in", "before"],
        "answers": [],
    }
    fork = await graph.aupdate_state(paused.config, {"log": ["edited"]})
    await graph.ainvoke(None, fork)
    await graph.ainvoke(answered(await graph.aget_state(config), "other"), config)

    end = (await graph.aget_state(config)).values
    assert end == {"log": ["in", "before", "edited", "ask", "after"], "answers": ["other"]}
    assert (await graph.aget_state(history[0].config)).values == PAUSE_END


async def test_a_list_is_limited_filtered_and_cut_on_every_page(stack: Stack) -> None:
    saver = stack.saver()
    config: Any = generate_config("t")
    for number in range(60):
        made = generate_checkpoint(channel_values={"v": noise(30_000, seed=number)})
        config = saver.put(config, made, generate_metadata(step=number, odd=number % 2), {})

    odd = [one async for one in saver.alist(generate_config("t"), filter={"odd": 1}, limit=25)]
    rest = saver.list(generate_config("t"), before=odd[-1].config, filter={"odd": 1})

    steps = [one.metadata["step"] for one in [*odd, *rest]]
    assert steps == list(range(59, 0, -2))
    assert len(list(saver.list(None))) == 60


async def test_two_threads_of_a_process_run_side_by_side(stack: Stack) -> None:
    graph = diamond(stack.saver())

    ends = await asyncio.gather(
        *(graph.ainvoke(DIAMOND_INPUT, thread(f"t{number}")) for number in range(8))
    )

    assert ends == [DIAMOND_END] * 8


class Died(BaseException):
    """Stands for the end of the process."""


@contextmanager
def dying_after(calls: int) -> Iterator[None]:
    """Die after a store call."""
    left = calls

    def hook(operation: str, params: Any, call: Any) -> Any:  # noqa: ANN401 - botocore's own
        nonlocal left
        found = call(params)
        left -= operation in STORES | {"DeleteObjects"}
        if left == 0:
            raise Died
        return found

    with intercepted(hook):
        yield


def filled(saver: DynamoSaver, name: str) -> list[Any]:
    """Make a thread of three checkpoints, with objects; return what `kept` finds of it."""
    config: Any = generate_config(name)
    for number in range(3):
        config = put(saver, config, v=noise(4_000, seed=number))
        saver.put_writes(config, [("c", noise(4_000, seed=number))], "task")
    return kept(saver, name)


def kept(saver: DynamoSaver, name: str) -> list[Any]:
    return [
        (one.checkpoint["channel_values"], one.pending_writes)
        for one in saver.list(generate_config(name))
    ]


@pytest.mark.parametrize(
    ("work", "place", "left"),
    [
        (lambda saver, name: saver.delete_thread(name), "{}", lambda _: []),
        (lambda saver, name: saver.prune([name]), "{}", lambda whole: whole[:1]),
        (lambda saver, name: saver.copy_thread(name, f"{name}-copy"), "{}-copy", list),
    ],
    ids=["deletion", "pruning", "copy"],
)
def test_what_dies_after_any_call_is_finished_by_doing_it_again(
    work: Any,  # noqa: ANN401 - of a saver and a thread
    place: str,
    left: Any,  # noqa: ANN401 - of what was there
    stack: Stack,
) -> None:
    saver, deaths = stack.saver(inline_bytes=2_000), 0
    for calls in itertools.count(1):
        name = f"t{calls}"
        whole = filled(saver, name)
        try:
            with dying_after(calls):
                work(saver, name)
        except Died:
            deaths += 1
            if left(whole):
                assert kept(saver, name)[0] == whole[0]
            work(saver, name)
        assert kept(saver, place.format(name)) == left(whole)
        saver.delete_thread(place.format(name))
        saver.delete_thread(name)
        if deaths < calls:
            break

    assert deaths >= 6
    assert (stack.items("checkpoints"), stack.items("writes"), stack.objects()) == ([], [], [])
