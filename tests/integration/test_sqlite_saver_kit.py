"""LangGraph's conformance kit on the embedded saver, and on the one that it is made from."""

import itertools
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from ibid.adapters.sqlite.saver import EmbeddedSaver
from tests.contract.saver_kit import ALL, passed

Opened = Callable[[str], AbstractAsyncContextManager[AsyncSqliteSaver]]


def each_on_a_new_file(
    folder: Path, opened: Opened
) -> Callable[[], AbstractAsyncContextManager[AsyncSqliteSaver]]:
    numbers = itertools.count()
    return lambda: opened(str(folder / f"{next(numbers)}.sqlite"))


async def test_the_embedded_saver_passes_all_81_tests_of_all_8_capabilities(tmp_path: Path) -> None:
    counts, failures = await passed(each_on_a_new_file(tmp_path, EmbeddedSaver.from_conn_string))

    assert counts == ALL
    assert sum(counts.values()) == 81
    assert failures == []


async def test_the_saver_that_it_is_made_from_lacks_three_capabilities(tmp_path: Path) -> None:
    counts, _ = await passed(each_on_a_new_file(tmp_path, AsyncSqliteSaver.from_conn_string))

    assert set(ALL) - set(counts) == {"delete_for_runs", "copy_thread", "prune"}
