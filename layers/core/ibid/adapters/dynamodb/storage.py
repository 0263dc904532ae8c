"""What every part of the saver works with: names, the connection, expiry, and paged queries."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from ibid.adapters.dynamodb.connection import Connection
from ibid.adapters.dynamodb.expiry import Expiry
from ibid.adapters.dynamodb.fence import NO_FENCE, Fence, fence_of, is_fence
from ibid.adapters.dynamodb.keys import writes_partition
from ibid.adapters.dynamodb.packs import PARTITION
from ibid.adapters.dynamodb.parts import Parts
from ibid.adapters.dynamodb.rows import Row, key_of, row_of
from ibid.domain.errors import Misconfigured, StoreUnavailable

Item = Mapping[str, Any]

_LATER_PAGES = 25  # rows, once the first page did not hold what was looked for
_BATCH = 25  # DynamoDB's most


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Two tables and the objects beside them.

    Attributes:
        connection: This process's clients.
        checkpoints: The first table's name.
        writes: The second's.
        parts: Large parts.
        expiry: How long items live.
        fencing: Whether threads have leases.
        inline_bytes: The size of an item up to which its parts stay inside.
    """

    connection: Connection
    checkpoints: str
    writes: str
    parts: Parts
    expiry: Expiry
    fencing: bool
    inline_bytes: int

    def newest_first(
        self, thread_id: str, *, before: str | None = None, page: int | None = None
    ) -> Iterator[Item]:
        """Yield the items of a thread's partition, the fence row first if there is one.

        Strongly consistent.

        Args:
            thread_id: Whose.
            before: Leave out this checkpoint id and all above it; the fence row too.
            page: How many items the first page may have; None: as many as fit 1 MB.
        """
        values: dict[str, Any] = {":thread": {"S": thread_id}}
        condition = "thread_id = :thread"
        if before is not None:
            condition += " AND checkpoint_id < :before"
            values[":before"] = {"S": before}
        params: dict[str, Any] = {"Limit": page} if page else {}
        while True:
            found = self.connection.dynamodb(
                "query",
                TableName=self.checkpoints,
                KeyConditionExpression=condition,
                ExpressionAttributeValues=values,
                ConsistentRead=True,
                ScanIndexForward=False,
                **params,
            )
            yield from found["Items"]
            if "LastEvaluatedKey" not in found:
                return
            params = {"ExclusiveStartKey": found["LastEvaluatedKey"]}
            if page:
                params["Limit"] = _LATER_PAGES

    def rows(self, thread_id: str, *, page: int | None = None) -> tuple[Fence, Iterator[Row]]:
        """Return a thread's fence and its rows that count, newest first.

        Args:
            thread_id: Whose.
            page: How many rows are probably wanted.
        """
        items = self.newest_first(thread_id, page=page and page + self.fencing)
        fence, first = NO_FENCE, next(items, None)
        if first is not None and is_fence(first):
            fence, first = (fence_of(first) if self.fencing else NO_FENCE), None

        def rows() -> Iterator[Row]:
            if first is not None:
                yield row_of(first)
            for item in items:
                yield row_of(item)

        return fence, (
            row for row in rows() if fence.admits(row.checkpoint_ns, row.checkpoint_id, row.token)
        )

    def thread_ids(self) -> list[str]:
        """Return the ids of all threads, in order, by a strongly consistent scan."""
        found: set[str] = set()
        params: dict[str, Any] = {}
        while True:
            page = self.connection.dynamodb(
                "scan",
                TableName=self.checkpoints,
                ProjectionExpression="thread_id",
                ConsistentRead=True,
                **params,
            )
            found.update(item["thread_id"]["S"] for item in page["Items"])
            if "LastEvaluatedKey" not in page:
                return sorted(found)
            params = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def row(self, thread_id: str, checkpoint_id: str, checkpoint_ns: str) -> Row | None:
        """Return a row by its id, whether it counts or not; strongly consistent."""
        found = self.connection.dynamodb(
            "get_item",
            TableName=self.checkpoints,
            Key=key_of(thread_id, checkpoint_id, checkpoint_ns),
            ConsistentRead=True,
        )
        return row_of(found["Item"]) if "Item" in found else None

    def writes_to(self, thread_id: str, checkpoint_id: str, checkpoint_ns: str) -> list[Item]:
        """Return all items of the writes to a checkpoint, strongly consistent."""
        partition = writes_partition(thread_id, checkpoint_id, checkpoint_ns)
        params: dict[str, Any] = {}
        items: list[Item] = []
        while True:
            found = self.connection.dynamodb(
                "query",
                TableName=self.writes,
                KeyConditionExpression="#p = :p",
                ExpressionAttributeNames={"#p": PARTITION},
                ExpressionAttributeValues={":p": {"S": partition}},
                ConsistentRead=True,
                **params,
            )
            items.extend(found["Items"])
            if "LastEvaluatedKey" not in found:
                return items
            params = {"ExclusiveStartKey": found["LastEvaluatedKey"]}

    def keys_in(self, table: str, index: str, attribute: str, value: str) -> Iterator[Item]:
        """Yield the keys under a value of a sparse index; it may lag behind the table.

        Raises:
            Misconfigured: The table has no such index.
        """
        params: dict[str, Any] = {}
        while True:
            try:
                found = self.connection.dynamodb(
                    "query",
                    TableName=table,
                    IndexName=index,
                    KeyConditionExpression="#a = :a",
                    ExpressionAttributeNames={"#a": attribute},
                    ExpressionAttributeValues={":a": {"S": value}},
                    **params,
                )
            except ClientError as error:
                raise Misconfigured(f"table {table!r} has no index {index!r}") from error
            yield from found["Items"]
            if "LastEvaluatedKey" not in found:
                return
            params = {"ExclusiveStartKey": found["LastEvaluatedKey"]}

    def delete(self, table: str, keys: Sequence[Item]) -> None:
        """Delete items by key; those that are gone already are no error.

        Raises:
            StoreUnavailable: Some were left unprocessed until the budget was used up.
        """
        left: list[Any] = [{"DeleteRequest": {"Key": key}} for key in keys]
        waits = self.connection.budget.waits()
        while left:
            some, later = left[:_BATCH], left[_BATCH:]
            done = self.connection.dynamodb("batch_write_item", RequestItems={table: some})
            undone = done.get("UnprocessedItems", {}).get(table, [])
            if undone and not waits.wait():
                raise StoreUnavailable(f"{len(undone) + len(later)} items were not deleted")
            left = [*undone, *later]
