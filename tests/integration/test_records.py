"""The SQLite file under other processes, kills, faults and deletions."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ibid.adapters.records.journal import pack
from ibid.adapters.sqlite.database import Database
from ibid.adapters.sqlite.migrations import STEPS
from ibid.adapters.sqlite.records import SqliteRecords
from ibid.domain.conversations import RunState
from ibid.domain.errors import JournalExpired, Misconfigured, SchemaTooNew, StoreUnavailable
from ibid.domain.events import RESERVED_IDS, Done
from ibid.domain.projects import GitSource
from ibid.ports.feedback import Feedback
from ibid.ports.idempotency import KeyScope, StoredAnswer
from tests.contract.run_steps import (
    WEEK,
    a_failure,
    append,
    begin,
    conversations,
    end,
    end_dead,
    journal,
    numbered,
    resume,
    some_events,
)
from tests.fakes.samples import (
    ANN,
    NOON,
    PLACES,
    a_conversation,
    a_pause,
    a_project,
    a_question,
    a_resumption,
    a_run,
    an_answer,
)

SCOPE = KeyScope(tenant="acme", subject="ann", method="POST", path="/ask", key="k")
ROOT = Path(__file__).parents[2]
PLANTED = "PLANTED-7f3a9c"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "app.sqlite"


@pytest.fixture
async def records(path: Path) -> AsyncIterator[SqliteRecords]:
    records = await SqliteRecords.open(path)
    yield records
    await records.close()


@contextmanager
def _writer(path: Path, name: str, turns: int) -> Iterator["subprocess.Popen[str]"]:
    command = [
        sys.executable,
        "-m",
        "tests.integration.records_writer",
        str(path),
        name,
        str(turns),
    ]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _lines(process: "subprocess.Popen[str]", most: int | None = None) -> list[str]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.strip())
        if len(lines) == most:
            break
    return lines


def _go(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def _count(path: Path, planted: str | bytes) -> int:
    sought = planted.encode() if isinstance(planted, str) else planted
    files = [file for file in path.parent.rglob("*") if file.is_file()]
    return sum(file.read_bytes().count(sought) for file in files)


async def _plant(records: SqliteRecords, project_id: str, conversation_id: str) -> None:
    """Write the secret wherever a text of the asker's or the answer's goes, at some length."""
    long = f"{PLANTED} " * 2_000
    await records.projects.create(a_project(project_id))
    await records.projects.update(
        project_id, tenant="acme", name=PLANTED, source=GitSource(url=f"https://{PLANTED}.org/")
    )
    await records.conversations.create(a_conversation(conversation_id, project_id=project_id))
    await records.conversations.rename(conversation_id, principal=ANN, title=f"old {PLANTED}")
    await records.conversations.rename(conversation_id, principal=ANN, title=f"new {PLANTED}")
    for number in range(1, 6):
        run = a_run(number, conversation_id=conversation_id)
        record = await records.idempotency.claim(
            replace(SCOPE, path=run.id), fingerprint="f", owner="me", now=NOON, expires_at=WEEK
        )
        await records.runs.begin(
            run,
            question=a_question(run, f"{number} {long}"),
            title="t",
            limits=PLACES,
            idempotency=record.id,
        )
        await append(records, run, 0, numbered(some_events(PLANTED, long)))
        await end(
            records,
            run,
            replace(a_failure(), message=PLANTED),
            beat=1,
            event_id=5,
            answer=an_answer(run, f"{long} {number}"),
        )
        await records.idempotency.finish(
            record.id,
            tenant="acme",
            owner="me",
            answer=StoredAnswer(status=200, headers={"x": PLANTED}, body=long.encode()),
        )
        await records.feedback.put(
            Feedback(
                tenant="acme",
                subject="ann",
                conversation_id=conversation_id,
                run_id=run.id,
                rating="down",
                comment=PLANTED,
                created_at=NOON,
            )
        )
    asking = a_run(6, conversation_id=conversation_id)
    await begin(records, asking)
    asked = replace(a_pause(asking).clarification, question=PLANTED, options=(PLANTED,))
    paused = await end(records, asking, replace(a_pause(asking), clarification=asked))
    await resume(records, a_resumption(paused, 7), decision=PLANTED)


async def test_a_deleted_conversation_is_in_no_byte_of_the_folder(
    path: Path, records: SqliteRecords
) -> None:
    await _plant(records, "p1", "c1")
    await records.projects.update("p1", tenant="acme", name="kept", source=GitSource(url="kept"))
    await records.conversations.create(a_conversation("c2"))
    assert _count(path, PLANTED) > 1_000

    await records.conversations.delete("c1", principal=ANN)

    assert _count(path, PLANTED) == 0
    assert await records.conversations.get("c2", principal=ANN)


async def test_what_a_journal_held_is_in_no_byte_of_the_folder_after_a_deletion(
    path: Path, records: SqliteRecords
) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    await append(records, run, 0, numbered(some_events("a")))
    packs = pack(numbered(some_events("a")), max_bytes=10_000)
    assert _count(path, packs[0].body) > 0

    await records.conversations.delete("c1", principal=ANN)

    assert _count(path, packs[0].body) == 0


async def test_a_deleted_project_is_in_no_byte_of_the_folder(
    path: Path, records: SqliteRecords
) -> None:
    await _plant(records, "p1", "c1")

    await records.projects.delete("p1", tenant="acme")

    assert _count(path, PLANTED) == 0


async def test_a_deletion_that_a_reader_holds_up_is_finished_by_the_next_write(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    records = await SqliteRecords.open(path, busy_s=0.05)
    await _plant(records, "p1", "c1")
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM messages").fetchall()

        await records.projects.delete("p1", tenant="acme")
        await records.projects.create(a_project("p2"))

        assert "store_scrub_postponed" in caplog.messages
        assert _count(path, PLANTED) > 0
    await records.projects.create(a_project("p3"))

    assert _count(path, PLANTED) == 0
    await records.close()


async def test_a_killed_process_loses_nothing_that_was_acknowledged(path: Path) -> None:
    with _writer(path, "a", 10_000) as process:
        _lines(process, 1)
        _go(process)
        acknowledged = _lines(process, 100)
        process.kill()
        acknowledged += _lines(process)

    records = await SqliteRecords.open(path)

    runs = [
        await records.runs.get(run_id, principal=ANN) for run_id in acknowledged if "-" in run_id
    ]
    assert len(runs) >= 100
    assert {run.state for run in runs} == {RunState.COMPLETED}
    await records.close()


async def test_two_processes_on_one_new_file_do_not_disturb_each_other(path: Path) -> None:
    turns = 100
    with _writer(path, "a", turns) as one, _writer(path, "b", turns) as other:
        for process in (one, other):
            _lines(process, 1)
        records = await SqliteRecords.open(path)
        await records.projects.create(a_project())
        await records.conversations.create(a_conversation("shared"))
        for process in (one, other):
            _go(process)
        outcomes = [_lines(process) for process in (one, other)]
        assert [process.wait() for process in (one, other)] == [0, 0]

    winner = await records.runs.get("shared-1", principal=ANN)
    assert sorted(lines[-1] for lines in outcomes) == ["lost", f"won {winner.lease_owner}"]
    for name in ("a", "b"):
        page = await records.conversations.messages(name, principal=ANN, cursor=None, limit=200)
        assert len(page.items) == 2 * turns
    await records.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


async def test_a_file_that_stays_busy_is_unavailable_and_serves_again_later(path: Path) -> None:
    records = await SqliteRecords.open(path, busy_s=0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreUnavailable, match="SQLITE_BUSY"):
            await records.projects.create(a_project())
        unseen = await records.projects.named("flask", tenant="acme", subject="ann")
        other.execute("COMMIT")
    await records.projects.create(a_project())

    assert unseen == []
    assert await records.projects.get("p1", tenant="acme") == a_project()
    await records.close()


async def test_a_file_that_takes_no_writes_says_so_to_who_tries_one(path: Path) -> None:
    records = await SqliteRecords.open(path, busy_s=0.05)
    await conversations(records, "c1")
    run = (await begin(records, a_run())).run
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreUnavailable, match="SQLITE_BUSY"):
            await records.runs.try_write(run.id, tenant=run.tenant)
        with pytest.raises(StoreUnavailable, match="SQLITE_BUSY"):
            await records.jobs.try_write("j1", tenant=run.tenant)
        reads = await records.runs.live()
        other.execute("COMMIT")
    await records.runs.try_write(run.id, tenant=run.tenant)

    assert reads == await records.runs.live() == {(run.tenant, run.id): 0}
    await records.close()


async def test_a_file_that_is_busy_for_a_while_is_waited_for(path: Path) -> None:
    records = await SqliteRecords.open(path, busy_s=60)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        creating = asyncio.create_task(records.projects.create(a_project()))
        await asyncio.sleep(0)
        other.execute("COMMIT")

        await creating

    assert await records.projects.get("p1", tenant="acme") == a_project()
    await records.close()


async def test_a_full_disk_is_unavailable_and_keeps_nothing_by_halves(path: Path) -> None:
    database = await Database.open(path)
    records = SqliteRecords(database)
    await records.projects.create(a_project())
    await records.conversations.create(a_conversation())
    pages = await database.write(
        lambda connection: connection.execute("PRAGMA page_count").fetchone()[0]
    )
    await database.write(
        lambda connection: connection.execute(f"PRAGMA max_page_count = {pages + 1}").fetchone()
    )
    run = a_run()

    with pytest.raises(StoreUnavailable, match="SQLITE_FULL"):
        await records.runs.begin(
            run, question=a_question(run, "x" * 100_000), title="t", limits=PLACES
        )

    assert await records.runs.live() == {}
    await begin(records, run)
    assert len(await records.conversations.latest_messages("c1", principal=ANN, limit=9)) == 1
    await records.close()


async def test_a_newer_file_is_refused_by_name(path: Path) -> None:
    await (await SqliteRecords.open(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1000")

    with pytest.raises(SchemaTooNew, match=r"'app\.sqlite' has schema 1000"):
        await SqliteRecords.open(path)


_OLDER = """
    INSERT INTO conversations VALUES ('acme', 'ann', 'c2', 'p1', NULL, NULL, 5);
    INSERT INTO conversations VALUES ('acme', 'ann', 'c3', 'p1', NULL, NULL, 5);
    INSERT INTO runs VALUES
        ('acme', 'ff', 'ann', 'c2', 'p1', 'm2', 'failed', 'o', 3, 20, 21, 1,
         '{"kind":"failed","message_id":null,"code":"X","message":"m","finish_reason":"error",
           "kept_through_id":null}'),
        ('acme', 'aa', 'ann', 'c2', 'p1', 'm3', 'running', 'o', 4, 30, NULL, 0, NULL),
        ('acme', 'ee', 'ann', 'c2', 'p1', 'm1', 'completed', 'o', 2, 10, 11, 5, NULL);
"""


def _write_older(path: Path) -> None:
    kept = ROOT / "tests" / "unit" / "adapters" / "sqlite" / "app-schema-1.sql"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(kept.read_text("utf-8"))
        connection.executescript(_OLDER)


async def test_a_kept_file_of_the_first_schema_is_read(path: Path) -> None:
    _write_older(path)

    records = await SqliteRecords.open(path)

    kept_messages = await records.conversations.latest_messages("c1", principal=ANN, limit=9)
    assert [message.id for message in kept_messages] == ["question of r1", "answer of r1"]
    run = await records.runs.get("r1", principal=ANN)
    assert (run.state, run.number, run.turn_id) == (RunState.COMPLETED, 1, "r1")
    assert isinstance(run.terminator, Done)
    assert (await records.projects.get("p1", tenant="acme")).reindex_in_progress
    await records.close()


async def test_the_runs_of_an_older_file_are_numbered_in_the_order_they_began(path: Path) -> None:
    _write_older(path)

    records = await SqliteRecords.open(path)

    page = await records.runs.list_for("c2", principal=ANN, cursor=None, limit=9)
    assert [(run.id, run.number) for run in page.items] == [("aa", 3), ("ff", 2), ("ee", 1)]
    begun = {
        conversation_id: (
            await records.conversations.get(conversation_id, principal=ANN)
        ).runs_begun
        for conversation_id in ("c1", "c2", "c3")
    }
    assert begun == {"c1": 1, "c2": 3, "c3": 0}
    with pytest.raises(JournalExpired):
        await records.runs.entries(page.items[1], after=0)
    await records.close()


async def test_a_live_run_of_an_older_file_is_ended_as_dead_and_the_thread_goes_on(
    path: Path,
) -> None:
    _write_older(path)
    records = await SqliteRecords.open(path)
    assert await records.runs.live() == {("acme", "aa"): 4}
    seen = await records.runs.read_dead("aa", tenant="acme")
    assert seen is not None

    assert await end_dead(records, seen)

    assert [entry.id for entry in await journal(records, seen)] == [RESERVED_IDS + 1]
    await begin(records, a_run(4, conversation_id="c2"))
    await begin(records, a_run(2))
    assert (await records.runs.get("c1-2", principal=ANN)).number == 2
    await records.close()


async def test_a_file_is_migrated_whole_or_stays_as_it_was(path: Path) -> None:
    _write_older(path)

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM runs")
        raise OSError

    with pytest.raises(OSError, match=r"^$"):
        await Database.open(path, steps=[*STEPS, fail])

    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (4,)
    records = await SqliteRecords.open(path)
    assert (await records.runs.get("aa", principal=ANN)).number == 3
    await records.close()


@pytest.fixture(params=[b"not a database at all" * 100, b"SQLite format 3\x00 oh no"])
def garbage(request: pytest.FixtureRequest, path: Path) -> bytes:
    path.parent.mkdir()
    content: bytes = request.param
    path.write_bytes(content)
    return content


def _content(path: Path) -> bytes:
    return path.read_bytes()


async def test_a_file_that_is_no_database_is_refused_by_name(path: Path, garbage: bytes) -> None:
    with pytest.raises(Misconfigured, match=r"'app\.sqlite'"):
        await SqliteRecords.open(path)

    assert _content(path) == garbage


async def test_another_programs_database_is_refused_and_not_touched(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    before = _content(path)

    with pytest.raises(Misconfigured, match="another program"):
        await SqliteRecords.open(path)

    assert _content(path) == before


async def test_a_path_that_cant_be_made_is_unavailable(path: Path) -> None:
    path.parent.write_text("a file in the folder's place")

    with pytest.raises(StoreUnavailable, match=r"'app\.sqlite' can't be opened"):
        await SqliteRecords.open(path)


async def test_a_closed_store_is_unavailable(path: Path) -> None:
    records = await SqliteRecords.open(path)
    await records.close()
    await records.close()

    with pytest.raises(StoreUnavailable, match="closed"):
        await records.runs.live()
    with pytest.raises(StoreUnavailable, match="closed"):
        await records.projects.create(a_project())


async def test_what_was_handed_over_is_finished_by_a_close(path: Path) -> None:
    records = await SqliteRecords.open(path)
    writes = [asyncio.create_task(records.projects.create(a_project(f"p{n}"))) for n in range(50)]
    await asyncio.sleep(0)

    await records.close()

    await asyncio.gather(*writes)
    again = await SqliteRecords.open(path)
    page = await again.projects.list_for(tenant="acme", subject="ann", cursor=None, limit=200)
    assert len(page.items) == 50
    await again.close()


async def test_the_files_are_the_owners_alone(path: Path, records: SqliteRecords) -> None:
    await records.projects.create(a_project())

    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}

    assert modes == {
        "app.sqlite": 0o600,
        "app.sqlite-shm": 0o600,
        "app.sqlite-wal": 0o600,
    }


async def test_no_error_quotes_what_was_to_be_written(records: SqliteRecords) -> None:
    await _plant(records, "p1", "c1")
    run = a_run(8)
    await end(records, a_run(7))
    again = replace(a_run(8), id="c1-1")

    with pytest.raises(ValueError, match="SQLITE_CONSTRAINT") as failure:
        await records.runs.begin(
            again, question=a_question(run, PLANTED), title=PLANTED, limits=PLACES
        )

    assert PLANTED not in str(failure.value)
