"""LangGraph's own conformance kit, counted: a missing capability is a number, not a silence."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate

ALL = {
    "put": 17,
    "put_writes": 10,
    "get_tuple": 10,
    "list": 16,
    "delete_thread": 5,
    "delete_for_runs": 7,
    "copy_thread": 8,
    "prune": 8,
}  # 81, of version 0.0.2


async def passed(
    make: Callable[[], AbstractAsyncContextManager[BaseCheckpointSaver[Any]]],
) -> tuple[dict[str, int], list[str]]:
    """Run the kit; return the passed tests by detected capability, and what failed."""

    @checkpointer_test(name="ibid")
    async def factory() -> AsyncIterator[BaseCheckpointSaver[Any]]:
        async with make() as saver:
            yield saver

    report = await validate(factory)
    counts = {name: one.tests_passed for name, one in report.results.items() if one.detected}
    failures = [text for one in report.results.values() for text in one.failures or []]
    assert report.passed_all_base() or failures or len(counts) < len(ALL)
    return counts, failures
