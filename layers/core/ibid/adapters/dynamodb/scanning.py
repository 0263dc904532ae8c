"""Reading a whole table, which only a checker does."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ibid.adapters.dynamodb.connection import Connection


def scanned(
    connection: Connection, table: str, attributes: Sequence[str]
) -> Iterator[Mapping[str, Any]]:
    """Yield these attributes of every item of a table, as DynamoDB has them."""
    params: dict[str, Any] = {}
    while True:
        found = connection.dynamodb(
            "scan",
            TableName=table,
            ConsistentRead=True,
            ProjectionExpression=", ".join(f"#{name}" for name in attributes),
            ExpressionAttributeNames={f"#{name}": name for name in attributes},
            **params,
        )
        yield from found["Items"]
        if "LastEvaluatedKey" not in found:
            return
        params = {"ExclusiveStartKey": found["LastEvaluatedKey"]}
