"""The tables and the bucket, for tests and for a server that stands alone."""

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from ibid.adapters.dynamodb.expiry import GRACE, TTL
from ibid.adapters.dynamodb.records.expiry import TTL as APP_TTL
from ibid.adapters.dynamodb.retries import code_of

ORPHANS = "orphans"  # of the writes: those whose checkpoint was not known to be stored
ORPHAN_THREAD = "orphan_thread"
RUNS = "runs"  # of the checkpoints: the first of every run
FIRST_OF_RUN = "first_of_run"

PAUSED_RUNS = "paused_runs"  # of the app table: runs that wait for an answer, by their end
PAUSE, DUE = "pause", "due"

_DAY = timedelta(days=1)


def create_tables(client: Any, *, checkpoints: str, writes: str) -> None:  # noqa: ANN401 - boto3 makes its classes at run time
    """Make the two tables, on demand, with their indexes and time to live.

    The keys are those of `langgraph-checkpoint-dynamodb` 0.1.0; the two indexes are sparse and
    hold keys only. What exists is left as it is. Returns when both are ready.

    Args:
        client: Of DynamoDB.
        checkpoints: A table's name.
        writes: Another one.
    """
    _create(client, checkpoints, ("thread_id", "checkpoint_id"), RUNS, FIRST_OF_RUN)
    _create(
        client,
        writes,
        ("thread_id_checkpoint_id_checkpoint_ns", "task_id_idx"),
        ORPHANS,
        ORPHAN_THREAD,
    )


def create_app_table(client: Any, name: str) -> None:  # noqa: ANN401 - as above
    """Make the table of the app records, on demand, with its index and time to live.

    The index is sparse and holds keys only: runs that wait for an answer. What exists is left as
    it is. Returns when it is ready.

    Args:
        client: Of DynamoDB.
        name: The table's.
    """
    _create(client, name, ("pk", "sk"), PAUSED_RUNS, PAUSE, DUE, ttl=APP_TTL)


def _create(
    client: Any,  # noqa: ANN401 - as above
    name: str,
    key: Sequence[str],
    index: str,
    *attributes: str,
    ttl: str = TTL,
) -> None:
    try:
        client.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[
                {"AttributeName": one, "AttributeType": "S"} for one in (*key, *attributes)
            ],
            KeySchema=[
                {"AttributeName": key[0], "KeyType": "HASH"},
                {"AttributeName": key[1], "KeyType": "RANGE"},
            ],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": index,
                    "KeySchema": [
                        {"AttributeName": one, "KeyType": kind}
                        for one, kind in zip(attributes, ("HASH", "RANGE"), strict=False)
                    ],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            ],
        )
    except ClientError as error:
        if code_of(error) != "ResourceInUseException":
            raise
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    try:
        client.update_time_to_live(
            TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": ttl}
        )
    except ClientError as error:
        if code_of(error) != "ValidationException":  # it is on already
            raise


def create_bucket(
    client: Any,  # noqa: ANN401 - boto3 makes its classes at run time
    bucket: str,
    *,
    prefix: str = "checkpoints/",
    ttl: timedelta | None = None,
) -> None:
    """Make the bucket of large parts; with `ttl`, its objects end after their items, never before.

    Args:
        client: Of S3.
        bucket: Its name; one that exists is kept.
        prefix: Where the saver puts objects.
        ttl: The saver's.
    """
    region = client.meta.region_name
    place = {} if region == "us-east-1" else {"LocationConstraint": region}
    try:
        client.create_bucket(
            Bucket=bucket, **({"CreateBucketConfiguration": place} if place else {})
        )
    except ClientError as error:
        if code_of(error) not in {"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}:
            raise
    if ttl is None:
        return
    days = math.ceil((ttl + GRACE) / _DAY) + 3  # DynamoDB deletes up to two days late
    client.put_bucket_lifecycle_configuration(
        Bucket=bucket,
        LifecycleConfiguration={
            "Rules": [
                {
                    "ID": "checkpoints",
                    "Status": "Enabled",
                    "Filter": {"Prefix": prefix},
                    "Expiration": {"Days": days},
                }
            ]
        },
    )
