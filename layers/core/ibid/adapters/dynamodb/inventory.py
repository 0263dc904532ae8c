"""The threads of the checkpoints table, for a checker."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence

from ibid.adapters.dynamodb.connection import Connection
from ibid.adapters.dynamodb.expiry import TTL
from ibid.adapters.dynamodb.keys import FENCE_ROW
from ibid.adapters.dynamodb.scanning import scanned


class DynamoCheckpointInventory:
    """Implements CheckpointInventory on the checkpoints table.

    Args:
        connection: To DynamoDB.
        table: The checkpoints table's name.
        now: Epoch seconds, for expiry only.
    """

    def __init__(
        self, connection: Connection, *, table: str, now: Callable[[], float] = time.time
    ) -> None:
        self._connection = connection
        self._table = table
        self._now = now

    async def faults(self) -> Sequence[str]:
        """Return nothing: DynamoDB looks after its files by itself."""
        return ()

    async def threads(self) -> AsyncIterator[str]:
        """Return every thread that holds a checkpoint whose time is not over."""
        for thread in sorted(await asyncio.wrap_future(self._connection.submit(self._threads))):
            yield thread

    def _threads(self) -> set[str]:
        items = scanned(self._connection, self._table, ("thread_id", "checkpoint_id", TTL))
        return {
            item["thread_id"]["S"]
            for item in items
            if item["checkpoint_id"]["S"] != FENCE_ROW
            and (TTL not in item or float(item[TTL]["N"]) > self._now())
        }
