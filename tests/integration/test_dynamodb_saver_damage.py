"""What a store may do to a saver: altered items, parts that go while they are read, late writes."""

from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)

from ibid.adapters.dynamodb.retries import RetryBudget
from ibid.adapters.dynamodb.saver import DynamoSaver
from ibid.domain.errors import CheckpointCorrupt, Misconfigured, StoreUnavailable
from tests.contract.saver_graphs import fan_out, noise, thread
from tests.fakes.aws_faults import Call, intercepted
from tests.fakes.ministack import Stack

pytestmark = pytest.mark.ministack

QUICK = RetryBudget(seconds=30, first_s=0.001, most_s=0.01)
SHORT = RetryBudget(seconds=0.05, first_s=0.05)


def put(saver: DynamoSaver, config: Any, **values: object) -> Any:  # noqa: ANN401 - configs
    made = generate_checkpoint(channel_values=values, channel_versions=dict.fromkeys(values, 1))
    return saver.put(config, made, generate_metadata(), {})


def values(found: Any) -> Any:  # noqa: ANN401 - a state's
    return None if found is None else found.checkpoint["channel_values"]


def altered(stack: Stack, table: str, item: dict[str, Any], **changes: object) -> None:
    client = stack.boto("dynamodb")
    client.put_item(TableName=stack.place[table], Item={**item, **changes})
    client.close()


@pytest.mark.parametrize(
    "change",
    [
        {"checkpoint": {"S": "text"}},
        {"checkpoint": {"M": {"digest": {"B": b"x"}}}},
        {"metadata": {"NULL": True}},
        {"type": {"S": "msgpack.zst"}, "checkpoint": {"B": b"cut"}},
    ],
)
def test_an_attribute_of_another_kind_is_a_named_error(
    change: dict[str, Any], stack: Stack
) -> None:
    saver = stack.saver()
    put(saver, generate_config("t"), v=1)
    (item,) = stack.items("checkpoints")
    altered(stack, "checkpoints", item, **change)

    with pytest.raises(CheckpointCorrupt) as corrupt:
        saver.get_tuple(generate_config("t"))

    assert corrupt.value.checkpoint_id == item["checkpoint_id"]["S"]


@pytest.mark.parametrize("value", [{"S": "text"}, {"B": b"\x00\xc1"}, {"B": b"\x07"}, {"M": {}}])
def test_so_is_a_tasks_item(value: dict[str, Any], stack: Stack) -> None:
    saver = stack.saver()
    config = put(saver, generate_config("t"), v=1)
    saver.put_writes(config, [("c", 1)], "task")
    (item,) = stack.items("writes")
    altered(stack, "writes", item, r1=value)

    with pytest.raises(CheckpointCorrupt):
        saver.get_tuple(generate_config("t"))


async def test_so_is_a_fence(stack: Stack) -> None:
    saver = stack.saver()
    await saver.release(await saver.take_lease("t", "one"))
    (item,) = stack.items("checkpoints")
    altered(stack, "checkpoints", item, cuts={"S": "text"})

    with pytest.raises(CheckpointCorrupt, match="fence"):
        saver.get_tuple(generate_config("t"))
    with pytest.raises(CheckpointCorrupt, match="fence"):
        await saver.take_lease("t", "one")


def test_a_saver_without_the_bucket_of_a_part_names_the_setting(stack: Stack) -> None:
    put(stack.saver(inline_bytes=0), generate_config("t"), v=1)

    with pytest.raises(Misconfigured, match="`bucket`"):
        stack.saver(bucket=None).get_tuple(generate_config("t"))


def test_a_part_whose_body_breaks_off_is_got_again(stack: Stack) -> None:
    saver = stack.saver(inline_bytes=0, budget=QUICK)
    put(saver, generate_config("t"), v=1)
    broken = 0

    class Broken:
        def read(self) -> bytes:
            raise ReadTimeoutError(endpoint_url="x")

    def breaking(operation: str, params: dict[str, Any], call: Call) -> Any:  # noqa: ANN401 - botocore's own
        nonlocal broken
        if operation == "GetObject" and broken < 3:
            broken += 1
            return {"Body": Broken()}
        return call(params)

    with intercepted(breaking):
        found = saver.get_tuple(generate_config("t"))

    assert values(found) == {"v": 1}
    assert broken == 3


def test_objects_that_s3_leaves_are_deleted_again_or_that_is_said(stack: Stack) -> None:
    saver, hasty = (stack.saver(inline_bytes=0, budget=budget) for budget in (QUICK, SHORT))
    for _ in range(3):
        put(saver, generate_config("t"), v=1)

    def leaving(operation: str, params: dict[str, Any], call: Call) -> Any:  # noqa: ANN401 - botocore's own
        if operation != "DeleteObjects":
            return call(params)
        keys = params["Delete"]["Objects"]
        call({**params, "Delete": {"Objects": keys[:1]}})
        return {"Errors": [{"Key": one["Key"], "Code": "InternalError"} for one in keys[1:]]}

    with intercepted(leaving):
        with pytest.raises(StoreUnavailable, match="not deleted"):
            hasty.delete_thread("t")
        saver.delete_thread("t")

    assert stack.objects() == []


def during(operation: str, work: Any) -> Any:  # noqa: ANN401 - a hook
    """Do some work before the first call of an operation."""
    done = False

    def hook(name: str, params: dict[str, Any], call: Call) -> Any:  # noqa: ANN401 - botocore's own
        nonlocal done
        if name == operation and not done:
            done = True
            work()
        return call(params)

    return hook


def test_who_reads_a_checkpoint_while_it_is_pruned_gets_the_one_after_it(stack: Stack) -> None:
    saver, other = stack.saver(inline_bytes=0), stack.saver(inline_bytes=0)
    config = put(saver, generate_config("t"), v="old")

    def pruned() -> None:
        put(other, config, v="new")
        other.prune(["t"])

    with intercepted(during("GetObject", pruned)):
        found = saver.get_tuple(generate_config("t"))

    assert values(found) == {"v": "new"}
    assert saver.get_tuple(config) is None


def test_who_lists_checkpoints_while_they_are_deleted_gets_those_that_are_left(
    stack: Stack,
) -> None:
    saver, other = stack.saver(inline_bytes=0), stack.saver(inline_bytes=0)
    config: Any = generate_config("t")
    for number in range(5):
        config = put(saver, config, v=number)

    with intercepted(during("GetObject", lambda: other.prune(["t"]))):
        found = [values(one) for one in saver.list(generate_config("t"), filter={"source": "loop"})]

    assert found == [{"v": 4}]


async def test_a_write_that_arrives_after_its_run_has_given_up_is_never_read(stack: Stack) -> None:
    saver, other = stack.saver(budget=SHORT), stack.saver()
    lease = await saver.take_lease("t", "one")
    config: Any = {"configurable": {**lease.configurable, "checkpoint_ns": ""}}
    head = put(saver, config, v="before")
    on_its_way: list[Any] = []

    def held_up(operation: str, params: dict[str, Any], call: Call) -> Any:  # noqa: ANN401 - botocore's own
        if operation == "PutItem":
            on_its_way.append(lambda: call(params))
            raise ReadTimeoutError(endpoint_url="x")
        return call(params)

    late: Any = {"configurable": {**config["configurable"], **head["configurable"]}}
    with intercepted(held_up), pytest.raises(StoreUnavailable):
        put(saver, late, v="late")
    await saver.release(lease)
    async with other.leased("t", "two") as next_one:
        read = other.get_tuple({"configurable": next_one.configurable})
        for arrive in on_its_way:
            arrive()
        assert read is not None
        put(other, {"configurable": {**read.config["configurable"], **next_one.configurable}}, v=2)

    assert values(other.get_tuple(generate_config("t"))) == {"v": 2}
    assert [values(one) for one in other.list(generate_config("t"))] == [{"v": 2}, {"v": "before"}]


def test_one_id_in_two_namespaces_is_two_checkpoints(stack: Stack) -> None:
    saver = stack.saver()
    made = {name: generate_checkpoint(channel_values={"v": name}) for name in ("", "a", "b" * 900)}
    for name, checkpoint in made.items():
        checkpoint["id"] = made[""]["id"]
        config = generate_config("t", checkpoint_ns=name)
        stored = saver.put(config, checkpoint, generate_metadata(), {})
        saver.put_writes(stored, [("c", name)], "task")

    saver.prune(["t"])
    saver.copy_thread("t", "copy")
    saver.delete_thread("t")

    for name in made:
        latest = generate_config("copy", checkpoint_ns=name)
        named = generate_config("copy", checkpoint_ns=name, checkpoint_id=made[""]["id"])
        for config in (latest, named):
            found = saver.get_tuple(config)
            assert found is not None
            assert values(found) == {"v": name}
            assert found.pending_writes == [("task", "c", name)]
            assert found.config == named
    assert len(list(saver.list({"configurable": {"thread_id": "copy"}}))) == 3
    saver.delete_thread("copy")
    assert stack.items("checkpoints") == stack.items("writes") == []


def test_ids_that_no_key_can_hold_are_refused_before_anything_is_stored(stack: Stack) -> None:
    saver = stack.saver()
    above = generate_checkpoint()
    above["id"] = "~~"

    put(saver, generate_config("x" * 2_048), v=1)
    with pytest.raises(ValueError, match="2048 bytes"):
        put(saver, generate_config("x" * 2_049), v=1)
    with pytest.raises(ValueError, match="~fence"):
        saver.put(generate_config("t"), above, generate_metadata(), {})

    assert len(stack.items("checkpoints")) == 1


def test_metadata_larger_than_an_item_comes_back_and_is_filtered_by(stack: Stack) -> None:
    saver = stack.saver()
    for number in range(3):
        metadata: Any = generate_metadata(number=number, notes=noise(600_000, seed=number).hex())
        saver.put(generate_config("t"), generate_checkpoint(), metadata, {})

    (found,) = saver.list(generate_config("t"), filter={"number": 1})

    assert dict(found.metadata)["notes"] == noise(600_000, seed=1).hex()


async def test_three_hundred_tasks_of_one_step_are_all_counted(stack: Stack) -> None:
    saver = stack.saver()
    graph = fan_out(saver, width=300)

    async with saver.leased("t", "one") as lease:
        end = await graph.ainvoke({"log": []}, {"configurable": lease.configurable})

    assert end["answers"] == list(range(300))
    assert (await graph.aget_state(thread("t"))).values == end
