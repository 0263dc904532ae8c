"""Our DynamoDB saver for a process of its own, and two that are worse on purpose."""

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig

from ibid.adapters.dynamodb.retries import RetryBudget
from ibid.adapters.dynamodb.saver import DynamoSaver


def ibid(place: dict[str, Any], **options: Any) -> DynamoSaver:  # noqa: ANN401 - the saver's own
    """Return our saver."""
    return _make(DynamoSaver, place, options)


def naive(place: dict[str, Any], **options: Any) -> DynamoSaver:  # noqa: ANN401 - as above
    """Return one that stores each write of a task by a call of its own."""
    return _make(NaiveSaver, place, options)


class NaiveSaver(DynamoSaver):
    """Takes a task's writes apart, as a saver with one item a write does."""

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the first, then the first two, and so on: those that are stored stay."""
        for count in range(1, len(writes) + 1):
            super().put_writes(config, list(writes)[:count], task_id, task_path)


def _make(kind: type[DynamoSaver], place: dict[str, Any], options: dict[str, Any]) -> DynamoSaver:
    return kind(
        checkpoints_table_name=place["checkpoints"],
        writes_table_name=place["writes"],
        bucket=place["bucket"],
        client_config=place["client"],
        budget=RetryBudget(seconds=10),
        **options,
    )
