"""Opens the stores that the settings name: app records and checkpoints."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from langgraph.checkpoint.base import BaseCheckpointSaver

from ibid.domain.errors import Misconfigured, StoreUnavailable
from ibid.ports.conversations import ConversationStore
from ibid.ports.feedback import FeedbackStore
from ibid.ports.idempotency import IdempotencyStore
from ibid.ports.projects import JobStore, ProjectStore
from ibid.ports.runs import RunStore
from ibid.settings import Settings

_BEYOND_A_PAUSE = timedelta(days=1)


class Records(Protocol):
    """The app records of one store, whichever it is."""

    @property
    def projects(self) -> ProjectStore:
        """Projects and their members."""

    @property
    def jobs(self) -> JobStore:
        """Indexing jobs."""

    @property
    def conversations(self) -> ConversationStore:
        """Conversations and messages."""

    @property
    def runs(self) -> RunStore:
        """Runs and their journals."""

    @property
    def idempotency(self) -> IdempotencyStore:
        """What requests with a key were answered."""

    @property
    def feedback(self) -> FeedbackStore:
        """Ratings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """What one process has open.

    Attributes:
        saver: Leases the threads that it keeps; a turn's checkpoints last a day longer than a
            clarification can be answered.
        tidy: Removes the checkpoints that are over; None where the store does so by itself.
    """

    records: Records
    saver: BaseCheckpointSaver[Any]
    tidy: Callable[[], Awaitable[object]] | None


async def open_stores(settings: Settings, stack: AsyncExitStack) -> Stores:
    """Open them, closed with the stack.

    Raises:
        Misconfigured: A file of another program or of a newer version, or a package is missing.
        StoreUnavailable: A store can't be reached.
    """
    last = timedelta(seconds=settings.clarification_s) + _BEYOND_A_PAUSE
    if settings.store == "dynamodb":
        return await _in_dynamodb(settings, last, stack)
    return await _embedded(settings, last, stack)


async def _embedded(settings: Settings, last: timedelta, stack: AsyncExitStack) -> Stores:
    from ibid.adapters.sqlite.records import SqliteRecords
    from ibid.adapters.sqlite.saver import EmbeddedSaver

    records = await SqliteRecords.open(settings.data / "ibid.sqlite")
    stack.push_async_callback(records.close)
    saver = await EmbeddedSaver.open(
        settings.data / "checkpoints.sqlite",
        ttl=last,
        term_s=settings.lease_term_s,
    )
    stack.push_async_callback(saver.close)
    return Stores(records=records, saver=saver, tidy=saver.sweep)


async def _in_dynamodb(settings: Settings, last: timedelta, stack: AsyncExitStack) -> Stores:
    try:
        from ibid.adapters.dynamodb.records.records import DynamoRecords
        from ibid.adapters.dynamodb.saver import DynamoSaver
    except ImportError as error:
        msg = f"IBID_STORE=dynamodb needs `pip install 'ibid-server[dynamodb]'`: {error.name}"
        raise Misconfigured(msg) from error

    app, checkpoints, writes = settings.tables
    if settings.create_tables:
        await _create(settings)
    records = await DynamoRecords.open(app)
    stack.push_async_callback(records.close)
    saver = DynamoSaver(
        checkpoints_table_name=checkpoints,
        writes_table_name=writes,
        bucket=settings.bucket,
        ttl=last,
        term_s=settings.lease_term_s,
    )
    stack.callback(saver.close)
    return Stores(records=records, saver=saver, tidy=None)


async def _create(settings: Settings) -> None:
    """Make the tables and the bucket that are not there.

    Raises:
        Misconfigured: They may not be made.
        StoreUnavailable: AWS gave no answer.
    """
    import asyncio

    from botocore.exceptions import BotoCoreError, ClientError

    from ibid.adapters.dynamodb.connection import make_client
    from ibid.adapters.dynamodb.retries import code_of
    from ibid.adapters.dynamodb.tables import create_app_table, create_bucket, create_tables

    app, checkpoints, writes = settings.tables

    def create() -> None:
        client = make_client("dynamodb")
        create_app_table(client, app)
        create_tables(client, checkpoints=checkpoints, writes=writes)
        if settings.bucket is not None:
            create_bucket(make_client("s3"), settings.bucket)

    try:
        await asyncio.to_thread(create)
    except ClientError as error:
        refused = f"{error.operation_name} was refused: {code_of(error)}"
        raise Misconfigured(f"IBID_CREATE_TABLES=true: {refused}") from error
    except BotoCoreError as error:
        name = type(error).__name__
        raise StoreUnavailable(f"IBID_CREATE_TABLES=true: AWS gave no answer: {name}") from error
