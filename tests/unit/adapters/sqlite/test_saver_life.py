"""How long threads live; how they are pruned, copied and deleted by run."""

from datetime import timedelta
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base.id import uuid6

from ibid.domain.errors import ThreadGone
from tests.unit.adapters.sqlite.saver_samples import (
    Clock,
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

TTL_S, PAUSE_TTL_S = 100.0, 1_000.0
TTL, PAUSE_TTL = timedelta(seconds=TTL_S), timedelta(seconds=PAUSE_TTL_S)
PAUSE = [("__interrupt__", ["which?"])]


async def test_a_thread_lives_for_its_time_after_the_last_activity(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, now=clock, ttl=TTL) as saver:
        config = await put(saver)
        clock.at += TTL_S - 1
        await saver.aput_writes(config, [("a", 1)], "task")
        clock.at += TTL_S - 1

        assert (await the(saver)).pending_writes == [("task", "a", 1)]
        clock.at += 1
        assert await listed(saver) == []
        assert [each async for each in saver.alist(None)] == []
        assert await saver.aget_tuple(config) is None
        assert await saver.aget_tuple(place()) is None


async def test_the_newest_checkpoint_never_goes_before_its_ancestors(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, now=clock, ttl=TTL) as saver:
        first = await put(saver)
        clock.at += TTL_S - 1
        second = await put(saver, first)
        clock.at += TTL_S - 1

        assert await listed(saver) == [id_of(second), id_of(first)]
        clock.at += 1
        assert await listed(saver) == []


async def test_a_pause_lives_as_long_as_a_pause_may_last(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, now=clock, ttl=TTL, pause_ttl=PAUSE_TTL) as saver:
        config = await put(saver)
        await saver.aput_writes(config, PAUSE, "task")
        clock.at += PAUSE_TTL_S - 1

        assert (await the(saver)).pending_writes == [("task", *PAUSE[0])]
        await saver.aput_writes(config, [("__resume__", ["this"])], "task")
        clock.at += TTL_S - 1
        assert (await the(saver)).config == config
        clock.at += 1
        assert await saver.aget_tuple(place()) is None


async def test_what_others_write_meanwhile_does_not_shorten_a_pause(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, now=clock, ttl=TTL, pause_ttl=PAUSE_TTL) as saver:
        config = await put(saver)
        await saver.aput_writes(config, PAUSE, "task")

        await saver.aput_writes(config, [("a", 1)], "another task")
        await put(saver, place(ns="child:1"))
        clock.at += PAUSE_TTL_S - 1

        assert (await the(saver)).config == config


async def test_a_pause_that_is_stored_before_its_checkpoint_counts(tmp_path: Path) -> None:
    clock = Clock()
    checkpoint_id = str(uuid6())
    async with opened(tmp_path, now=clock, ttl=TTL, pause_ttl=PAUSE_TTL) as saver:
        await saver.aput_writes(place(checkpoint_id=checkpoint_id), PAUSE, "task")
        checkpoint = a_checkpoint()
        checkpoint["id"] = checkpoint_id
        await saver.aput(place(), checkpoint, {}, {})
        clock.at += PAUSE_TTL_S - 1

        assert (await the(saver)).pending_writes == [("task", *PAUSE[0])]


async def test_the_next_checkpoint_of_the_root_ends_a_pauses_time(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, now=clock, ttl=TTL, pause_ttl=PAUSE_TTL) as saver:
        config = await put(saver)
        await saver.aput_writes(config, PAUSE, "task")

        await put(saver, config)
        clock.at += TTL_S

        assert await saver.aget_tuple(place()) is None


async def test_a_lease_that_beats_keeps_its_thread(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, now=clock, ttl=TTL) as saver:
        lease = await saver.take_lease("t", "me")
        await put(saver, {"configurable": {**lease.configurable, "checkpoint_ns": ""}})
        clock.at += TTL_S - 1
        await saver.beat(lease)
        clock.at += TTL_S - 1

        assert len(await listed(saver)) == 1


async def test_a_writer_of_an_expired_thread_is_told_and_the_next_starts_anew(
    tmp_path: Path,
) -> None:
    clock = Clock()
    async with opened(tmp_path, now=clock, ttl=TTL) as saver:
        old = await saver.take_lease("t", "me")
        config: RunnableConfig = {"configurable": {**old.configurable, "checkpoint_ns": ""}}
        await put(saver, config)
        clock.at += TTL_S

        new = await saver.take_lease("t", "you")

        assert new.token > old.token
        assert await saver.aget_tuple(place()) is None
        await saver.release(new)
        clock.at += TTL_S
        assert await saver.sweep() == 1
        with pytest.raises(ThreadGone):
            await put(saver, config)


async def test_an_expired_threads_rows_never_come_back_with_a_new_one(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, now=clock, ttl=TTL) as saver:
        await put_chain(saver, 3)
        clock.at += TTL_S

        assert await saver.aget_tuple(place()) is None  # as LangGraph asks before it starts
        new = await put(saver)

        assert await listed(saver) == [id_of(new)]


async def test_plain_reading_removes_an_expired_thread_too(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, now=clock, ttl=TTL) as saver:
        await put(saver)
        clock.at += TTL_S

        assert saver.get_tuple(place()) is None

    assert rows(tmp_path, "SELECT count(*) FROM checkpoints") == [(0,)]


async def test_a_sweep_removes_every_expired_thread_and_no_other(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, now=clock, ttl=TTL) as saver:
        for number in range(120):  # more than one transaction removes
            config = await put(saver, place(f"old-{number}"), values={"v": "sesame"})
            await saver.aput_writes(config, [("a", "sesame")], "task")
        clock.at += TTL_S - 1
        kept = await put(saver, place("new"))
        clock.at += 1

        assert await saver.sweep() == 120
        assert await saver.sweep() == 0

        assert await listed(saver, place("new")) == [id_of(kept)]
        assert b"sesame" not in all_bytes(tmp_path)


async def test_without_a_time_to_live_nothing_expires(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, now=clock) as saver:
        config = await put(saver)
        await saver.aput_writes(config, PAUSE, "task")
        clock.at += 1e9

        assert await saver.sweep() == 0
        assert (await the(saver)).config == config


async def test_a_time_to_live_that_comes_later_counts_from_the_next_checkpoint(
    tmp_path: Path,
) -> None:
    clock = Clock()
    async with opened(tmp_path, now=clock) as saver:
        config = await put(saver)
    async with opened(tmp_path, now=clock, ttl=TTL) as saver:
        await saver.aput_writes(config, [("a", 1)], "task")
        clock.at += TTL_S
        assert await listed(saver) == [id_of(config)]

        await put(saver, config)
        clock.at += TTL_S

        assert await listed(saver) == []


async def test_the_mark_of_a_deleted_thread_goes_in_time(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, now=clock) as saver:
        await saver.take_lease("t", "me")
        await saver.adelete_thread("t")

        clock.at += 31 * 24 * 3600

        assert await saver.sweep() == 1
        assert (await saver.take_lease("t", "me")).token == 2


async def test_pruning_keeps_what_a_resume_needs(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        configs = await put_chain(saver, 3)
        task = await put_chain(saver, 2, "child:1")  # of the newest: it is paused
        lasting = await put_chain(saver, 2, "memory")
        for config in configs:
            await saver.aput_writes(config, [("a", 1)], "task")
        early = str(uuid6())  # its checkpoint is still on its way
        await saver.aput_writes(place(checkpoint_id=early), [("a", 2)], "task")

        await saver.aprune(["t", "nobody"])

        assert await listed(saver) == [id_of(configs[-1])]
        assert (await the(saver)).pending_writes == [("task", "a", 1)]
        assert await listed(saver, place(ns="child:1")) == [id_of(task[-1])]
        assert await listed(saver, place(ns="memory")) == [id_of(lasting[-1])]
    kept = rows(tmp_path, "SELECT checkpoint_id FROM writes ORDER BY checkpoint_id")
    assert kept == [(id_of(configs[-1]),), (early,)]


async def test_pruning_drops_the_namespaces_of_tasks_that_are_over(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        await put_chain(saver, 2, "memory")
        for ns in ("child:1", "child:1|inner:2", "child:1|1"):
            await put_chain(saver, 2, ns)
        orphan = place(ns="child:9", checkpoint_id=str(uuid6()))
        await saver.aput_writes(orphan, [("a", 1)], "task")
        await put(saver, place(ns="memory|inner:3"))
        await put(saver, place(ns="memory"))
        newest = await put(saver)

        await saver.aprune(["t"])

        left = {(each.config["configurable"]["checkpoint_ns"]) async for each in saver.alist(None)}
        assert left == {"", "memory"}
        assert await listed(saver) == [id_of(newest)]
    assert rows(tmp_path, "SELECT count(*) FROM writes") == [(0,)]


async def test_pruning_leaves_a_history_that_delta_channels_need(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        first = await put(saver)
        second = await put(saver, first, counters_since_delta_snapshot={"c": [1, 1]})

        await saver.aprune(["t"])

        assert await listed(saver) == [id_of(second), id_of(first)]


async def test_pruning_all_leaves_the_lease(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        lease = await saver.take_lease("t", "me")
        config: RunnableConfig = {"configurable": {**lease.configurable, "checkpoint_ns": ""}}
        await put(saver, config)

        await saver.aprune(["t"], strategy="delete")

        assert await listed(saver) == []
        await put(saver, config)


async def test_an_unknown_strategy_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        await put(saver)

        with pytest.raises(ValueError, match="keep_latest or delete"):
            await saver.aprune(["t"], strategy="keep_some")

        assert len(await listed(saver)) == 1


async def test_a_copy_has_all_and_goes_its_own_way(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        configs = await put_chain(saver, 3)
        await put(saver, place(ns="child:1"))
        await saver.aput_writes(configs[-1], [("a", 1)], "task", "~path")

        await saver.acopy_thread("t", "u")
        await saver.acopy_thread("u", "u")
        await saver.adelete_thread("t")

        found = await the(saver, place("u"))
        assert found.pending_writes == [("task", "a", 1)]
        assert await listed(saver, place("u")) == [id_of(each) for each in reversed(configs)]
        assert len(await listed(saver, place("u", "child:1"))) == 1


async def test_a_copy_of_nothing_is_nothing(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, now=clock, ttl=TTL) as saver:
        await put(saver)
        clock.at += TTL_S

        await saver.acopy_thread("t", "u")
        await saver.acopy_thread("nobody", "u")

    assert rows(tmp_path, "SELECT count(*) FROM threads WHERE thread_id = 'u'") == [(0,)]


async def test_a_copy_of_a_pause_lives_as_long_as_the_pause(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, now=clock, ttl=TTL, pause_ttl=PAUSE_TTL) as saver:
        config = await put(saver)
        await saver.aput_writes(config, PAUSE, "task")
        await saver.acopy_thread("t", "u")
        clock.at += PAUSE_TTL_S - 1

        assert len(await listed(saver, place("u"))) == 1


async def test_a_runs_writes_go_with_it_wherever_they_are(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        first = await put(saver, place(), run_id="r1")
        resumed = {"configurable": {**first["configurable"], "run_id": "r2"}}
        await saver.aput_writes(first, [("a", 1)], "task")
        await saver.aput_writes(resumed, [("b", 2)], "other")  # type: ignore[arg-type]  # a config
        orphan = place(checkpoint_id=str(uuid6()), run_id="r2")
        await saver.aput_writes(orphan, [("c", 3)], "task")

        await saver.adelete_for_runs(["r2", "nobody"])
        after_second = (await the(saver)).pending_writes
        await saver.adelete_for_runs(["r1"])

        assert after_second == [("task", "a", 1)]
        assert await listed(saver) == []
    assert rows(tmp_path, "SELECT count(*) FROM writes") == [(0,)]
