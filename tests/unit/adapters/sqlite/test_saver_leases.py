"""One writer a thread: who may take a lease, and whose writes are kept."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig

from ibid.adapters.sqlite import saver_leases as leases
from ibid.adapters.sqlite.saver import EmbeddedSaver
from ibid.domain.errors import (
    CheckpointFailed,
    CheckpointStale,
    LeaseLost,
    ThreadGone,
    ThreadLeased,
)
from ibid.domain.leases import Lease
from tests.unit.adapters.sqlite.saver_samples import (
    Clock,
    a_checkpoint,
    listed,
    opened,
    place,
    put,
    rows,
    the,
)

TERM_S = 15.0


def under(lease: Lease, **more: object) -> RunnableConfig:
    return {"configurable": {**lease.configurable, "checkpoint_ns": "", **more}}


async def refused(saver: EmbeddedSaver, config: RunnableConfig) -> set[type[CheckpointFailed]]:
    """Try every kind of write; return what they failed with."""
    kinds = set()
    checkpoint = a_checkpoint()
    named = {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}
    for write in (
        saver.aput(config, checkpoint, {}, {}),
        saver.aput_writes(named, [("a", 1)], "task"),  # type: ignore[arg-type]  # a config
    ):
        with pytest.raises(CheckpointFailed) as caught:
            await write
        kinds.add(type(caught.value))
    return kinds


async def test_a_free_thread_is_leased_and_only_the_holder_writes(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        lease = await saver.take_lease("t", "me")

        config = await put(saver, under(lease))
        await saver.aput_writes(under(lease, **config["configurable"]), [("a", 1)], "task")

        assert (await the(saver)).pending_writes == [("task", "a", 1)]
        assert await refused(saver, place()) == {CheckpointStale}
        assert await refused(saver, place(__ibid_fence=lease.token + 1)) == {CheckpointStale}


async def test_a_thread_that_nobody_leased_needs_no_token(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        await saver.take_lease("another", "me")

        await put(saver)

        assert await refused(saver, place(__ibid_fence=1)) == {ThreadGone}


async def test_a_held_lease_is_refused_even_to_its_owner(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        lease = await saver.take_lease("t", "me")
        await saver.beat(lease)

        with pytest.raises(ThreadLeased) as caught:
            await saver.take_lease("t", "me")

    assert (caught.value.thread_id, caught.value.token, caught.value.beat) == ("t", 1, 1)


async def test_a_released_lease_is_worth_nothing_and_the_next_token_is_higher(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as saver:
        first = await saver.take_lease("t", "me")
        await saver.release(first)
        await saver.release(first)
        is_refused = await refused(saver, under(first))

        second = await saver.take_lease("t", "you")

        assert is_refused == {CheckpointStale}
        assert second.token > first.token
        with pytest.raises(LeaseLost):
            await saver.release(first)
        with pytest.raises(LeaseLost):
            await saver.beat(first)


async def test_a_lease_that_did_not_move_for_a_term_is_taken_away(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, monotonic=clock, term_s=TERM_S) as saver:
        dead = await saver.take_lease("t", "me")
        written = await put(saver, under(dead))
        with pytest.raises(ThreadLeased):
            await saver.take_lease("t", "you")

        clock.at += TERM_S - 0.001
        with pytest.raises(ThreadLeased):
            await saver.take_lease("t", "you")
        clock.at += 0.001
        lease = await saver.take_lease("t", "you")

        assert lease.token > dead.token
        assert await refused(saver, under(dead)) == {CheckpointStale}
        assert [each["configurable"] for each in [(await the(saver)).config]] == [
            written["configurable"]
        ]
        with pytest.raises(LeaseLost):
            await saver.beat(dead)
        await put(saver, under(lease))


async def test_a_write_and_the_check_of_its_token_are_one_transaction(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver, opened(tmp_path) as other:
        lease = await saver.take_lease("t", "me")
        taken, go_on = threading.Event(), threading.Event()

        def take_over(connection: sqlite3.Connection) -> None:
            leases.release(connection, lease)
            leases.take(connection, "t", "you", dead=None)
            taken.set()
            go_on.wait()

        taking = asyncio.ensure_future(other._file.write(take_over))  # noqa: SLF001 - to be in its way
        await asyncio.to_thread(taken.wait)
        writing = asyncio.ensure_future(put(saver, under(lease)))  # begins before that is committed
        while not saver._file._writer._work_queue.empty():  # noqa: ASYNC110, SLF001 - no other sign
            await asyncio.sleep(0.001)
        go_on.set()
        await taking

        with pytest.raises(CheckpointStale):
            await writing
        assert await listed(saver) == []


async def test_a_lease_that_beats_is_never_taken_away(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, monotonic=clock, term_s=TERM_S) as saver:
        lease = await saver.take_lease("t", "me")

        for _ in range(10):
            with pytest.raises(ThreadLeased):
                await saver.take_lease("t", "you")
            clock.at += TERM_S
            await saver.beat(lease)

        await put(saver, under(lease))


async def test_no_clock_of_the_holder_is_asked(tmp_path: Path) -> None:
    ahead, behind = Clock(), Clock()
    behind.at = -1_000_000.0
    async with (
        opened(tmp_path, monotonic=ahead, term_s=TERM_S) as holder,
        opened(tmp_path, monotonic=behind, term_s=TERM_S) as other,
    ):
        await holder.take_lease("t", "me")
        ahead.at += 100 * TERM_S
        with pytest.raises(ThreadLeased):
            await other.take_lease("t", "you")

        behind.at += TERM_S

        assert (await other.take_lease("t", "you")).token == 2


async def test_a_lease_released_and_taken_anew_is_watched_anew(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, monotonic=clock, term_s=TERM_S) as saver:
        first = await saver.take_lease("t", "me")
        with pytest.raises(ThreadLeased):
            await saver.take_lease("t", "you")
        await saver.release(first)
        await saver.take_lease("t", "me")
        clock.at += TERM_S

        with pytest.raises(ThreadLeased):
            await saver.take_lease("t", "you")


async def test_leases_that_nobody_asks_for_any_more_are_not_watched(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, monotonic=clock, term_s=TERM_S) as saver:
        for thread_id in ("a", "b"):
            await saver.take_lease(thread_id, "me")
            with pytest.raises(ThreadLeased):
                await saver.take_lease(thread_id, "you")
            clock.at += 21 * TERM_S

        # watched for long, but not looked at since: "a" is watched from now
        with pytest.raises(ThreadLeased):
            await saver.take_lease("a", "you")


async def test_of_many_that_ask_at_once_one_gets_the_lease(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver, opened(tmp_path) as other:
        asked = [who.take_lease("t", str(n)) for n in range(10) for who in (saver, other)]

        answers = await asyncio.gather(*asked, return_exceptions=True)

    assert sum(isinstance(answer, Lease) for answer in answers) == 1
    assert sum(isinstance(answer, ThreadLeased) for answer in answers) == 19


async def test_a_deleted_thread_stays_deleted_for_its_writer_and_for_the_next(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as saver:
        lease = await saver.take_lease("t", "me")
        await put(saver, under(lease))

        await saver.adelete_thread("t")
        await saver.adelete_thread("t")

        assert await refused(saver, under(lease)) == {ThreadGone}
        assert await refused(saver, place()) == {ThreadGone}
        for call in (
            saver.aget_tuple(place()),
            listed(saver),
            saver.take_lease("t", "you"),
            saver.acopy_thread("u", "t"),
        ):
            with pytest.raises(ThreadGone):
                await call
        with pytest.raises(LeaseLost):
            await saver.beat(lease)
        with pytest.raises(LeaseLost):
            await saver.release(lease)
    assert rows(tmp_path, "SELECT count(*) FROM checkpoints") == [(0,)]


async def test_tokens_rise_over_all_threads_and_all_openings(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        tokens = [(await saver.take_lease(each, "me")).token for each in ("a", "b")]
    async with opened(tmp_path) as saver:
        tokens.append((await saver.take_lease("c", "me")).token)

    assert tokens == [1, 2, 3]


async def test_a_leased_thread_is_no_target_of_a_copy(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        await put(saver, place("source"))
        await saver.take_lease("target", "me")

        with pytest.raises(CheckpointStale):
            await saver.acopy_thread("source", "target")

        assert await listed(saver, place("target")) == []


async def test_the_block_form_beats_while_it_lasts_and_gives_back(tmp_path: Path) -> None:
    async with opened(tmp_path, term_s=0.03) as saver:
        async with saver.leased("t", "me") as lease, asyncio.timeout(30):
            await put(saver, under(lease))
            while rows(tmp_path, "SELECT beat FROM threads")[0][0] < 2:  # noqa: ASYNC110 - a file
                await asyncio.sleep(0.01)

        assert (await saver.take_lease("t", "you")).token == 2


async def test_the_block_form_says_at_its_end_that_the_lease_was_lost(tmp_path: Path) -> None:
    async with opened(tmp_path, term_s=0.03) as saver:
        with pytest.raises(LeaseLost):
            async with saver.leased("t", "me"):
                rows(tmp_path, "UPDATE threads SET token = 99")
