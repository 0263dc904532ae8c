"""What is written comes back: order, kinds, sizes, odd names; under faults; or a named error."""

from collections.abc import Sequence
from typing import Any

import pytest
from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.types import Command

from ibid.adapters.dynamodb.retries import RetryBudget
from ibid.adapters.dynamodb.saver import DynamoSaver
from ibid.domain.errors import CheckpointCorrupt, CheckpointTooLarge, StoreUnavailable
from tests.contract.saver_graphs import (
    PAUSE_ANSWER,
    PAUSE_END,
    PAUSE_INPUT,
    TWICE_INPUT,
    TWICE_QUESTIONS,
    noise,
    pausing,
    pending,
    thread,
    twice,
    twice_end,
)
from tests.fakes.aws_faults import intercepted, late, lost, throttled, unprocessed
from tests.fakes.cipher import KeyedCipher
from tests.fakes.ministack import Stack

pytestmark = pytest.mark.ministack

ODD = [
    ":::",
    "a:::b",
    "$",
    "user$1",
    "#",
    "a#b",
    "né-✓-😀",
    "../..",
    ".",
    "~fence",
    "sp ace\n",
    "x" * 1_024,
    "é" * 512,
]


def checkpoint(**values: object) -> Checkpoint:
    return generate_checkpoint(channel_values=values, channel_versions=dict.fromkeys(values, 1))


def put(saver: Any, thread_id: str, *, ns: str = "", **values: object) -> Any:  # noqa: ANN401 - a config
    """Store a checkpoint with these values and return its config."""
    config = generate_config(thread_id, checkpoint_ns=ns)
    return saver.put(config, checkpoint(**values), generate_metadata(), dict.fromkeys(values, 1))


def values(found: Any) -> Any:  # noqa: ANN401 - a state's
    assert found is not None
    return found.checkpoint["channel_values"]


def written(saver: Any, config: Any) -> Sequence[tuple[str, Any]]:  # noqa: ANN401 - configs and savers
    found = saver.get_tuple(config)
    assert found is not None
    return [(channel, value) for _, channel, value in found.pending_writes]


def test_more_than_ten_writes_keep_their_order(stack: Stack) -> None:
    saver = stack.saver()
    config = put(saver, "t")
    writes = [("c", number) for number in range(25)]

    saver.put_writes(config, writes, "task")

    assert written(saver, config) == writes


def test_the_unmodified_package_does_not_keep_it(stack: Stack) -> None:
    package = stack.unmodified()
    config = put(package, "t")
    writes = [("c", number) for number in range(25)]

    package.put_writes(config, writes, "task")

    assert written(package, config) != writes


def test_a_thousand_writes_of_a_task_are_one_call(stack: Stack) -> None:
    saver = stack.saver()
    config = put(saver, "t")
    writes = [("__pregel_tasks", {"node": "n", "arg": number}) for number in range(1_000)]
    calls: list[str] = []

    def hook(operation: str, params: Any, call: Any) -> Any:  # noqa: ANN401 - botocore's own
        calls.append(operation)
        return call(params)

    with intercepted(hook):
        saver.put_writes(config, writes, "task")

    assert calls == ["UpdateItem"]
    assert written(saver, config) == writes


def test_none_and_empty_bytes_are_writes(stack: Stack) -> None:
    saver = stack.saver()
    config = put(saver, "t")
    writes = [("branch:to:x", None), ("b", b""), ("s", ""), ("a", bytearray(b"x"))]

    saver.put_writes(config, writes, "task")

    assert written(saver, config) == writes


def test_tasks_are_sorted_by_path_then_id(stack: Stack) -> None:
    saver = stack.saver()
    config = put(saver, "t")

    saver.put_writes(config, [("c", 1)], "a", "~2")
    saver.put_writes(config, [("c", 2)], "b", "~1")
    saver.put_writes(config, [("c", 3)], "c", "")

    assert written(saver, config) == [("c", 3), ("c", 2), ("c", 1)]


def test_a_stored_regular_write_stays_and_a_special_one_is_replaced(stack: Stack) -> None:
    saver = stack.saver()
    config = put(saver, "t")

    saver.put_writes(config, [("c", "first"), ("__resume__", ["A"])], "task")
    saver.put_writes(
        config,
        [("c", "second"), ("d", "new"), ("__resume__", ["A"]), ("__resume__", ["A", "B"])],
        "task",
    )

    assert written(saver, config) == [("__resume__", ["A", "B"]), ("c", "first"), ("d", "new")]


async def test_a_node_with_two_interrupts_resumes(stack: Stack) -> None:
    graph = twice(stack.saver())
    config = thread("t")

    await graph.ainvoke(TWICE_INPUT, config)
    for question in TWICE_QUESTIONS:
        state = await graph.aget_state(config)
        assert list(pending(state)) == [question]
        await graph.ainvoke(resume(state, question), config)

    assert (await graph.aget_state(config)).values == twice_end(*TWICE_QUESTIONS)


def resume(state: Any, answer: object) -> Any:  # noqa: ANN401 - LangGraph's own
    return Command(resume={one.id: answer for one in state.interrupts})


@pytest.mark.parametrize("thread_id", ODD)
@pytest.mark.parametrize("bucketed", [False, True])
def test_odd_thread_ids_are_threads_like_others(
    thread_id: str, stack: Stack, *, bucketed: bool
) -> None:
    saver = stack.saver(inline_bytes=0 if bucketed else 380_000)
    put(saver, thread_id + "x", v="another")
    config = put(saver, thread_id, v="mine")
    put(saver, thread_id, ns="child:1|a:::b", v="child")
    saver.put_writes(config, [("c", thread_id)], "task:::1")

    found = saver.get_tuple(generate_config(thread_id))

    assert values(found) == {"v": "mine"}
    assert written(saver, config) == [("c", thread_id)]
    saver.delete_thread(thread_id)
    assert list(saver.list(generate_config(thread_id))) == []
    assert values(saver.get_tuple(generate_config(thread_id + "x"))) == {"v": "another"}


def test_a_number_is_a_thread_id_and_an_empty_one_is_not(stack: Stack) -> None:
    saver = stack.saver()
    config = generate_config("7")
    config["configurable"]["thread_id"] = 7
    saver.put(config, checkpoint(v=1), generate_metadata(), {})

    assert values(saver.get_tuple(generate_config("7"))) == {"v": 1}
    with pytest.raises(ValueError, match="thread_id"):
        saver.get_tuple({"configurable": {"thread_id": ""}})


def test_more_than_a_megabyte_of_pending_writes_is_read_whole(stack: Stack) -> None:
    saver = stack.saver()
    config = put(saver, "t")
    for number in range(8):
        saver.put_writes(config, [("c", noise(200_000, seed=number))], f"task{number}")

    assert written(saver, config) == [("c", noise(200_000, seed=n)) for n in range(8)]


def test_five_megabytes_come_back_byte_for_byte(stack: Stack) -> None:
    saver = stack.saver()
    blob = noise(5_000_000)
    config = put(saver, "t", blob=blob)
    saver.put_writes(config, [("c", blob)], "task")

    found = saver.get_tuple(config)

    assert values(found) == {"blob": blob}
    assert written(saver, config) == [("c", blob)]


@pytest.mark.parametrize("kind", ["checkpoint", "writes", "grown"])
def test_every_size_around_the_limit_comes_back(kind: str, stack: Stack) -> None:
    saver = stack.saver(inline_bytes=409_600)  # so that the service refuses, too
    config = put(saver, "t")
    for size in range(340_000, 421_000, 1_000):
        blob = noise(size)
        if kind == "checkpoint":
            config = put(saver, "t", blob=blob)
            assert values(saver.get_tuple(config)) == {"blob": blob}
            continue
        parts = (
            [("c", blob)]
            if kind == "writes"
            else [("c", blob[:-9_000]), ("__error__", blob[-9_000:])]
        )
        for part in parts:
            saver.put_writes(config, [part], f"task{size}")
        found = saver.get_tuple(config)
        assert found is not None
        mine = {c: v for task, c, v in found.pending_writes or [] if task == f"task{size}"}
        assert mine == dict(parts)
        saver.delete_thread("t")
        config = put(saver, "t")


def test_the_default_puts_an_item_outside_before_the_service_refuses(stack: Stack) -> None:
    saver = stack.saver()
    refusals: list[str] = []

    def hook(_: str, params: Any, call: Any) -> Any:  # noqa: ANN401 - botocore's own
        try:
            return call(params)
        except Exception as error:
            refusals.append(str(error))
            raise

    with intercepted(hook):
        for size in range(340_000, 421_000, 8_000):
            put(saver, "t", blob=noise(size))

    assert refusals == []


def test_without_a_bucket_the_error_names_the_setting(stack: Stack) -> None:
    saver = stack.saver(bucket=None)

    with pytest.raises(CheckpointTooLarge, match="`bucket`") as refused:
        put(saver, "t", blob=noise(500_000))

    assert refused.value.thread_id == "t"
    assert stack.items("checkpoints") == []


def test_an_object_is_put_before_what_points_to_it(stack: Stack) -> None:
    saver = stack.saver()
    calls: list[str] = []

    def hook(operation: str, params: Any, call: Any) -> Any:  # noqa: ANN401 - botocore's own
        calls.append(operation)
        return call(params)

    with intercepted(hook):
        put(saver, "t", blob=noise(500_000))

    assert calls == ["PutObject", "PutItem"]


@pytest.mark.parametrize("fault", ["gone", "altered"])
def test_a_part_that_is_gone_or_altered_is_an_error_with_the_checkpoints_name(
    fault: str, stack: Stack
) -> None:
    saver = stack.saver()
    config = put(saver, "t", blob=noise(500_000))
    (key,) = stack.objects()
    s3 = stack.boto("s3")
    if fault == "gone":
        s3.delete_object(Bucket=stack.place["bucket"], Key=key)
    else:
        s3.put_object(Bucket=stack.place["bucket"], Key=key, Body=noise(500_000, seed=8))
    s3.close()

    with pytest.raises(CheckpointCorrupt) as corrupt:
        saver.get_tuple(generate_config("t"))

    assert corrupt.value.thread_id == "t"
    assert corrupt.value.checkpoint_id == config["configurable"]["checkpoint_id"]


@pytest.mark.parametrize(
    "change",
    [
        {"type": {"S": "unknown"}},
        {"checkpoint": {"B": b"\xff\xff"}},
        {"checkpoint": None},
        {"metadata": {"B": b"\xc1"}},
    ],
)
def test_a_row_that_cannot_be_read_is_an_error_and_never_none(
    change: dict[str, Any], stack: Stack
) -> None:
    saver = stack.saver()
    put(saver, "t", v=1)
    (item,) = stack.items("checkpoints")
    client = stack.boto("dynamodb")
    item.update({name: value for name, value in change.items() if value})
    for name in [name for name, value in change.items() if value is None]:
        del item[name]
    client.put_item(TableName=stack.place["checkpoints"], Item=item)
    client.close()

    with pytest.raises(CheckpointCorrupt):
        saver.get_tuple(generate_config("t"))
    with pytest.raises(CheckpointCorrupt):
        list(saver.list(generate_config("t")))


def test_what_is_encrypted_is_read_with_its_key_only_and_shows_nothing(stack: Stack) -> None:
    saver = stack.saver(serde=EncryptedSerializer(KeyedCipher(b"key")))
    config = put(saver, "t", v="a secret word " * 100)
    saver.put_writes(config, [("c", "a secret word")], "task")
    other = stack.saver(serde=EncryptedSerializer(KeyedCipher(b"another")))

    assert values(saver.get_tuple(config)) == {"v": "a secret word " * 100}
    assert "secret" not in repr(stack.items("checkpoints") + stack.items("writes"))
    assert max(len(item["checkpoint"]["B"]) for item in stack.items("checkpoints")) < 600
    with pytest.raises(CheckpointCorrupt):
        other.get_tuple(config)


class Unlisted:
    """A type that no allow-list has."""

    def __init__(self, word: str) -> None:
        self.word = word

    def model_dump(self) -> dict[str, str]:
        return {"word": self.word}


def test_a_type_that_is_not_allowed_is_not_made(
    stack: Stack, caplog: pytest.LogCaptureFixture
) -> None:
    saver = stack.saver()
    config = put(saver, "t", v=Unlisted("w"))

    assert not isinstance(values(saver.get_tuple(config))["v"], Unlisted)
    assert "Unlisted" in caplog.text


def test_a_copy_with_an_allow_list_shares_the_clients(stack: Stack) -> None:
    saver = stack.saver()

    copy = saver.with_allowlist([(__name__, "Unlisted")])

    assert copy is not saver
    assert isinstance(copy, DynamoSaver)
    assert copy.client is saver.client


async def test_reads_that_come_late_lose_no_answer(stack: Stack) -> None:
    graph = pausing(stack.saver())
    config = thread("t")

    with intercepted(late):
        await graph.ainvoke(PAUSE_INPUT, config)
        await graph.ainvoke(resume(await graph.aget_state(config), PAUSE_ANSWER), config)
        state = await graph.aget_state(config)

    assert state.values == PAUSE_END


def test_with_the_unmodified_package_they_lose_it(stack: Stack) -> None:
    graph = pausing(stack.unmodified())
    config = thread("t")

    with intercepted(late):
        graph.invoke(PAUSE_INPUT, config)
        state = graph.get_state(config)

    assert state.interrupts == ()


def test_throttled_calls_are_made_again(stack: Stack) -> None:
    saver = stack.saver(budget=RetryBudget(seconds=30, first_s=0.001, most_s=0.01))
    operations = frozenset({"PutItem", "UpdateItem", "Query"})

    with intercepted(throttled(operations, 4)):
        config = put(saver, "t", v=1)
    with intercepted(throttled(operations, 4)):
        saver.put_writes(config, [("c", 1)], "task")
    with intercepted(throttled(operations, 4)):
        found = saver.get_tuple(config)

    assert values(found) == {"v": 1}
    assert written(saver, config) == [("c", 1)]


def test_throttling_that_outlasts_the_budget_is_a_named_error(stack: Stack) -> None:
    saver = stack.saver(budget=RetryBudget(seconds=0.05, first_s=0.01))

    with (
        intercepted(throttled(frozenset({"PutItem"}), 1_000)),
        pytest.raises(StoreUnavailable, match="ProvisionedThroughputExceeded"),
    ):
        put(saver, "t", v=1)

    assert stack.items("checkpoints") == []


def test_a_lost_reply_changes_nothing(stack: Stack) -> None:
    saver = stack.saver(budget=RetryBudget(seconds=30, first_s=0.001))

    with intercepted(lost(frozenset({"PutItem", "UpdateItem"}), 2)):
        config = put(saver, "t", v=1)
        saver.put_writes(config, [("c", 1), ("__resume__", [1])], "task")

    assert written(saver, config) == [("__resume__", [1]), ("c", 1)]
    assert len(list(saver.list(generate_config("t")))) == 1


def test_unprocessed_deletions_are_repeated_until_all_is_gone(stack: Stack) -> None:
    saver = stack.saver(budget=RetryBudget(seconds=30, first_s=0.001))
    config = put(saver, "t", v=1)
    for number in range(30):
        saver.put_writes(config, [("c", number)], f"task{number}")

    with intercepted(unprocessed):
        saver.delete_thread("t")

    assert stack.items("checkpoints") == stack.items("writes") == []


def test_unprocessed_deletions_that_outlast_the_budget_are_a_named_error(stack: Stack) -> None:
    saver = stack.saver(budget=RetryBudget(seconds=0.05, first_s=0.05))
    config = put(saver, "t", v=1)
    for number in range(30):
        saver.put_writes(config, [("c", number)], f"task{number}")

    with intercepted(unprocessed), pytest.raises(StoreUnavailable, match="not deleted"):
        saver.delete_thread("t")

    saver.delete_thread("t")
    assert stack.items("checkpoints") == stack.items("writes") == []


def test_what_the_unmodified_package_stored_is_read(stack: Stack) -> None:
    package, saver = stack.unmodified(), stack.saver()
    config = put(package, "t", v=1)
    package.put_writes(config, [("c", number) for number in range(12)], "task")

    found = saver.get_tuple(generate_config("t"))

    assert values(found) == {"v": 1}
    assert written(saver, config) == [("c", number) for number in range(12)]
