"""Rows that were damaged, files of other versions and other programs, limits of SQLite."""

import asyncio
import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from ibid.adapters.checkpoints.serde import CompressedSerializer
from ibid.adapters.sqlite import saver_rows
from ibid.adapters.sqlite.saver import EmbeddedSaver
from ibid.adapters.sqlite.saver_rows import Place
from ibid.adapters.sqlite.saver_schema import CHECKPOINT_FILE_ID
from ibid.domain.errors import (
    CheckpointCorrupt,
    CheckpointTooLarge,
    IbidError,
    Misconfigured,
    SchemaTooNew,
    StoreUnavailable,
)
from tests.contract.saver_graphs import noise
from tests.unit.adapters.sqlite.saver_samples import (
    a_checkpoint,
    id_of,
    listed,
    opened,
    place,
    put,
    put_chain,
    rows,
    the,
)

DAMAGES = {
    "a bit of the state": "UPDATE checkpoints SET checkpoint = x'00' || substr(checkpoint, 2)",
    "no state": "UPDATE checkpoints SET checkpoint = NULL",
    "no type": "UPDATE checkpoints SET type = NULL",
    "a type that is no text": "UPDATE checkpoints SET type = CAST(x'ff' AS TEXT)",
    "an unknown type": "UPDATE checkpoints SET type = 'yaml', digest = NULL",
    "cut bytes": "UPDATE checkpoints SET checkpoint = substr(checkpoint, 1, 50), digest = NULL",
    "another value": "UPDATE checkpoints SET type = 'null', checkpoint = x'', digest = NULL",
    "metadata": "UPDATE checkpoints SET metadata = '{'",
    "other metadata": "UPDATE checkpoints SET metadata = '{}'",
    "metadata of another kind": "UPDATE checkpoints SET metadata = '[]'",
    "a parent": "UPDATE checkpoints SET parent_checkpoint_id = 'other'",
    "a write": "UPDATE writes SET value = x'00'",
    "a write's channel": "UPDATE writes SET channel = 'other'",
    "a write's task": "UPDATE writes SET task_id = 'other'",
    "a write's place in the order": "UPDATE writes SET task_path = 'other'",
    "a write's number": "UPDATE writes SET idx = 7",
    "a write's number that is none": "UPDATE writes SET idx = x'ff'",
    "a write's type": "UPDATE writes SET type = 'yaml', digest = NULL",
    "a write's value": "UPDATE writes SET value = NULL",
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_row_is_an_error_that_names_its_place(damage: str, tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        config = await put(saver, place("thread-1"), values={"v": "x" * 1_000})
        await saver.aput_writes(config, [("a", "y" * 300)], "task")
        rows(tmp_path, DAMAGES[damage])

        for read in (saver.aget_tuple(place("thread-1")), listed(saver, place("thread-1"))):
            with pytest.raises(CheckpointCorrupt) as caught:
                await read

            assert (caught.value.thread_id, caught.value.checkpoint_id) == (
                "thread-1",
                id_of(config),
            )
            assert repr(id_of(config)) in str(caught.value)
            assert "x" * 10 not in str(caught.value)


async def test_a_filter_that_must_read_damaged_metadata_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        await put(saver)
        rows(tmp_path, "UPDATE checkpoints SET metadata = '{'")

        with pytest.raises(CheckpointCorrupt):
            _ = [each async for each in saver.alist(place(), filter={"step": 0})]


async def test_damage_of_the_file_itself_is_named_too(tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"
    async with opened(tmp_path) as saver:
        config = await put(saver, values={"v": "x" * 40_000})
    content = bytearray(file.read_bytes())
    for page in range(8_192, len(content), 4_096):  # the first two hold the schema
        content[page : page + 64] = b"\xff" * 64
    file.write_bytes(content)

    async with opened(tmp_path) as saver:
        with pytest.raises(CheckpointCorrupt, match="the file is damaged") as caught:
            await saver.aget_tuple(config)

    assert (caught.value.thread_id, caught.value.checkpoint_id) == ("t", id_of(config))


async def test_more_than_sqlite_takes_is_refused_by_name(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:

        def limit(connection: sqlite3.Connection) -> None:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000)

        await saver._file.write(limit)  # noqa: SLF001 - a gigabyte is too much for a test

        with pytest.raises(CheckpointTooLarge, match="SQLite takes") as caught:
            await put(saver, values={"v": [hash((n, "x")) for n in range(9_000)]})

        assert caught.value.thread_id == "t"
        assert await listed(saver) == []


async def test_a_file_that_others_keep_busy_is_unavailable(tmp_path: Path) -> None:
    async with opened(tmp_path, busy_s=0.01) as saver:
        config = await put(saver)
        other = sqlite3.connect(tmp_path / "c.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreUnavailable, match="SQLITE_BUSY"):
            await saver.aput_writes(config, [("a", 1)], "task")
        with pytest.raises(StoreUnavailable, match="SQLITE_BUSY"):
            saver.put_writes(config, [("a", 1)], "task")
        other.close()

        assert (await the(saver)).pending_writes == []


FAULTS = {  # what the file is told, and how its calls fail then
    "full": ("PRAGMA max_page_count = 1", "SQLITE_FULL"),  # of now: it never cuts what there is
    "read-only": ("PRAGMA query_only = ON", "SQLITE_READONLY"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_write_that_a_file_does_not_take_leaves_nothing_and_is_named(
    fault: str, tmp_path: Path
) -> None:
    statement, name = FAULTS[fault]
    async with opened(tmp_path) as saver:
        config = await put(saver, values={"v": 1})
        await saver._file.write(lambda connection: connection.execute(statement).close())  # noqa: SLF001 - to be in its way

        for write in (
            put(saver, config, values={"v": noise(100_000)}),
            saver.aput_writes(config, [("a", 1), ("b", noise(100_000))], "task"),
        ):
            with pytest.raises(StoreUnavailable, match=name):
                await write

        assert await listed(saver) == [id_of(config)]
        assert (await the(saver)).pending_writes == []


async def test_a_full_file_can_still_be_emptied(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        await put(saver, values={"v": noise(100_000)})
        await saver._file.write(  # noqa: SLF001 - to be in its way
            lambda connection: connection.execute("PRAGMA max_page_count = 1").close()
        )

        await saver.adelete_thread("t")
        config = await put(saver, values={"v": noise(50_000)})

        assert await listed(saver) == [id_of(config)]


async def test_no_bit_that_flips_makes_a_value_that_was_never_stored(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        for config in await put_chain(saver, 4):
            for task in ("one", "two"):
                await saver.aput_writes(config, [("a", task), ("b", noise(300))], task, "~path")
        stored = [found async for found in saver.alist(place())]
    content = (tmp_path / "c.sqlite").read_bytes()
    draw = random.Random(7)  # noqa: S311 - no secret
    named = 0

    for number in range(150):
        folder = tmp_path / str(number)
        folder.mkdir()
        flipped = bytearray(content)
        for _ in range(draw.choice((1, 8))):
            flipped[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        (folder / "c.sqlite").write_bytes(flipped)
        try:
            async with opened(folder) as saver:
                found = [found async for found in saver.alist(place())]
        except IbidError:
            named += 1
            continue

        # a row that SQLite's own index has lost is not found; what is found is as it was
        for one in found:
            (same,) = [each for each in stored if each.config == one.config]
            assert one._replace(pending_writes=same.pending_writes) == same
            left = one.pending_writes or []
            assert left == [each for each in same.pending_writes or [] if each in left]

    assert 10 < named < 140


async def test_a_closed_saver_is_unavailable(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        pass

    with pytest.raises(StoreUnavailable, match="closed"):
        await saver.aget_tuple(place())
    with pytest.raises(StoreUnavailable, match="closed"):
        saver.get_tuple(place())
    await saver.close()  # once more changes nothing


async def test_a_file_of_a_newer_schema_is_refused_by_name(tmp_path: Path) -> None:
    async with opened(tmp_path):
        pass
    rows(tmp_path, "PRAGMA user_version = 2")

    with pytest.raises(SchemaTooNew, match=r"'c.sqlite' has schema 2"):
        await EmbeddedSaver.open(tmp_path / "c.sqlite")


def _another_programs(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE checkpoints (id)")
    connection.close()


def _no_database(file: Path) -> None:
    file.write_text("nothing of the kind " * 100)


def _marked_by_another(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE checkpoints (id)")
    connection.execute("CREATE TABLE writes (id)")
    connection.execute("PRAGMA application_id = 7")
    connection.close()


@pytest.mark.parametrize("make", [_another_programs, _no_database, _marked_by_another])
async def test_a_file_of_something_else_is_refused_and_left_alone(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    file = tmp_path / "c.sqlite"
    make(file)
    before = file.read_bytes()

    with pytest.raises(Misconfigured, match=r"'c.sqlite' is"):
        await EmbeddedSaver.open(file)

    assert file.read_bytes() == before


async def test_a_file_of_the_saver_that_it_is_made_from_is_taken_over(tmp_path: Path) -> None:
    checkpoint = a_checkpoint({"v": "kept"})
    metadata: Any = {"source": "loop", "step": 3, "run_id": "r1"}
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.sqlite")) as plain:
        config = await plain.aput(place(), checkpoint, metadata, {})
        await plain.aput_writes(config, [("a", 1)], "task", "~path")
        before = await plain.aget_tuple(config)

    async with opened(tmp_path) as saver:
        assert await saver.aget_tuple(place()) == before
        child = await put(saver, config)
        await saver.adelete_for_runs(["r1"])
        assert await listed(saver) == [id_of(child)]
    async with opened(tmp_path) as again:
        assert await listed(again) == [id_of(child)]
    assert rows(tmp_path, "PRAGMA application_id") == [(CHECKPOINT_FILE_ID,)]
    assert rows(tmp_path, "SELECT newest FROM threads") == [(id_of(child),)]


async def test_a_kept_file_from_before_task_paths_is_taken_over(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "c.sqlite")
    connection.executescript(
        """
        CREATE TABLE checkpoints (
            thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',
            checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB,
            metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
        );
        CREATE TABLE writes (
            thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',
            checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL, idx INTEGER NOT NULL,
            channel TEXT NOT NULL, type TEXT, value BLOB,
            PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
        );
        """
    )
    old = {**a_checkpoint({"v": 1}), "id": "1ef4f797-8335-6428-8001-8a1503f9b875"}
    connection.execute(
        "INSERT INTO checkpoints VALUES ('t', '', ?, NULL, 'json', ?, NULL)",
        (old["id"], json.dumps(old).encode()),
    )
    connection.execute(
        "INSERT INTO writes VALUES ('t', '', ?, 'task', 0, 'a', 'json', ?)", (old["id"], b"[1]")
    )
    connection.commit()
    connection.close()

    async with opened(tmp_path) as saver:
        found = await the(saver)

    assert found.checkpoint["channel_values"] == {"v": 1}
    assert found.metadata == {}
    assert found.pending_writes == [("task", "a", [1])]


async def test_many_that_open_a_new_file_at_once_all_do(tmp_path: Path) -> None:
    for number in range(10):
        opening = [EmbeddedSaver.open(tmp_path / f"{number}.sqlite") for _ in range(6)]

        savers = await asyncio.gather(*opening)

        for saver in savers:
            await saver.close()


def test_an_error_that_is_no_damage_stays_what_it_is(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "c.sqlite")
    connection.close()

    with pytest.raises(sqlite3.ProgrammingError):
        saver_rows.load(connection, Place(thread_id="t", ns="", id="c"), CompressedSerializer())


async def test_a_second_opening_does_not_take_the_log_from_the_first(tmp_path: Path) -> None:
    another_process = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]);"
        "c.execute('SELECT count(*) FROM threads').fetchone(); c.close()"
    )
    async with opened(tmp_path) as saver:
        config = await put(saver)
        async with opened(tmp_path):
            # the last to close a file removes its log: this one must not take itself for the last
            await asyncio.to_thread(
                subprocess.run,
                [sys.executable, "-c", another_process, str(tmp_path / "c.sqlite")],
                check=True,
            )

            assert (tmp_path / "c.sqlite-wal").exists()
        assert await listed(saver) == [id_of(config)]
