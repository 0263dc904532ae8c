import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from ibid.adapters.sqlite.index import SqlitePassageIndex
from ibid.adapters.sqlite.index_file import append_arrays
from ibid.adapters.sqlite.index_rows import connect
from ibid.adapters.sqlite.index_schema import SCHEMA_VERSION
from ibid.domain.errors import (
    GenerationDamaged,
    GenerationGone,
    SchemaTooNew,
    ValidationFailed,
    VectorStoreUnavailable,
)
from ibid.ports.index import IndexQuery
from tests.contract.passages import PROJECT, SIGNATURE, TENANT, chunk, fill, find, unit

OTHER_PROCESS = """
import asyncio, sys
from pathlib import Path
from ibid.adapters.sqlite.index import SqlitePassageIndex
from tests.contract.passages import chunk, fill, find


async def main(folder, number):
    index = SqlitePassageIndex(Path(folder))
    await fill(index, [chunk(f"of {number}", at) for at in range(50)], generation=int(number))
    found = await find(index, {"text": 1.0}, generation=int(number))
    await index.close()
    print(len(found.items))


asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[SqlitePassageIndex]:
    index = SqlitePassageIndex(tmp_path / "index")
    yield index
    await index.close()


def file_of(tmp_path: Path) -> Path:
    (file,) = (tmp_path / "index").rglob("*.ibid")
    return file


def unsealed_in(folder: Path) -> list[Path]:
    return list(folder.rglob("*.writing"))


async def test_no_answer_in_time_names_the_generation(index: SqlitePassageIndex) -> None:
    await fill(index, [chunk("a")])
    query = IndexQuery(terms={"text": 1.0}, vector=None)

    with pytest.raises(VectorStoreUnavailable, match=r"generation 1 of project 'docs'.*in time"):
        await index.candidates(
            query, tenant=TENANT, project_id=PROJECT, generation=1, timeout_s=1e-9
        )

    assert len((await find(index, {"text": 1.0})).items) == 1


async def test_reads_without_a_time_out_of_their_own_take_the_index_s(tmp_path: Path) -> None:
    index = SqlitePassageIndex(tmp_path / "index", timeout_s=1e-9)
    await fill(index, [chunk("a")])

    with pytest.raises(VectorStoreUnavailable, match="in time"):
        await index.facts(tenant=TENANT, project_id=PROJECT, generation=1)

    await index.close()


@pytest.mark.parametrize("part", [0.02, 0.3, 0.6, 0.9, 1.0])
async def test_a_damaged_file_is_unavailable_and_named(
    index: SqlitePassageIndex, tmp_path: Path, part: float
) -> None:
    await fill(index, [chunk("a", content="owl")], [unit(1, 0, 0)])
    content = bytearray(file_of(tmp_path).read_bytes())
    content[int(part * (len(content) - 1))] ^= 0xFF
    file_of(tmp_path).write_bytes(content)

    with pytest.raises(VectorStoreUnavailable, match="generation 1 of project 'docs' is damaged"):
        await find(index, {"owl": 1.0})


@pytest.mark.parametrize("kept", [0, 50, 4096, -1])
async def test_a_cut_file_is_unavailable_and_named(
    index: SqlitePassageIndex, tmp_path: Path, kept: int
) -> None:
    await fill(index, [chunk("a", content="owl")])
    file_of(tmp_path).write_bytes(file_of(tmp_path).read_bytes()[:kept])

    with pytest.raises(VectorStoreUnavailable, match="generation 1 of project 'docs' is damaged"):
        await index.facts(tenant=TENANT, project_id=PROJECT, generation=1)


async def test_another_tenant_s_file_in_the_place_is_not_read(
    index: SqlitePassageIndex, tmp_path: Path
) -> None:
    await fill(index, [chunk("a", content="owl")])
    theirs = file_of(tmp_path)
    secret = theirs.read_bytes()
    await fill(index, [chunk("b")], tenant="other")
    (mine,) = (file for file in (tmp_path / "index").rglob("*.ibid") if file != theirs)
    mine.write_bytes(secret)

    with pytest.raises(VectorStoreUnavailable, match="another generation's"):
        await find(index, {"owl": 1.0}, tenant="other")


async def test_a_file_that_can_t_be_opened_is_unavailable(
    index: SqlitePassageIndex, tmp_path: Path
) -> None:
    await fill(index, [chunk("a")])
    file = file_of(tmp_path)
    file.unlink()
    file.mkdir()

    with pytest.raises(GenerationDamaged, match="indexing again rebuilds it"):
        await index.facts(tenant=TENANT, project_id=PROJECT, generation=1)
    await index.delete(tenant=TENANT, project_id=PROJECT, generation=1)
    assert list(await index.generations(tenant=TENANT, project_id=PROJECT)) == []


async def test_a_file_without_its_tables_is_unavailable(
    index: SqlitePassageIndex, tmp_path: Path
) -> None:
    await fill(index, [chunk("a")])
    file = file_of(tmp_path)
    file.unlink()
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}")
        database.execute("CREATE TABLE other (a)")
    append_arrays(file, [])

    with pytest.raises(GenerationDamaged, match="generation 1 of project 'docs' is damaged"):
        await index.facts(tenant=TENANT, project_id=PROJECT, generation=1)


async def test_a_folder_that_is_none_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "index").touch()
    index = SqlitePassageIndex(tmp_path / "index")

    with pytest.raises(VectorStoreUnavailable, match="project 'docs' can't be read"):
        await index.generations(tenant=TENANT, project_id=PROJECT)
    with pytest.raises(VectorStoreUnavailable, match="generation 1 of project 'docs' can't be"):
        await index.write(tenant=TENANT, project_id=PROJECT, generation=1)

    await index.close()


async def test_an_empty_generation_with_a_signature_caches_nothing(
    index: SqlitePassageIndex,
) -> None:
    await fill(index, [], [])

    found = await index.get(["any"], tenant=TENANT, project_id=PROJECT, signature=SIGNATURE)

    assert found == {}


async def test_a_newer_schema_is_refused_by_name(index: SqlitePassageIndex, tmp_path: Path) -> None:
    await fill(index, [chunk("a")])
    with closing(sqlite3.connect(file_of(tmp_path), isolation_level=None)) as database:
        database.execute("PRAGMA user_version = 99")

    with pytest.raises(SchemaTooNew, match=r"1\.ibid has schema 99"):
        await index.facts(tenant=TENANT, project_id=PROJECT, generation=1)


async def test_a_schema_too_old_is_gone_with_the_reason(
    index: SqlitePassageIndex, tmp_path: Path
) -> None:
    await fill(index, [chunk("a")], [unit(1, 0, 0)])
    with closing(sqlite3.connect(file_of(tmp_path), isolation_level=None)) as database:
        database.execute("PRAGMA user_version = 0")

    with pytest.raises(GenerationGone, match="schema 0"):
        await index.facts(tenant=TENANT, project_id=PROJECT, generation=1)
    assert (
        await index.get(
            [chunk("a").content_hash], tenant=TENANT, project_id=PROJECT, signature=SIGNATURE
        )
        == {}
    )


async def test_a_query_of_another_width_is_unavailable(index: SqlitePassageIndex) -> None:
    await fill(index, [chunk("a")], [unit(1, 0, 0)])

    with pytest.raises(VectorStoreUnavailable, match="3 wide, the query's 2"):
        await find(index, {}, vector=unit(1, 0))


async def test_a_term_of_three_words_finds_nothing(index: SqlitePassageIndex) -> None:
    await fill(index, [chunk("a", content="night owl flies")])

    found = await find(index, {"night owl fli": 1.0, "": 1.0, " ": 1.0, "night  owl": 1.0})

    assert list(found.items) == []


async def test_a_cursor_is_good_for_its_own_list_only(index: SqlitePassageIndex) -> None:
    for number in (1, 2):
        await fill(index, [chunk("a", at) for at in range(3)], generation=number)
    lists = {
        (number, prefix): await index.scroll(
            tenant=TENANT,
            project_id=PROJECT,
            generation=number,
            path_prefix=prefix,
            cursor=None,
            limit=1,
        )
        for number in (1, 2)
        for prefix in ("", "a")
    }
    cursor = lists[1, ""].next_cursor

    for number, prefix in lists:
        with suppress(ValidationFailed):
            page = await index.scroll(
                tenant=TENANT,
                project_id=PROJECT,
                generation=number,
                path_prefix=prefix,
                cursor=cursor,
                limit=1,
            )
            assert (number, prefix) == (1, "")
            assert [each.chunk_index for each in page.items] == [1]


async def test_a_cursor_beyond_the_end_is_refused(index: SqlitePassageIndex) -> None:
    await fill(index, [chunk("a", at) for at in range(3)])
    page = await index.scroll(
        tenant=TENANT, project_id=PROJECT, generation=1, path_prefix="", cursor=None, limit=2
    )
    await index.delete(tenant=TENANT, project_id=PROJECT, generation=1)
    await fill(index, [chunk("a")])

    with pytest.raises(ValidationFailed):
        await index.scroll(
            tenant=TENANT,
            project_id=PROJECT,
            generation=1,
            path_prefix="",
            cursor=page.next_cursor,
            limit=2,
        )


async def test_another_process_s_deletion_is_seen_at_the_next_read(
    index: SqlitePassageIndex, tmp_path: Path
) -> None:
    await fill(index, [chunk("a")])
    await find(index, {"text": 1.0})
    other = SqlitePassageIndex(tmp_path / "index")

    await other.delete(tenant=TENANT, project_id=PROJECT, generation=1)

    with pytest.raises(GenerationGone):
        await find(index, {"text": 1.0})
    await other.close()


async def test_two_processes_write_one_folder(index: SqlitePassageIndex, tmp_path: Path) -> None:
    others = [
        subprocess.Popen(  # noqa: ASYNC220 - both must be under way before either is awaited
            [sys.executable, "-c", OTHER_PROCESS, str(tmp_path / "index"), str(number)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[4],
            env={**os.environ, "PYTHONPATH": "."},
        )
        for number in (1, 2)
    ]
    outputs = [await asyncio.to_thread(other.communicate) for other in others]

    assert [out for out, _ in outputs] == ["50\n", "50\n"]
    assert await index.generations(tenant=TENANT, project_id=PROJECT) == [1, 2]
    for number in (1, 2):
        found = await find(index, {"text": 1.0}, generation=number)
        assert {each.chunk.file_path for each in found.items} == {f"of {number}"}


async def test_a_writer_overtaken_by_another_says_so(index: SqlitePassageIndex) -> None:
    first = await index.write(tenant=TENANT, project_id=PROJECT, generation=1)
    await first.add([chunk("first")], None)
    second = await index.write(tenant=TENANT, project_id=PROJECT, generation=1)

    with pytest.raises(VectorStoreUnavailable, match="no longer being written"):
        await first.seal(
            embedding_signature=None, main_language="english", commit_sha=None, source_digest="d"
        )

    await first.abort()
    await second.abort()


async def test_an_aborted_writer_takes_nothing_more(index: SqlitePassageIndex) -> None:
    writer = await index.write(tenant=TENANT, project_id=PROJECT, generation=1)
    await writer.abort()

    with pytest.raises(VectorStoreUnavailable, match="no longer being written"):
        await writer.add([chunk("a")], None)


async def test_an_abort_ends_a_seal_that_was_cancelled(index: SqlitePassageIndex) -> None:
    writer = await index.write(tenant=TENANT, project_id=PROJECT, generation=1)
    await writer.add([chunk("a", at, content="owl " * 2_000) for at in range(1_000)], None)
    sealing = asyncio.create_task(
        writer.seal(
            embedding_signature=None, main_language="english", commit_sha=None, source_digest="d"
        )
    )
    await asyncio.sleep(0)

    sealing.cancel()
    await writer.abort()

    with pytest.raises(asyncio.CancelledError):
        await sealing
    assert await index.generations(tenant=TENANT, project_id=PROJECT) == []


async def test_a_cancelled_opening_leaves_nothing_open(
    index: SqlitePassageIndex, tmp_path: Path
) -> None:
    opening = asyncio.create_task(index.write(tenant=TENANT, project_id=PROJECT, generation=1))
    await asyncio.sleep(0)

    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await index.close()  # waits for the thread that was opening it

    assert unsealed_in(tmp_path) == []


async def test_a_cancelled_opening_that_fails_is_not_heard_of(index: SqlitePassageIndex) -> None:
    await fill(index, [chunk("a")])
    opening = asyncio.create_task(index.write(tenant=TENANT, project_id=PROJECT, generation=1))
    await asyncio.sleep(0)

    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening

    assert len((await find(index, {"text": 1.0})).items) == 1


def test_one_index_serves_two_event_loops(tmp_path: Path) -> None:
    index = SqlitePassageIndex(tmp_path / "index")

    asyncio.run(_filled(index))
    found = asyncio.run(_found(index))

    assert found == 1
    asyncio.run(index.close())


async def _filled(index: SqlitePassageIndex) -> None:
    await fill(index, [chunk("a")])


async def _found(index: SqlitePassageIndex) -> int:
    return len((await find(index, {"text": 1.0})).items)


async def test_a_sealed_file_is_whole_for_sqlite(index: SqlitePassageIndex, tmp_path: Path) -> None:
    await fill(index, [chunk("a", at) for at in range(200)], [unit(1, 0, 0)] * 200)

    with closing(connect(file_of(tmp_path), sealed=True)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
