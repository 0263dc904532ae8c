"""LangGraph's conformance kit, counted: a capability that is missing is no failure to the kit."""

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from ibid.adapters.sqlite.saver import EmbeddedSaver

WANTED = {
    "put": 17,
    "put_writes": 10,
    "get_tuple": 10,
    "list": 16,
    "delete_thread": 5,
    "delete_for_runs": 7,
    "copy_thread": 8,
    "prune": 8,
}

Opened = Callable[[str], AbstractAsyncContextManager[AsyncSqliteSaver]]


async def counted(folder: Path, opened: Opened) -> tuple[dict[str, int], int, bool]:
    """Return the tests passed by capability, how many failed, whether all base ones passed."""
    numbers = itertools.count()

    @checkpointer_test(name="ibid")
    async def factory() -> AsyncIterator[AsyncSqliteSaver]:
        async with opened(str(folder / f"{next(numbers)}.sqlite")) as saver:
            yield saver

    report = await validate(factory)
    passed = {name: each.tests_passed for name, each in report.results.items() if each.detected}
    failed = sum(each.tests_failed for each in report.results.values())
    return passed, failed, report.passed_all_base()


async def test_the_embedded_saver_passes_all_81_tests_of_all_8_capabilities(tmp_path: Path) -> None:
    passed, failed, is_base_passed = await counted(tmp_path, EmbeddedSaver.from_conn_string)

    assert passed == WANTED
    assert (sum(passed.values()), failed, is_base_passed) == (81, 0, True)


async def test_the_saver_that_it_is_made_from_lacks_three_capabilities(tmp_path: Path) -> None:
    passed, _, _ = await counted(tmp_path, AsyncSqliteSaver.from_conn_string)

    assert set(WANTED) - set(passed) == {"delete_for_runs", "copy_thread", "prune"}
