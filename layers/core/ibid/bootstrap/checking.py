"""Opens what `ibid fsck` reads: the stores as they are, without models, index or server."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from ibid.domain.errors import Misconfigured
from ibid.ports.inventory import CheckpointInventory, Inventory
from ibid.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventories:
    """What there is to check; `checkpoints` is None where none were ever kept."""

    records: Inventory
    checkpoints: CheckpointInventory | None


@asynccontextmanager
async def open_inventories(settings: Settings) -> AsyncIterator[Inventories]:
    """Open the stores for a check; an older file is brought to the current schema.

    Raises:
        Misconfigured: There is no store, or a package for it is missing.
        StoreUnavailable: It can't be read.
    """
    async with AsyncExitStack() as stack:
        if settings.store == "dynamodb":
            yield _in_dynamodb(settings, stack)
        else:
            yield await _embedded(settings, stack)


async def _embedded(settings: Settings, stack: AsyncExitStack) -> Inventories:
    from ibid.adapters.sqlite.database import Database
    from ibid.adapters.sqlite.inventory import SqliteCheckpointInventory, SqliteInventory
    from ibid.adapters.sqlite.saver_schema import CHECKPOINT_FILE_ID, STEPS

    path = settings.data / "ibid.sqlite"
    if not path.exists():
        raise Misconfigured(f"IBID_DATA: {settings.data} holds no store")
    records = await Database.open(path)
    stack.push_async_callback(records.close)
    checkpoints = None
    if (settings.data / "checkpoints.sqlite").exists():
        file = await Database.open(
            settings.data / "checkpoints.sqlite", steps=STEPS, application_id=CHECKPOINT_FILE_ID
        )
        stack.push_async_callback(file.close)
        checkpoints = SqliteCheckpointInventory(file)
    return Inventories(records=SqliteInventory(records), checkpoints=checkpoints)


def _in_dynamodb(settings: Settings, stack: AsyncExitStack) -> Inventories:
    try:
        from ibid.adapters.dynamodb.connection import Connection
        from ibid.adapters.dynamodb.inventory import DynamoCheckpointInventory
        from ibid.adapters.dynamodb.records.inventory import DynamoInventory
        from ibid.adapters.dynamodb.retries import RetryBudget
    except ImportError as error:
        msg = f"IBID_STORE=dynamodb needs `pip install 'ibid-server[dynamodb]'`: {error.name}"
        raise Misconfigured(msg) from error

    app, checkpoints, _ = settings.tables
    connection = Connection({}, workers=4, budget=RetryBudget(seconds=30.0))
    stack.callback(connection.close)
    return Inventories(
        records=DynamoInventory(connection, table=app),
        checkpoints=DynamoCheckpointInventory(connection, table=checkpoints),
    )
