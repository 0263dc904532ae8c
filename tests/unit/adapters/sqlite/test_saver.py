"""What the embedded saver stores, and what it gives back."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from ibid.adapters.sqlite.saver import EmbeddedSaver
from ibid.domain.errors import CheckpointStale
from tests.contract.saver_graphs import noise
from tests.unit.adapters.sqlite.saver_samples import (
    a_checkpoint,
    all_bytes,
    id_of,
    listed,
    opened,
    place,
    put,
    put_chain,
    rows,
    the,
)

ODD_IDS = [
    ":::",
    "a:::b",
    "user$1",
    "a#b",
    "né-✓",
    "🧵" * 256,  # 1,024 bytes
    "x" * 1_500,
    " ",
    "%",
    "a\nb",
    "a\0b",
    "../..",
    "~fence",
    "'; DROP TABLE checkpoints; --",
    7,
]


async def test_more_than_ten_writes_come_back_in_the_order_of_the_call(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        config = await put(saver)

        await saver.aput_writes(config, [("c", number) for number in range(25)], "task")

        writes = (await the(saver)).pending_writes
    assert writes == [("task", "c", number) for number in range(25)]


async def test_writes_of_parallel_tasks_come_back_by_path_not_by_task_id(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        config = await put(saver)

        await saver.aput_writes(config, [("c", 2)], "a", "~2")
        await saver.aput_writes(config, [("c", 1)], "b", "~1")

        writes = (await the(saver)).pending_writes
    assert writes == [("b", "c", 1), ("a", "c", 2)]


async def test_none_and_empty_bytes_are_kept(tmp_path: Path) -> None:
    given_writes: list[tuple[str, Any]] = [("branch:to:x", None), ("b", b""), ("s", "")]
    async with opened(tmp_path) as saver:
        config = await put(saver)

        await saver.aput_writes(config, given_writes, "task")

        writes = (await the(saver)).pending_writes
    assert writes == [("task", *write) for write in given_writes]


RESUMED_TWICE = [("__resume__", ["A"]), ("__resume__", ["A", "B"]), ("v", "AB")]


async def test_of_two_resumes_in_one_call_the_last_counts(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        config = await put(saver)

        await saver.aput_writes(config, RESUMED_TWICE, "task")

        writes = (await the(saver)).pending_writes
    assert writes == [("task", "__resume__", ["A", "B"]), ("task", "v", "AB")]


async def test_the_saver_that_it_is_made_from_keeps_the_first_resume(tmp_path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.sqlite")) as plain:
        config = await plain.aput(place(), a_checkpoint(), {}, {})

        await plain.aput_writes(config, RESUMED_TWICE, "task")

        found = await plain.aget_tuple(config)
    assert found is not None
    assert found.pending_writes == [("task", "__resume__", ["A"]), ("task", "v", "AB")]


async def test_a_special_write_is_replaced_and_a_regular_one_stays(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        config = await put(saver)
        await saver.aput_writes(config, [("v", "old"), ("__error__", "old")], "task")

        await saver.aput_writes(config, [("v", "new"), ("__error__", "new")], "task")

        writes = (await the(saver)).pending_writes
    assert writes == [("task", "__error__", "new"), ("task", "v", "old")]


async def test_a_call_that_fails_in_its_middle_leaves_nothing_for_the_next_one_to_keep(
    tmp_path: Path,
) -> None:
    surrogate = "\ud800"  # no channel's name in UTF-8
    async with opened(tmp_path) as saver:
        config = await put(saver)

        with pytest.raises(UnicodeEncodeError):
            await saver.aput_writes(config, [("a", 1), (surrogate, 2)], "task")
        await saver.aput_writes(config, [("b", 1)], "other")

        writes = (await the(saver)).pending_writes
    assert writes == [("other", "b", 1)]


async def test_the_saver_that_it_is_made_from_keeps_half_of_such_a_call(tmp_path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.sqlite")) as plain:
        config = await plain.aput(place(), a_checkpoint(), {}, {})

        with pytest.raises(UnicodeEncodeError):
            await plain.aput_writes(config, [("a", 1), ("\ud800", 2)], "task")
        await plain.aput_writes(config, [("b", 1)], "other")

        found = await plain.aget_tuple(config)
    assert found is not None
    assert found.pending_writes == [("other", "b", 1), ("task", "a", 1)]


async def test_a_cancelled_call_is_done_whole_or_not_at_all(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        config = await put(saver)
        call = asyncio.ensure_future(saver.aput_writes(config, [("a", 1), ("b", 2)], "task"))
        await asyncio.sleep(0)

        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await saver.aput_writes(config, [("c", 3)], "other")

        writes = (await the(saver)).pending_writes
    assert writes == [("other", "c", 3), ("task", "a", 1), ("task", "b", 2)]


async def test_no_writes_are_no_call(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        config = await put(saver)

        await saver.aput_writes(config, [], "task")
        await asyncio.to_thread(saver.put_writes, config, [], "task")

        assert (await the(saver)).pending_writes == []


async def test_writes_must_name_their_checkpoint(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        with pytest.raises(ValueError, match="name no checkpoint"):
            await saver.aput_writes(place(), [("a", 1)], "task")


@pytest.mark.parametrize("thread_id", ODD_IDS)
async def test_any_thread_id_is_one_thread(thread_id: object, tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        config = await put(saver, place(thread_id), values={"v": 1})
        await saver.aput_writes(config, [("a", 1)], "task:1")
        await put(saver, place(f"{thread_id}x"))

        found = await the(saver, place(thread_id))
        ids = await listed(saver, place(thread_id))
        await saver.adelete_thread(thread_id)  # type: ignore[arg-type]  # LangGraph passes integers

        assert found.checkpoint["channel_values"] == {"v": 1}
        assert found.config["configurable"]["thread_id"] == str(thread_id)
        assert found.pending_writes == [("task:1", "a", 1)]
        assert ids == [id_of(config)]
        assert await saver.aget_tuple(place(thread_id)) is None
        assert await listed(saver, place(f"{thread_id}x"))


@pytest.mark.parametrize("ns", ["", ":::", "a|b:1", "$#", "🧵"])
async def test_any_namespace_is_one_of_its_own(ns: str, tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        config = await put(saver, place(ns=ns), values={"v": 1})
        await put(saver, place(ns=f"{ns}x"))

        assert (await the(saver, place(ns=ns))).config == config
        assert await listed(saver, place(ns=ns)) == [id_of(config)]


async def test_an_empty_thread_id_is_none(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        with pytest.raises(ValueError, match="thread_id"):
            await saver.aget_tuple(place(""))
        with pytest.raises(ValueError, match="thread_id"):
            await put(saver, place(""))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(thread_id=st.text(min_size=1, max_size=64).filter(lambda text: text.isprintable()))
def test_a_thread_never_sees_anothers_rows(tmp_path: Path, thread_id: str) -> None:
    async def both() -> tuple[object, object]:
        async with opened(tmp_path) as saver:
            await put(saver, place(thread_id), values={"whose": thread_id})
            await put(saver, place(thread_id + "!"), values={"whose": "another"})
            found = await the(saver, place(thread_id))
            other = await the(saver, place(thread_id + "!"))
            await saver.adelete_thread(thread_id + "!")
            return found.checkpoint["channel_values"], other.checkpoint["channel_values"]

    assert asyncio.run(both()) == ({"whose": thread_id}, {"whose": "another"})


async def test_five_megabytes_come_back_byte_for_byte(tmp_path: Path) -> None:
    state = {"noise": noise(5_000_000), "text": "Ibid. " * 900_000}
    async with opened(tmp_path) as saver:
        config = await put(saver, values=state)
        await saver.aput_writes(config, [("noise", state["noise"])], "task")

        found = await the(saver)

    assert found.checkpoint["channel_values"] == state
    assert found.pending_writes == [("task", "noise", state["noise"])]


async def test_namespaces_are_apart(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        root = await put(saver, place())
        child = await put(saver, place(ns="child:1"))

        assert (await the(saver, place())).config == root
        assert (await the(saver, place(ns="child:1"))).config == child
        assert set(await listed(saver, {"configurable": {"thread_id": "t"}})) == {
            id_of(root),
            id_of(child),
        }


async def test_a_listing_finds_by_metadata_before_and_limit(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        configs = await put_chain(saver, 40)  # more than are unpacked at a time
        config = place()

        async def found(**options: Any) -> list[int]:  # noqa: ANN401 - the method's own
            return [each.metadata["step"] async for each in saver.alist(config, **options)]

        assert await found() == list(reversed(range(40)))
        assert await found(limit=3) == [39, 38, 37]
        assert await found(limit=0) == []
        assert await found(before=configs[2]) == [1, 0]
        assert await found(filter={"step": 5}) == [5]
        assert await found(filter={"step": 5, "source": "input"}) == []
        assert await found(filter={"parents": {}}, limit=1, before=configs[9]) == [8]
        named = [each.config async for each in saver.alist(configs[7])]
        everything = [each.config async for each in saver.alist(None, limit=2)]
    assert named == [configs[7]]
    assert everything == [configs[39], configs[38]]


async def test_a_listing_does_not_stand_in_the_way_of_its_reader(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        configs = await put_chain(saver, 20)
        seen = []

        async for each in saver.alist(place()):
            seen.append(each.config)
            await saver.aput_writes(each.config, [("seen", True)], "task")
            await saver.adelete_thread("t") if len(seen) == 16 else None

    # what was deleted meanwhile is left out
    assert seen == list(reversed(configs))[:16]


async def test_a_checkpoint_that_its_own_parent_would_hide_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        early = a_checkpoint()
        parent = await put(saver)

        with pytest.raises(CheckpointStale, match="is not above") as caught:
            await saver.aput(parent, early, {}, {})

        assert (caught.value.thread_id, caught.value.checkpoint_id) == ("t", early["id"])
        assert await listed(saver) == [id_of(parent)]


async def test_the_plain_methods_do_the_same_even_on_the_loop(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        config = saver.put(place(), a_checkpoint({"v": 1}), {"run_id": "r"}, {})
        saver.put_writes(config, [("a", 1)], "task")
        found = saver.get_tuple(place())
        history = list(saver.list(place()))
        everything = list(saver.list(None))
        delta = saver.get_delta_channel_history(config=config, channels=["a"])
        saver.copy_thread("t", "u")
        saver.prune(["u"])
        copied = saver.get_tuple(place("u"))
        saver.delete_for_runs(["r"])
        after_run = saver.get_tuple(place())
        saver.put(place(), a_checkpoint(), {}, {})
        saver.delete_thread("t")

        assert found is not None
        assert copied is not None
        assert found.checkpoint["channel_values"] == {"v": 1}
        assert history == everything == [found]
        assert delta == {"a": {"writes": []}}
        assert copied.pending_writes == [("task", "a", 1)]
        assert after_run is None
        assert saver.get_tuple(place()) is None


async def test_a_channels_history_follows_the_parents(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        configs = await put_chain(saver, 3)
        for number, config in enumerate(configs):
            await saver.aput_writes(config, [("a", number)], "task")

        found = await saver.aget_delta_channel_history(config=configs[2], channels=["a"])

    assert found == {"a": {"writes": [("task", "a", 0), ("task", "a", 1)]}}


async def test_metadata_that_no_text_can_hold_loses_only_that(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        await put(saver, who="a\ud800b")

        assert (await the(saver)).metadata["who"] == "ab"  # type: ignore[typeddict-item]


def test_one_saver_serves_two_loops_one_after_the_other(tmp_path: Path) -> None:
    saver = asyncio.run(EmbeddedSaver.open(tmp_path / "c.sqlite"))

    first = asyncio.run(put(saver))
    second = asyncio.run(put(saver, first))

    assert asyncio.run(listed(saver)) == [id_of(second), id_of(first)]
    asyncio.run(saver.close())


async def test_what_is_deleted_is_in_no_byte_of_the_files(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        config = await put(saver, values={"v": "sesame"})
        await saver.aput_writes(config, [("a", "sesame")], "task")
        stored = all_bytes(tmp_path)

        await saver.adelete_thread("t")

        left = all_bytes(tmp_path)
    assert b"sesame" in stored
    assert b"sesame" not in left
    assert rows(tmp_path, "SELECT count(*) FROM threads") == [(0,)]


async def test_the_block_form_opens_and_closes_a_file_by_name(tmp_path: Path) -> None:
    async with EmbeddedSaver.from_conn_string(str(tmp_path / "c.sqlite")) as saver:
        await saver.setup()
        await put(saver)

    async with opened(tmp_path) as again:
        assert len(await listed(again)) == 1


@pytest.mark.parametrize("name", ["", ":memory:", "file:x?mode=memory"])
async def test_the_block_form_refuses_what_is_no_file(name: str) -> None:
    with pytest.raises(ValueError, match="path of a file"):
        async with EmbeddedSaver.from_conn_string(name):
            pass
