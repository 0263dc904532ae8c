import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ibid.adapters.sqlite.index_file import (
    Array,
    ArraySource,
    FaultyFile,
    append_arrays,
    copied,
    database_bytes,
    map_arrays,
    schema_version,
)
from ibid.adapters.sqlite.index_rows import connect


@pytest.fixture
def arrays() -> Mapping[str, Array]:
    draw = np.random.default_rng(5)
    return {
        "matrix": draw.random((37, 5), np.float32),
        "keys": draw.integers(0, 2**63, 1001, np.uint64),
        "none": np.empty((0, 4), np.float32),
    }


@pytest.fixture
def file(tmp_path: Path, arrays: Mapping[str, Array]) -> Path:
    path = tmp_path / "one file ?#.ibid"
    with closing(connect(path)) as database:
        database.executescript("PRAGMA user_version = 7; CREATE TABLE words (word TEXT); BEGIN;")
        database.executemany("INSERT INTO words VALUES (?)", [("word" * 100,)] * 300)
        database.execute("COMMIT")
    append_arrays(path, copied(arrays))
    return path


def test_sqlite_reads_its_part_and_finds_no_fault(file: Path) -> None:
    with closing(connect(file, sealed=True)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("SELECT count(*) FROM words").fetchone() == (300,)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            database.execute("DELETE FROM words")
    assert schema_version(file) == 7
    assert database_bytes(file) < file.stat().st_size


def test_arrays_come_back_aligned_and_read_only(file: Path, arrays: Mapping[str, Array]) -> None:
    mapped = map_arrays(file)

    assert set(mapped) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(mapped[name], array)
        assert mapped[name].dtype == array.dtype
        assert mapped[name].ctypes.data % 64 == 0
        assert not mapped[name].flags.writeable


def test_a_mapping_outlives_the_file(file: Path, arrays: Mapping[str, Array]) -> None:
    mapped = map_arrays(file)

    file.unlink()

    np.testing.assert_array_equal(mapped["matrix"], arrays["matrix"])


def test_pieces_make_one_array(tmp_path: Path) -> None:
    path = tmp_path / "pieces"
    with closing(connect(path)) as database:
        database.execute("CREATE TABLE t (a)")
    whole = np.arange(10, dtype=np.float32).reshape(5, 2)

    append_arrays(path, [ArraySource("a", "<f4", (5, 2), iter([whole[:2], whole[2:]]))])

    np.testing.assert_array_equal(map_arrays(path)["a"], whole)


@pytest.mark.parametrize("part", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999, 1.0])
def test_any_flipped_bit_is_noticed(file: Path, part: float) -> None:
    content = bytearray(file.read_bytes())
    content[int(part * (len(content) - 1))] ^= 1
    file.write_bytes(content)

    with pytest.raises(FaultyFile):
        map_arrays(file)


@pytest.mark.parametrize("kept", [0, 1, 23, 24, 99, 100, 5000, -1, -4096])
def test_a_cut_file_is_noticed(file: Path, kept: int) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:kept])

    with pytest.raises(FaultyFile):
        map_arrays(file)


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\x00", b"x" * 200])
def test_what_is_no_database_has_no_version(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)

    for read in (schema_version, database_bytes):
        with pytest.raises(FaultyFile):
            read(path)


def test_pages_of_64_kib_are_counted_right(tmp_path: Path) -> None:
    path = tmp_path / "large pages"
    with closing(connect(path)) as database:
        database.executescript("PRAGMA page_size = 65536; CREATE TABLE t (a);")

    assert database_bytes(path) == path.stat().st_size
