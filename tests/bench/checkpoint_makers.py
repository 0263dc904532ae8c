"""The peers' savers, each imported only in the environment that has it."""

# ruff: noqa: ANN401 - savers of five packages share no type

from importlib import import_module
from typing import Any


def base(place: dict[str, Any]) -> Any:
    """langgraph-checkpoint-dynamodb, as it is."""
    return import_module("langgraph_checkpoint_dynamodb.saver").DynamoDBSaver(
        client_config=place["client"],
        checkpoints_table_name=place["checkpoints"],
        writes_table_name=place["writes"],
    )


def aws(place: dict[str, Any], **options: Any) -> Any:
    """langgraph-checkpoint-aws."""
    client = place["client"]
    return import_module("langgraph_checkpoint_aws").DynamoDBSaver(
        table_name=place["single"],
        endpoint_url=client["endpoint_url"],
        region_name=client["region_name"],
        **options,
    )


def amz(place: dict[str, Any]) -> Any:
    """langgraph-checkpoint-amazon-dynamodb, which has the base's import name."""
    package = import_module("langgraph_checkpoint_dynamodb")
    table = package.DynamoDBTableConfig(table_name=place["single"])
    return package.DynamoDBSaver(package.DynamoDBConfig(table_config=table, **place["client"]))


def ldc(place: dict[str, Any]) -> Any:
    """langgraph-dynamodb-checkpoint, which makes its own table and reads the environment."""
    return import_module("langgraph_dynamodb_checkpoint").DynamoDBSaver(place["own"])


def transacted(place: dict[str, Any], **options: Any) -> Any:
    """Ours, fenced by a condition in every write instead of by cuts: what the ADR compares."""
    from ibid.adapters.dynamodb.fence import fence_key  # noqa: PLC0415
    from tests.contract.saver_makers import ibid  # noqa: PLC0415

    saver = ibid(place, **options)
    plain, holders = saver._connection.dynamodb, saver._leases._confirmed  # noqa: SLF001 - a trial

    def dynamodb(operation: str, **params: Any) -> Any:
        is_row = operation == "put_item" and "checkpoint" in params["Item"]
        is_pack = operation == "update_item" and params["TableName"] == place["writes"]
        if not holders or not (is_row or is_pack):  # before a lease is had: its own items
            return plain(operation, **params)
        ((thread_id, token),) = holders
        check = {
            "TableName": place["checkpoints"],
            "Key": fence_key(thread_id),
            "ConditionExpression": "#token = :token",
            "ExpressionAttributeNames": {"#token": "token"},
            "ExpressionAttributeValues": {":token": {"N": str(token)}},
        }
        write = {"Put" if is_row else "Update": params}
        return plain("transact_write_items", TransactItems=[{"ConditionCheck": check}, write])

    vars(saver._connection)["dynamodb"] = dynamodb  # noqa: SLF001 - a trial
    return saver
