"""LangGraph's conformance kit on the DynamoDB saver in every mode, and on the bare package."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from ibid.adapters.dynamodb.retries import RetryBudget
from tests.contract.saver_kit import ALL, passed
from tests.fakes.aws_faults import Call, intercepted, late, unprocessed
from tests.fakes.cipher import KeyedCipher
from tests.fakes.ministack import Stack

pytestmark = pytest.mark.ministack

MODES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "without fencing": {"fencing": False},
    "with a life": {"ttl": timedelta(days=30)},
    "encrypted": {"serde": EncryptedSerializer(KeyedCipher(b"key"))},
    "everything in objects": {"inline_bytes": 0},
}


def opening(
    make: Callable[[], BaseCheckpointSaver[Any]],
) -> Callable[[], AbstractAsyncContextManager[BaseCheckpointSaver[Any]]]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[BaseCheckpointSaver[Any]]:
        yield make()

    return opened


@pytest.mark.parametrize("mode", MODES)
async def test_the_saver_has_all_eight_capabilities_and_passes_all_81_tests(
    mode: str, stack: Stack
) -> None:
    counts, failures = await passed(opening(lambda: stack.saver(**MODES[mode])))

    assert (counts, failures) == (ALL, [])


async def test_it_does_so_when_weak_reads_come_late_and_batches_are_left_unprocessed(
    stack: Stack,
) -> None:
    def faulty(operation: str, params: dict[str, Any], call: Call) -> Any:  # noqa: ANN401 - botocore's own
        return late(operation, params, lambda asked: unprocessed(operation, asked, call))

    budget = RetryBudget(seconds=60, first_s=0.001, most_s=0.01)
    with intercepted(faulty):
        counts, failures = await passed(opening(lambda: stack.saver(budget=budget)))

    assert (counts, failures) == (ALL, [])


async def test_the_kit_finds_that_the_unmodified_package_has_no_capability(stack: Stack) -> None:
    counts, _ = await passed(opening(stack.unmodified))

    assert counts == {}
