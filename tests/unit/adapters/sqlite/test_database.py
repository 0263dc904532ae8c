"""The corners of one SQLite file that no store reaches by itself."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ibid.adapters.sqlite.database import Database
from ibid.domain.errors import StoreUnavailable


def _fail(_: sqlite3.Connection) -> None:
    raise sqlite3.OperationalError("text that must not be shown")


def _commit_then_fail(connection: sqlite3.Connection) -> None:
    connection.execute("COMMIT")
    raise OSError


async def test_an_error_of_sqlite_is_unavailable_and_says_no_text(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "app.sqlite")

    with pytest.raises(StoreUnavailable, match=r"^the app store failed with OperationalError$"):
        await database.write(_fail)
    with pytest.raises(StoreUnavailable):
        await database.read(_fail)

    assert await database.write(lambda _: 1) == await database.read(lambda _: 1)
    await database.close()


async def test_a_transaction_that_ended_itself_is_not_rolled_back(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "app.sqlite")

    with pytest.raises(OSError, match=r"^$"):
        await database.write(_commit_then_fail)

    await database.close()


async def test_a_file_that_is_held_while_it_is_made_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "app.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreUnavailable, match="SQLITE_BUSY"):
            await Database.open(path, busy_s=0.05)

        other.execute("COMMIT")
    await (await Database.open(path, busy_s=0.05)).close()


async def test_a_file_that_is_held_altogether_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "app.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")

        with pytest.raises(StoreUnavailable, match="SQLITE_BUSY"):
            await Database.open(path, busy_s=0.05)


async def test_a_deletion_whose_clean_up_fails_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = await Database.open(tmp_path / "app.sqlite")

    def forbid(connection: sqlite3.Connection) -> None:
        def authorize(_: int, name: str | None, *__: str | None) -> int:
            is_checkpoint = name == "wal_checkpoint"
            return sqlite3.SQLITE_DENY if is_checkpoint else sqlite3.SQLITE_OK

        connection.set_authorizer(authorize)

    await database.write(forbid)

    await database.erase(lambda connection: connection.execute("CREATE TABLE kept (a)"))

    assert await database.read(lambda c: c.execute("SELECT * FROM kept").fetchall()) == []
    assert "store_scrub_postponed" in caplog.messages
    await database.close()
