"""The app table: calls that are safe to make twice, with plain values in and out.

Expressions write attributes as `#name` and values as `:name`. Reads are strongly consistent, but
those of an index and where it is said.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast
from uuid import uuid4

from botocore.exceptions import ClientError

from ibid.adapters.dynamodb.connection import Connection
from ibid.adapters.dynamodb.records.keys import Key
from ibid.adapters.dynamodb.records.wire import Item, packed, unpack
from ibid.adapters.dynamodb.records.writes import Write, key_of
from ibid.adapters.dynamodb.retries import code_of
from ibid.domain.errors import StoreUnavailable

T = TypeVar("T")

_READ_BATCH, _WRITE_BATCH = 100, 25  # DynamoDB's most
_REFUSED = "ConditionalCheckFailed"


class ConditionFailed(Exception):
    """A condition did not hold; nothing was written.

    Attributes:
        items: By position in the transaction: what stood where a condition failed, None where
            there was nothing. A single write has the position 0.
    """

    def __init__(self, items: Mapping[int, Item | None]) -> None:
        super().__init__("a condition did not hold")
        self.items = items

    @property
    def item(self) -> Item | None:
        """What stood in the way of the first one that failed."""
        return next(iter(self.items.values()))


class Table:
    """One table, and the threads that wait for it.

    Args:
        connection: The clients, the threads and the budget of a call.
        name: The table's.
    """

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self.name = name

    async def run(self, work: Callable[[], T]) -> T:
        """Do some calls in a thread.

        A caller that is cancelled waits until they are through, so that what follows sees all of
        them or, where they had not begun, none.

        Raises:
            StoreUnavailable: DynamoDB gave no answer in time, or refused what was asked.
        """
        future = self._connection.submit(lambda: _named(work))
        waiting = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not future.cancel():
                await _until_done(waiting)
            raise

    # Reading.

    def get(self, key: Key) -> Item | None:
        """Return an item, or None."""
        found = self._call("get_item", Key=key_of(key), ConsistentRead=True)
        return unpack(found["Item"]) if "Item" in found else None

    def query(
        self,
        partition: str,
        *,
        prefix: str | None = None,
        below: str | None = None,
        above: str | None = None,
        newest_first: bool = False,
        page: int | None = None,
        later_pages: int | None = None,
        strong: bool = True,
    ) -> Iterator[Item]:
        """Yield items of a partition in the order of their range keys.

        Args:
            partition: Which.
            prefix: Only range keys that start with it.
            below: Only range keys below it; not with `above` or without `prefix`.
            above: Only range keys above it; likewise.
            newest_first: From the highest to the lowest.
            page: How many items are probably wanted; None: as many as there are.
            later_pages: Items a page after the first one; None: as many as fit.
            strong: See every write; False costs half and may see the items as they were.
        """
        condition, values = "#pk = :pk", {":pk": packed(partition)}
        if below is not None:
            condition += " AND #sk BETWEEN :from AND :below"
            values |= {":from": packed(prefix or " "), ":below": packed(below)}
        elif above is not None:
            condition += " AND #sk BETWEEN :above AND :to"
            values |= {":above": packed(above), ":to": packed(f"{prefix}\U0010ffff")}
        elif prefix is not None:
            condition += " AND begins_with(#sk, :prefix)"
            values[":prefix"] = packed(prefix)
        params: dict[str, Any] = {} if page is None else {"Limit": page}
        while True:
            found = self._call(
                "query",
                KeyConditionExpression=condition,
                ExpressionAttributeNames={
                    "#pk": "pk",
                    **({"#sk": "sk"} if "#sk" in condition else {}),
                },
                ExpressionAttributeValues=values,
                ConsistentRead=strong,
                ScanIndexForward=not newest_first,
                **params,
            )
            for one in found["Items"]:
                item = unpack(one)
                if item["sk"] not in {below, above}:
                    yield item
            if "LastEvaluatedKey" not in found:
                return
            params = {"ExclusiveStartKey": found["LastEvaluatedKey"]}
            if later_pages is not None:
                params["Limit"] = later_pages

    def keys_due(
        self, index: str, attributes: tuple[str, str], value: str, until: str
    ) -> Iterator[Key]:
        """Yield the keys in an index under a value, up to a range key, lowest first.

        The index may lag behind the table.
        """
        params: dict[str, Any] = {}
        while True:
            found = self._call(
                "query",
                IndexName=index,
                KeyConditionExpression="#a = :a AND #b <= :b",
                ExpressionAttributeNames={"#a": attributes[0], "#b": attributes[1]},
                ExpressionAttributeValues={":a": packed(value), ":b": packed(until)},
                **params,
            )
            yield from (_key_of(item) for item in found["Items"])
            if "LastEvaluatedKey" not in found:
                return
            params = {"ExclusiveStartKey": found["LastEvaluatedKey"]}

    def get_many(self, wanted: Sequence[Key]) -> dict[Key, Item]:
        """Return those of the items that are there; each key is asked for once.

        Raises:
            StoreUnavailable: Some were left unprocessed until the budget was used up.
        """
        items: dict[Key, Item] = {}
        left = [key_of(key) for key in dict.fromkeys(wanted)]
        waits = self._connection.budget.waits()
        while left:
            some, later = left[:_READ_BATCH], left[_READ_BATCH:]
            found = self._connection.dynamodb(
                "batch_get_item",
                RequestItems={self.name: {"Keys": some, "ConsistentRead": True}},
            )
            for one in found.get("Responses", {}).get(self.name, []):
                items[_key_of(one)] = unpack(one)
            undone = found.get("UnprocessedKeys", {}).get(self.name, {}).get("Keys", [])
            if undone and not waits.wait():
                raise StoreUnavailable(f"{len(undone) + len(later)} items were not read")
            left = [*undone, *later]
        return items

    # Writing.

    def write(self, write: Write) -> Item:
        """Put, update or delete one item; return it as it is now, empty where it is not known.

        Raises:
            ConditionFailed: The condition does not hold.
        """
        operation, params = write.alone()
        try:
            done = self._call(operation, **params, ReturnValuesOnConditionCheckFailure="ALL_OLD")
        except ClientError as error:
            if code_of(error) != _REFUSED + "Exception":
                raise
            there = cast("dict[str, Any]", error.response).get("Item")
            raise ConditionFailed({0: unpack(there) if there else None}) from error
        return unpack(done.get("Attributes", {}))

    def try_write(self, key: Key) -> None:
        """Be refused a write of one item, there or not: it is taken in as any other is."""
        with suppress(ConditionFailed):
            self.write(Write(key=key, deletes=True, condition="#never = :once", values={"once": 1}))

    def transact(self, *writes: Write) -> None:
        """Do all of some writes, or none.

        Raises:
            ConditionFailed: A condition does not hold.
            StoreUnavailable: Other transactions were in the way until the budget was used up.
        """
        token = uuid4().hex  # a repetition whose first try was done changes nothing
        waits = self._connection.budget.waits()
        items = [write.part(self.name) for write in writes]
        while True:
            try:
                self._connection.dynamodb(
                    "transact_write_items", TransactItems=items, ClientRequestToken=token
                )
            except ClientError as error:
                if code_of(error) not in _TRANSACTION:
                    raise
                failed = _failed(error)
                if failed:
                    raise ConditionFailed(failed) from error
                if not waits.wait():
                    raise StoreUnavailable("transact_write_items found no gap") from error
            else:
                return

    def delete(self, doomed: Sequence[Key]) -> None:
        """Delete items; those that are gone already are no error.

        Raises:
            StoreUnavailable: Some were left unprocessed until the budget was used up.
        """
        left: list[Any] = [{"DeleteRequest": {"Key": key_of(key)}} for key in dict.fromkeys(doomed)]
        waits = self._connection.budget.waits()
        while left:
            some, later = left[:_WRITE_BATCH], left[_WRITE_BATCH:]
            done = self._connection.dynamodb("batch_write_item", RequestItems={self.name: some})
            undone = done.get("UnprocessedItems", {}).get(self.name, [])
            if undone and not waits.wait():
                raise StoreUnavailable(f"{len(undone) + len(later)} items were not deleted")
            left = [*undone, *later]

    def _call(self, operation: str, **params: Any) -> Any:  # noqa: ANN401 - botocore's own
        return self._connection.dynamodb(operation, TableName=self.name, **params)


_TRANSACTION = frozenset({"TransactionCanceledException", "TransactionInProgressException"})


def _named(work: Callable[[], T]) -> T:
    """Do the work; what DynamoDB refuses is told by its code alone, as texts may hold content."""
    try:
        return work()
    except ClientError as error:
        name = error.operation_name
        raise StoreUnavailable(f"{name} was refused: {code_of(error)}") from error


async def _until_done(waiting: "asyncio.Future[Any]") -> None:
    while not waiting.done():
        try:
            await asyncio.wait({waiting})
        except asyncio.CancelledError:
            continue  # the caller is told once, at the end
    waiting.exception()  # nobody else will look


def _key_of(item: Mapping[str, Any]) -> Key:
    return item["pk"]["S"], item["sk"]["S"]


def _failed(error: ClientError) -> dict[int, Item | None]:
    reasons = cast("dict[str, Any]", error.response).get("CancellationReasons", [])
    return {
        at: unpack(reason["Item"]) if reason.get("Item") else None
        for at, reason in enumerate(reasons)
        if reason.get("Code") == _REFUSED
    }
