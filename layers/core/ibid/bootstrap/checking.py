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
        Misconfigured: There is no store, or it is none that can be checked.
        StoreUnavailable: It can't be read.
    """
    if settings.store != "sqlite":
        raise Misconfigured(f"IBID_STORE={settings.store} can't be checked by this command")
    from ibid.adapters.sqlite.database import Database
    from ibid.adapters.sqlite.inventory import SqliteCheckpointInventory, SqliteInventory
    from ibid.adapters.sqlite.saver_schema import CHECKPOINT_FILE_ID, STEPS

    path = settings.data / "ibid.sqlite"
    if not path.exists():
        raise Misconfigured(f"IBID_DATA: {settings.data} holds no store")
    async with AsyncExitStack() as stack:
        records = await Database.open(path)
        stack.push_async_callback(records.close)
        checkpoints = None
        if (settings.data / "checkpoints.sqlite").exists():
            file = await Database.open(
                settings.data / "checkpoints.sqlite",
                steps=STEPS,
                application_id=CHECKPOINT_FILE_ID,
            )
            stack.push_async_callback(file.close)
            checkpoints = SqliteCheckpointInventory(file)
        yield Inventories(records=SqliteInventory(records), checkpoints=checkpoints)
