import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ibid.adapters.sqlite.index_file import append_arrays, copied, map_arrays, schema_version
from ibid.adapters.sqlite.index_rows import connect
from ibid.adapters.sqlite.index_schema import SCHEMA, SCHEMA_VERSION, Step, make_current
from ibid.domain.errors import GenerationGone, SchemaTooNew

ARRAYS = {"first_rows": np.arange(5_000)}


def add_a_table(database: sqlite3.Connection) -> None:
    database.execute("CREATE TABLE added (number INTEGER)")
    database.executemany("INSERT INTO added VALUES (?)", [(n,) for n in range(20_000)])


def rename_a_column(database: sqlite3.Connection) -> None:
    database.execute("ALTER TABLE added RENAME COLUMN number TO value")


def fail(database: sqlite3.Connection) -> None:
    database.execute("CREATE TABLE half (done INTEGER)")
    raise OSError("no space left")


def file_of_version(path: Path, version: int) -> Path:
    with closing(connect(path)) as database:
        database.executescript(SCHEMA)
        database.execute(f"PRAGMA user_version = {version:d}")
        database.execute("INSERT INTO files VALUES (0, 'kept.py', 0)")
    append_arrays(path, copied(ARRAYS))
    return path


def test_a_current_file_is_left_alone(tmp_path: Path) -> None:
    file = file_of_version(tmp_path / "1.ibid", SCHEMA_VERSION)
    before = (file.read_bytes(), file.stat().st_ino)

    make_current(file)

    assert (file.read_bytes(), file.stat().st_ino) == before


def test_a_newer_file_is_refused_by_name(tmp_path: Path) -> None:
    file = file_of_version(tmp_path / "1.ibid", SCHEMA_VERSION + 1)
    before = file.read_bytes()

    with pytest.raises(SchemaTooNew) as refusal:
        make_current(file)

    assert str(file) in str(refusal.value)
    assert f"schema {SCHEMA_VERSION + 1}" in str(refusal.value)
    assert f"up to {SCHEMA_VERSION}" in str(refusal.value)
    assert file.read_bytes() == before


def test_an_older_file_takes_every_step_and_keeps_its_arrays(tmp_path: Path) -> None:
    file = file_of_version(tmp_path / "1.ibid", 1)

    make_current(file, version=3, steps={1: add_a_table, 2: rename_a_column})

    assert schema_version(file) == 3
    np.testing.assert_array_equal(map_arrays(file)["first_rows"], ARRAYS["first_rows"])
    with closing(connect(file, sealed=True)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("SELECT sum(value) FROM added").fetchone() == (199_990_000,)
        assert database.execute("SELECT path FROM files").fetchall() == [("kept.py",)]
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("steps", [{}, {1: add_a_table}, {2: rename_a_column}])
def test_an_older_file_without_every_step_is_gone_with_the_reason(
    tmp_path: Path, steps: Mapping[int, Step]
) -> None:
    file = file_of_version(tmp_path / "1.ibid", 1)
    before = file.read_bytes()

    with pytest.raises(GenerationGone, match="schema 1, which can't be migrated to 3"):
        make_current(file, version=3, steps=steps)

    assert file.read_bytes() == before


def test_a_migration_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    file = file_of_version(tmp_path / "1.ibid", 1)
    before = file.read_bytes()

    with pytest.raises(OSError, match="no space left"):
        make_current(file, version=3, steps={1: add_a_table, 2: fail})

    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]
