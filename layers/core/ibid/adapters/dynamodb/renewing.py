"""A longer life for what a reader has just found past half of its own."""

from collections.abc import Sequence

from botocore.exceptions import ClientError

from ibid.adapters.dynamodb.expiry import TTL
from ibid.adapters.dynamodb.fence import fence_key
from ibid.adapters.dynamodb.packs import PARTITION, RANGE
from ibid.adapters.dynamodb.retries import code_of
from ibid.adapters.dynamodb.rows import Row
from ibid.adapters.dynamodb.storage import Item, Storage


def renew(storage: Storage, rows: Sequence[Row]) -> None:
    """Renew checkpoints, the writes on them, their objects, and the thread's fence.

    Args:
        storage: Where.
        rows: Of one thread: the newest one of a namespace and all above it, since a pause of the
            root may lie in a subgraph.
    """
    for row in rows:
        storage.parts.renew(row.item)
        _renew(storage, storage.checkpoints, row.key())
        for item in storage.writes_to(row.thread_id, row.checkpoint_id, row.checkpoint_ns):
            storage.parts.renew(item)
            _renew(storage, storage.writes, {PARTITION: item[PARTITION], RANGE: item[RANGE]})
    for thread_id in {row.thread_id for row in rows}:
        _renew(storage, storage.checkpoints, fence_key(thread_id), lives=2)


def _renew(storage: Storage, table: str, key: Item, *, lives: int = 1) -> None:
    first = next(iter(key))
    try:
        storage.connection.dynamodb(
            "update_item",
            TableName=table,
            Key=key,
            UpdateExpression="SET #ttl = :ttl",
            ConditionExpression="attribute_exists(#key)",
            ExpressionAttributeNames={"#ttl": TTL, "#key": first},
            ExpressionAttributeValues={":ttl": storage.expiry.attribute(lives=lives)[TTL]},
        )
    except ClientError as error:
        if code_of(error) != "ConditionalCheckFailedException":  # deleted meanwhile
            raise
