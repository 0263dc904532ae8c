"""No connection crosses a fork; `tests/integration` forks for real."""

import asyncio
import threading
from pathlib import Path

import psutil
import pytest

from ibid.adapters.sqlite.saver import EmbeddedSaver
from ibid.adapters.sqlite.saver_forks import Gate, gate
from ibid.domain.errors import StoreUnavailable
from tests.unit.adapters.sqlite.saver_samples import id_of, listed, opened, place, put


def open_files(folder: Path) -> set[str]:
    """Return the names of the folder's files that this process has open."""
    paths = [Path(file.path) for file in psutil.Process().open_files()]
    return {path.name for path in paths if path.parent == folder}


def become_a_child(saver: EmbeddedSaver) -> None:
    """Do what a child does after a fork; its parent's threads end here by themselves."""
    executors = (saver._file._writer, saver._file._readers)  # noqa: SLF001 - the parent's
    gate.before()
    gate.in_child()
    for executor in executors:
        executor.shutdown()


async def test_no_file_is_open_while_its_process_forks_and_both_go_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        first = await put(saver)
        await listed(saver)
        before = open_files(tmp_path)

        gate.before()
        meanwhile = open_files(tmp_path)
        gate.in_parent()

        second = await put(saver, first)
        assert await listed(saver) == [id_of(second), id_of(first)]
    assert "c.sqlite" in before
    assert meanwhile == set()


async def test_a_child_has_threads_of_its_own(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        first = await put(saver)

        become_a_child(saver)

        second = await put(saver, first)
        assert await listed(saver) == [id_of(second), id_of(first)]


async def test_a_saver_closed_before_a_fork_is_closed_in_the_child(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        pass

    become_a_child(saver)

    with pytest.raises(StoreUnavailable, match="closed"):
        await saver.aget_tuple(place())


class Member:
    """Notes when it is told to leave."""

    def __init__(self, order: list[str]) -> None:
        self._order = order

    def leave(self) -> None:
        self._order.append("left")

    def come_to(self) -> None:
        self._order.append("came to")


async def test_a_fork_waits_for_the_work_under_way_and_the_next_work_for_the_fork() -> None:
    order: list[str] = []
    own, began, go_on = Gate(), threading.Event(), threading.Event()
    member = Member(order)
    own.admit(member)

    def work() -> None:
        began.set()
        go_on.wait()
        order.append("worked")

    working = asyncio.ensure_future(asyncio.to_thread(own.run, work))
    await asyncio.to_thread(began.wait)
    forking = asyncio.ensure_future(asyncio.to_thread(own.before))
    while not own._forking:  # noqa: ASYNC110, SLF001 - another thread sets it
        await asyncio.sleep(0.001)
    late = asyncio.ensure_future(asyncio.to_thread(own.run, lambda: order.append("late")))
    go_on.set()
    await working
    await forking
    order.append("forked")
    own.in_child()
    await late
    own.dismiss(member)

    assert order == ["worked", "left", "forked", "came to", "late", "left"]
