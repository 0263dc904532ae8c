"""An app table on ministack that nobody else uses."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import boto3

from ibid.adapters.dynamodb.records.expiry import TTL
from ibid.adapters.dynamodb.records.records import DynamoRecords
from ibid.adapters.dynamodb.retries import RetryBudget
from ibid.adapters.dynamodb.tables import create_app_table
from tests.fakes.ministack import client_config
from tests.fakes.samples import NOON


@dataclass
class AppTable:
    """The table, a store on it, and the time that the store goes by.

    The time stands at noon of the samples unless it is moved; nothing is removed by time, since
    ministack goes by another one.
    """

    url: str
    name: str
    records: DynamoRecords
    now: float = field(default_factory=NOON.timestamp)

    @classmethod
    @asynccontextmanager
    async def opened(cls, url: str) -> "AsyncIterator[AppTable]":
        """Make the table, and close the store at the end."""
        name = f"app-{uuid4().hex[:12]}"
        client = _client(url)
        create_app_table(client, name)
        client.update_time_to_live(
            TableName=name, TimeToLiveSpecification={"Enabled": False, "AttributeName": TTL}
        )
        client.close()
        records = await DynamoRecords.open(
            name, client_config=client_config(url), now=lambda: table.now
        )
        table = cls(url, name, records)
        try:
            yield table
        finally:
            await records.close()

    async def another(self, **options: Any) -> DynamoRecords:  # noqa: ANN401 - the store's own
        """Open another store on the table, as another process would; the caller closes it."""
        given = {"budget": RetryBudget(seconds=2.0, first_s=0.001), **options}
        return await DynamoRecords.open(
            self.name, client_config=client_config(self.url), now=lambda: self.now, **given
        )

    def put(self, partition: str, place: str, **attributes: Any) -> None:  # noqa: ANN401 - as DynamoDB has them
        """Put an item, as DynamoDB has it."""
        client = _client(self.url)
        key = {"pk": {"S": partition}, "sk": {"S": place}}
        client.put_item(TableName=self.name, Item={**key, **attributes})
        client.close()

    def delete(self, partition: str, place: str) -> None:
        """Delete an item."""
        client = _client(self.url)
        key = {"pk": {"S": partition}, "sk": {"S": place}}
        client.delete_item(TableName=self.name, Key=key)
        client.close()

    def items(self) -> list[dict[str, Any]]:
        """Return all items, as DynamoDB has them."""
        client = _client(self.url)
        pages = client.get_paginator("scan").paginate(TableName=self.name, ConsistentRead=True)
        found = [item for page in pages for item in page["Items"]]
        client.close()
        return found


def _client(url: str) -> Any:  # noqa: ANN401 - boto3 makes its classes at run time
    session: Any = boto3.session.Session()
    return session.client("dynamodb", **client_config(url))
