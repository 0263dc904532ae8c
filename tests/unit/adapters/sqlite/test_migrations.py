"""A file is brought to the current schema whole, or not touched."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ibid.adapters.sqlite.migrations import APPLICATION_ID, STEPS, Step, migrate
from ibid.domain.errors import Misconfigured, SchemaTooNew


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        yield connection


def _add_notes(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE projects ADD COLUMN notes TEXT NOT NULL DEFAULT ''")


def _fail(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE half (a)")
    raise OSError


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _tables(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {row[0] for row in rows}


def test_a_new_file_gets_the_current_schema(connection: sqlite3.Connection) -> None:
    migrate(connection, name="app.sqlite")
    migrate(connection, name="app.sqlite")

    assert _version(connection) == len(STEPS)
    assert connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    assert _tables(connection) == {
        "projects",
        "members",
        "jobs",
        "conversations",
        "runs",
        "messages",
        "journal",
        "idempotency",
        "feedback",
    }


def test_an_older_file_gets_the_steps_that_it_lacks(connection: sqlite3.Connection) -> None:
    migrate(connection, name="app.sqlite")

    migrate(connection, name="app.sqlite", steps=[*STEPS, _add_notes])

    assert _version(connection) == len(STEPS) + 1
    assert connection.execute("SELECT notes FROM projects").fetchall() == []


def test_a_step_that_fails_leaves_the_file_as_it_was(connection: sqlite3.Connection) -> None:
    migrate(connection, name="app.sqlite")
    steps: list[Step] = [*STEPS, _add_notes, _fail]

    with pytest.raises(OSError, match=r"^$"):
        migrate(connection, name="app.sqlite", steps=steps)

    assert _version(connection) == len(STEPS)
    assert "half" not in _tables(connection)
    columns = connection.execute("SELECT * FROM projects").description
    assert "notes" not in [column[0] for column in columns]


def test_a_newer_file_is_refused_by_name(connection: sqlite3.Connection) -> None:
    migrate(connection, name="app.sqlite", steps=[*STEPS, _add_notes])

    with pytest.raises(SchemaTooNew, match=r"'app\.sqlite' has schema 3.*knows 2"):
        migrate(connection, name="app.sqlite")

    assert _version(connection) == len(STEPS) + 1


def test_another_programs_database_is_refused(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE theirs (a)")

    with pytest.raises(Misconfigured, match="another program"):
        migrate(connection, name="app.sqlite")

    assert _tables(connection) == {"theirs"}


def test_a_kept_file_of_the_first_schema_still_opens() -> None:
    kept = Path(__file__).parent / "app-schema-1.sql"
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(kept.read_text("utf-8"))

        migrate(connection, name="app.sqlite")

        assert _version(connection) == len(STEPS)
        rows = connection.execute("SELECT content FROM messages ORDER BY position").fetchall()
        assert rows == [("Where is the app made?",), ("In `create_app` [1].",)]
