"""The app records in one DynamoDB table."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from ibid.adapters.dynamodb.connection import Connection
from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.adoptions import Adoptions
from ibid.adapters.dynamodb.records.conversations import DynamoConversations
from ibid.adapters.dynamodb.records.deletion import Deletion
from ibid.adapters.dynamodb.records.ends import Ends
from ibid.adapters.dynamodb.records.expiry import Expiry
from ibid.adapters.dynamodb.records.feedback import DynamoFeedback
from ibid.adapters.dynamodb.records.idempotency import DynamoIdempotency
from ibid.adapters.dynamodb.records.jobs import DynamoJobs
from ibid.adapters.dynamodb.records.journal import Journals
from ibid.adapters.dynamodb.records.memory import Memory
from ibid.adapters.dynamodb.records.places import Places
from ibid.adapters.dynamodb.records.projects import DynamoProjects
from ibid.adapters.dynamodb.records.resumptions import Resumptions
from ibid.adapters.dynamodb.records.runs import DynamoRuns
from ibid.adapters.dynamodb.records.starts import Starts
from ibid.adapters.dynamodb.records.table import ConditionFailed, Table
from ibid.adapters.dynamodb.records.writes import Write
from ibid.adapters.dynamodb.retries import RetryBudget
from ibid.domain.errors import SchemaTooNew

SCHEMA = 1
_BUDGET = RetryBudget(seconds=5.0)  # a request waits for it


class DynamoRecords:
    """All stores over one table; any number of processes may use it.

    Attributes:
        projects: The ProjectStore.
        jobs: The JobStore.
        conversations: The ConversationStore.
        runs: The RunStore.
        idempotency: The IdempotencyStore.
        feedback: The FeedbackStore.
    """

    def __init__(self, connection: Connection, *, table: str, now: Callable[[], float]) -> None:
        self._connection = connection
        self._table = made = Table(connection, table)
        expiry, memory = Expiry(now), Memory()
        journals, places = Journals(made, memory), Places(made, expiry)
        deletion = Deletion(made, journals, places, expiry)
        self.projects = DynamoProjects(made, deletion)
        self.jobs = DynamoJobs(made)
        self.conversations = DynamoConversations(made, deletion)
        self.runs = DynamoRuns(
            made,
            journals=journals,
            places=places,
            starts=Starts(made, places, memory),
            resumptions=Resumptions(made, places, memory),
            adoptions=Adoptions(made, journals, memory, expiry),
            ends=Ends(made, journals, places, memory),
            expiry=expiry,
        )
        self.idempotency = DynamoIdempotency(made, deletion)
        self.feedback = DynamoFeedback(made)

    @classmethod
    async def open(
        cls,
        table: str,
        *,
        client_config: Mapping[str, Any] | None = None,
        workers: int = 16,
        budget: RetryBudget = _BUDGET,
        now: Callable[[], float] = time.time,
    ) -> "DynamoRecords":
        """Open a table as `create_app_table` makes it.

        Args:
            table: Its name.
            client_config: Arguments of `boto3.client("dynamodb")`.
            workers: Most calls under way at once.
            budget: Of every call with its repetitions.
            now: Epoch seconds, for expiry only.

        Raises:
            Misconfigured: There is no such table, or no right to it.
            SchemaTooNew: A newer version wrote it.
            StoreUnavailable: DynamoDB gave no answer.
        """
        connection = Connection(
            {"dynamodb": dict(client_config or {})}, workers=workers, budget=budget
        )
        records = cls(connection, table=table, now=now)
        try:
            await records.check_schema()
        except BaseException:
            await records.close()
            raise
        return records

    async def check_schema(self) -> None:
        """Note the schema in a new table, and refuse a newer one."""

        def work() -> None:
            item = self._table.get(keys.SCHEMA)
            if item is None:
                note = Write(
                    key=keys.SCHEMA,
                    item={"version": SCHEMA},
                    condition="attribute_not_exists(#pk)",
                )
                try:
                    self._table.write(note)
                except ConditionFailed as error:
                    item = error.item
            if item is not None and item["version"] > SCHEMA:
                raise SchemaTooNew(
                    f"table {self._table.name!r} has schema {item['version']};"
                    f" this version of Ibid knows {SCHEMA}"
                )

        await self._table.run(work)

    async def close(self) -> None:
        """Wait for the calls under way and close the sockets; repeatable."""
        await asyncio.to_thread(self._connection.close)
