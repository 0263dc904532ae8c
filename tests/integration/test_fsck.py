"""The checker finds each kind of damage that is planted in the files, and none in healthy ones."""

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ibid.adapters.records.journal import pack
from ibid.adapters.sqlite.database import Database
from ibid.adapters.sqlite.inventory import SqliteCheckpointInventory, SqliteInventory
from ibid.adapters.sqlite.records import SqliteRecords
from ibid.adapters.sqlite.saver_schema import CHECKPOINT_FILE_ID
from ibid.adapters.sqlite.saver_schema import STEPS as CHECKPOINT_STEPS
from ibid.cli.main import app
from ibid.domain.events import TokenDelta
from ibid.runs.findings import Finding, FindingKind
from ibid.runs.fsck import check
from tests.contract.run_steps import WEEK, numbered
from tests.fakes.samples import ANN
from tests.integration.fsck_store import PLANTED, fill


class Folder:
    """A data folder whose files can be damaged and checked."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def fill(self) -> None:
        records = await SqliteRecords.open(self.path / "ibid.sqlite")
        await fill(records)
        await records.close()
        await (await self._checkpoints()).close()
        for turn in ("c1-2", "c2-1", "c3-1"):
            self.damage(
                "INSERT INTO threads (thread_id, newest) VALUES (?, 'x')",
                turn,
                file="checkpoints.sqlite",
            )

    async def _checkpoints(self) -> Database:
        return await Database.open(
            self.path / "checkpoints.sqlite",
            steps=CHECKPOINT_STEPS,
            application_id=CHECKPOINT_FILE_ID,
        )

    def damage(self, statement: str, *values: object, file: str = "ibid.sqlite") -> None:
        with closing(sqlite3.connect(self.path / file, isolation_level=None)) as connection:
            assert connection.execute(statement, values).rowcount != 0

    async def check(self) -> Sequence[Finding]:
        records = await Database.open(self.path / "ibid.sqlite")
        checkpoints = await self._checkpoints()
        try:
            return await check(
                SqliteInventory(records), checkpoints=SqliteCheckpointInventory(checkpoints)
            )
        finally:
            await records.close()
            await checkpoints.close()


@pytest.fixture
async def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    await folder.fill()
    return folder


_TOKEN = pack(numbered([TokenDelta(text="late")], 9), max_bytes=1_000)[0].body
_FIRST = pack(numbered([TokenDelta(text="first")]), max_bytes=1_000)[0].body
_NO_CITATIONS = pack(numbered([TokenDelta(text="a")] * 2), max_bytes=1_000)[0].body
_JOURNAL = "INSERT INTO journal VALUES ('acme', ?, ?, 0, 1, ?, ?)"
_COPY_RUN = """
    INSERT INTO runs (
        tenant, id, subject, conversation_id, project_id, message_id, state, lease_owner, beat,
        created_at, ended_at, last_event_id, terminator, number, graph, turn_id,
        is_journal_removed
    ) SELECT
        tenant, ?, subject, conversation_id, project_id, message_id, state, lease_owner, beat,
        created_at, ended_at, last_event_id, terminator, ?, graph, ?, is_journal_removed
    FROM runs WHERE id = ?
"""
_COPY_MESSAGE = """
    INSERT INTO messages
    SELECT tenant, conversation_id, 99, 'again', run_id, role, content, created_at, outcome
    FROM messages WHERE run_id = ? AND role = ?
"""
_MOVE_MESSAGE = "UPDATE messages SET {} WHERE run_id = 'c1-1' AND role = 'assistant'"

K = FindingKind
Damage = tuple[str, tuple[object, ...]]
DAMAGE: dict[FindingKind, list[Damage]] = {
    K.ROW_UNREADABLE: [
        ("UPDATE runs SET terminator = '{' WHERE id = 'c1-1'", ()),
        ("UPDATE runs SET state = 'dreaming' WHERE id = 'c1-1'", ()),
        ("UPDATE messages SET outcome = '[]' WHERE id = 'answer of c1-1'", ()),
        ("UPDATE idempotency SET headers = 'x' WHERE conversation_id = 'c1'", ()),
    ],
    K.CONVERSATION_MISSING: [("DELETE FROM conversations WHERE id = 'c1'", ())],
    K.PROJECT_MISSING: [("UPDATE conversations SET project_id = 'p9' WHERE id = 'c4'", ())],
    K.RUN_NUMBERS: [
        ("DELETE FROM runs WHERE id = 'c1-5'", ()),
        ("UPDATE runs SET number = 17 WHERE id = 'c1-1'", ()),
        ("UPDATE conversations SET runs_begun = 6 WHERE id = 'c1'", ()),
        ("UPDATE conversations SET runs_begun = 1 WHERE id = 'c4'", ()),
    ],
    K.RUN_ID: [("UPDATE runs SET id = 'c9-1' WHERE id = 'c3-1'", ())],
    K.RUN_OWNER: [
        ("UPDATE runs SET subject = 'bob' WHERE id = 'c1-1'", ()),
        ("UPDATE runs SET project_id = 'p2' WHERE id = 'c1-1'", ()),
    ],
    K.TURN: [
        ("UPDATE runs SET turn_id = 'c1-2' WHERE id = 'c1-1'", ()),
        ("UPDATE runs SET turn_id = 'c1-4' WHERE id = 'c1-4'", ()),
    ],
    K.RESUMPTION: [
        ("UPDATE runs SET resumed_by = 'c1-9' WHERE id = 'c1-2'", ()),
        ("UPDATE runs SET resumed_by = 'c1-1' WHERE id = 'c1-2'", ()),
        ("UPDATE runs SET resumed_by = 'c1-3' WHERE id = 'c1-2'", ()),
        ("UPDATE runs SET resumed_by = NULL, decision = NULL WHERE id = 'c1-2'", ()),
        ("UPDATE runs SET resumes = 'c1-1', turn_id = 'c1-1' WHERE id = 'c1-5'", ()),
        ("UPDATE runs SET state = 'completed' WHERE id = 'c1-3'", ()),
    ],
    K.DECISION: [
        ("UPDATE runs SET decision = NULL WHERE id = 'c1-2'", ()),
        ("UPDATE runs SET decision = 'x' WHERE id = 'c1-1'", ()),
    ],
    K.PAUSE_STATE: [
        ("UPDATE runs SET state = 'expired' WHERE id = 'c1-2'", ()),
        ("UPDATE runs SET resumed_by = 'c1-4' WHERE id = 'c1-1'", ()),
    ],
    K.TERMINATOR_MISSING: [
        ("UPDATE runs SET terminator = NULL WHERE id = 'c1-1'", ()),
        ("UPDATE runs SET ended_at = NULL WHERE id = 'c1-1'", ()),
    ],
    K.TERMINATOR_EARLY: [
        ("UPDATE runs SET state = 'running' WHERE id = 'c3-1'", ()),
        ("UPDATE runs SET ended_at = 5 WHERE id = 'c1-6'", ()),
    ],
    K.TERMINATOR_STATE: [
        ("UPDATE runs SET state = 'cancelled' WHERE id = 'c1-1'", ()),
        ("UPDATE runs SET state = 'expired' WHERE id = 'c1-1'", ()),
        ("UPDATE runs SET state = 'completed' WHERE id = 'c2-1'", ()),
    ],
    K.TERMINATOR_ID: [
        ("UPDATE runs SET last_event_id = 7 WHERE id = 'c1-1'", ()),
        ("UPDATE runs SET last_event_id = 6 WHERE id = 'c1-5'", ()),
        ("DELETE FROM journal WHERE run_id = 'c1-1'", ()),
        ("DELETE FROM journal WHERE run_id = 'c1-5'", ()),
        ("DELETE FROM journal WHERE run_id = 'c1-1' AND first_id > 1", ()),
    ],
    K.JOURNAL_UNREADABLE: [
        ("UPDATE journal SET body = x'01ff' WHERE run_id = 'c1-1' AND first_id = 1", ()),
        ("UPDATE journal SET body = x'7f' WHERE run_id = 'c1-1'", ()),
        ("UPDATE journal SET parts = 2 WHERE run_id = 'c1-1' AND first_id = 1", ()),
        ("UPDATE journal SET last_id = 3 WHERE run_id = 'c1-1' AND first_id = 1", ()),
    ],
    K.JOURNAL_GAP: [
        ("DELETE FROM journal WHERE run_id = 'c1-1' AND first_id = 1", ()),
        (_JOURNAL, ("c1-1", 9, 9, _TOKEN)),
    ],
    K.JOURNAL_LENGTH: [("UPDATE runs SET last_event_id = 2 WHERE id = 'c1-6'", ())],
    K.JOURNAL_ORDER: [
        (
            "UPDATE journal SET body = ?, last_id = 2 WHERE run_id = 'c1-1' AND first_id = 1",
            (_NO_CITATIONS,),
        ),
    ],
    K.JOURNAL_LEFT: [
        (_JOURNAL, ("c1-99", 1, 1, _FIRST)),
        (_JOURNAL, ("of nobody", 1, 1, _FIRST)),
        (_JOURNAL, ("gone-1", 1, 1, _FIRST)),
        ("UPDATE runs SET is_journal_removed = 1 WHERE id = 'c1-1'", ()),
    ],
    K.QUESTION_MISSING: [("DELETE FROM messages WHERE id = 'question of c1-6'", ())],
    K.QUESTION_TWICE: [(_COPY_MESSAGE, ("c1-1", "user"))],
    K.ANSWER_MISSING: [
        ("DELETE FROM messages WHERE id = 'answer of c1-1'", ()),
        ("DELETE FROM messages WHERE id = 'answer of gone-1'", ()),
    ],
    K.ANSWER_TWICE: [(_COPY_MESSAGE, ("c1-1", "assistant"))],
    K.ANSWER_EARLY: [("UPDATE messages SET run_id = 'c1-6' WHERE id = 'answer of c1-1'", ())],
    K.ANSWER_ID: [
        (_MOVE_MESSAGE.format("id = 'another'"), ()),
        ("UPDATE runs SET message_id = 'another' WHERE id = 'c1-1'", ()),
    ],
    K.ANSWER_TEXT: [(_MOVE_MESSAGE.format("content = content || '.'"), ())],
    K.ANSWER_OUTCOME: [
        (_MOVE_MESSAGE.format("outcome = replace(outcome, '\"stop\"', '\"error\"')"), ()),
        (_MOVE_MESSAGE.format("outcome = replace(outcome, '[1,2]', '[1]')"), ()),
    ],
    K.MESSAGE_LEFT: [("UPDATE messages SET run_id = 'c1-99' WHERE run_id = 'c1-7'", ())],
    K.FEEDBACK_LEFT: [("UPDATE feedback SET run_id = 'c1-99'", ())],
    K.KEY_LEFT: [
        ("UPDATE idempotency SET run_id = 'c9-1' WHERE conversation_id IS NULL AND status", ()),
        ("UPDATE idempotency SET run_id = 'c1-99' WHERE conversation_id = 'c1'", ()),
        ("UPDATE idempotency SET conversation_id = 'c9' WHERE conversation_id = 'c1'", ()),
    ],
    K.STORE_FAULT: [
        ("INSERT INTO members VALUES ('acme', 'bob', 'p9', 'owner')", ()),
    ],
}
BY_OTHER_MEANS = {K.RUNNING_TWICE, K.PAUSED_TWICE, K.CHECKPOINT_LEFT}
NOT_IN_THIS_STORE = {K.TERMINATOR_TWICE}  # its journal holds no terminator at all


async def test_a_healthy_store_has_no_finding(folder: Folder) -> None:
    assert await folder.check() == []


def test_each_kind_of_finding_is_planted_by_some_test() -> None:
    assert {*DAMAGE, *BY_OTHER_MEANS, *NOT_IN_THIS_STORE} == set(FindingKind)


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        pytest.param(kind, damage, id=f"{kind}-{number}")
        for kind, damages in DAMAGE.items()
        for number, damage in enumerate(damages)
    ],
)
async def test_damage_is_found_and_named_without_content(
    folder: Folder, kind: FindingKind, damage: Damage
) -> None:
    statement, values = damage
    folder.damage(statement, *values)

    findings = await folder.check()

    assert kind in {finding.kind for finding in findings}
    assert PLANTED not in repr(findings)
    assert all(finding.ids for finding in findings)


@pytest.mark.parametrize(
    ("kind", "index", "statement"),
    [
        (
            K.RUNNING_TWICE,
            "one_running_run_a_conversation",
            "UPDATE runs SET state = 'running' WHERE id = 'c1-7'",
        ),
        (
            K.PAUSED_TWICE,
            "one_pending_pause_a_conversation",
            "UPDATE runs SET conversation_id = 'c3', state = 'paused' WHERE id IN ('c2-1', 'c3-1')",
        ),
    ],
)
async def test_what_an_index_forbids_is_found_where_it_is_gone(
    folder: Folder, kind: FindingKind, index: str, statement: str
) -> None:
    folder.damage(f"DROP INDEX {index}")
    folder.damage("DROP INDEX runs_by_number")
    folder.damage(statement)

    assert kind in {finding.kind for finding in await folder.check()}


async def test_a_thread_of_no_turn_is_found(folder: Folder) -> None:
    folder.damage(
        "INSERT INTO threads (thread_id, newest) VALUES ('c9-1', '')", file="checkpoints.sqlite"
    )
    folder.damage(
        "INSERT INTO threads (thread_id, newest, is_gone) VALUES ('c9-2', '', 1)",
        file="checkpoints.sqlite",
    )

    assert await folder.check() == [Finding(kind=K.CHECKPOINT_LEFT, ids={"thread": "c9-1"})]


async def test_one_damage_is_named_once_and_by_its_place(folder: Folder) -> None:
    folder.damage("UPDATE messages SET content = 'x' WHERE id = 'answer of c1-5'")
    folder.damage("UPDATE runs SET decision = NULL WHERE id = 'c1-2'")

    assert list(await folder.check()) == [
        Finding(kind=K.DECISION, ids={"tenant": "acme", "conversation": "c1", "run": "c1-2"}),
        Finding(kind=K.ANSWER_TEXT, ids={"tenant": "acme", "conversation": "c1", "run": "c1-5"}),
    ]


async def test_pages_that_were_overwritten_are_found(folder: Folder) -> None:
    path = folder.path / "ibid.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'runs_by_number'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    content[(root - 1) * size + 8 : root * size] = bytes(size - 8)
    path.write_bytes(content)

    records = await Database.open(path)
    faults = await SqliteInventory(records).faults()
    await records.close()

    assert faults
    assert PLANTED not in repr(faults)


async def test_what_was_deleted_leaves_nothing_to_find(folder: Folder) -> None:
    records = await SqliteRecords.open(folder.path / "ibid.sqlite")
    for conversation_id in ("gone", "c1", "c2", "c3", "c4"):
        await records.conversations.delete(conversation_id, principal=ANN)
    await records.close()

    assert {finding.kind for finding in await folder.check()} == {K.CHECKPOINT_LEFT, K.KEY_LEFT}
    await _purge_keys(folder)
    folder.damage("DELETE FROM threads", file="checkpoints.sqlite")

    assert await folder.check() == []


async def _purge_keys(folder: Folder) -> None:
    records = await SqliteRecords.open(folder.path / "ibid.sqlite")
    assert await records.idempotency.purge(WEEK + timedelta(days=1)) == 2
    await records.close()


async def test_a_check_changes_nothing(folder: Folder) -> None:
    folder.damage("UPDATE runs SET state = 'running' WHERE id = 'c3-1'")

    first = await folder.check()

    assert await folder.check() == first != []


@pytest.fixture
def filled(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    asyncio.run(folder.fill())
    return folder


def _fsck(path: Path, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["fsck", "--data", str(path), *options])
    return result.exit_code, result.stdout


def test_the_command_exits_with_0_on_a_clean_store(filled: Folder) -> None:
    assert _fsck(filled.path) == (0, "")
    assert _fsck(filled.path, "--json") == (0, '{"findings": []}\n')


def test_the_command_names_what_it_found_and_exits_with_1(filled: Folder) -> None:
    filled.damage("UPDATE runs SET decision = NULL WHERE id = 'c1-2'")

    assert _fsck(filled.path) == (1, "decision tenant=acme conversation=c1 run=c1-2\n")
    code, printed = _fsck(filled.path, "--json")

    assert code == 1
    assert json.loads(printed) == {
        "findings": [
            {
                "kind": "decision",
                "ids": {"tenant": "acme", "conversation": "c1", "run": "c1-2"},
            }
        ]
    }


def test_the_command_makes_no_store_where_there_is_none(tmp_path: Path) -> None:
    assert _fsck(tmp_path / "none")[0] == 2
    assert not (tmp_path / "none").exists()


async def test_a_kept_file_of_the_second_schema_is_healthy(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    kept = Path(__file__).parents[1] / "unit" / "adapters" / "sqlite" / "app-schema-2.sql"
    with closing(sqlite3.connect(tmp_path / "ibid.sqlite")) as connection:
        connection.executescript(kept.read_text("utf-8"))

    assert await folder.check() == []
    folder.damage("UPDATE runs SET decision = NULL WHERE id = 'c1-2'")
    assert [finding.kind for finding in await folder.check()] == [K.DECISION]
