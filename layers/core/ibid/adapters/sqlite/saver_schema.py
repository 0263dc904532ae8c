"""The checkpoint file's schema: the two tables of `AsyncSqliteSaver`, and what it lacks.

A file that `AsyncSqliteSaver` wrote is schema 0: it is taken over in place, with all it holds.
"""

import sqlite3
from collections.abc import Sequence

from ibid.adapters.sqlite.migrations import Step

CHECKPOINT_FILE_ID = 0x49626963  # "Ibic"; the app store is "Ibid"

# `digest` is a CRC-32, NULL in rows that came from AsyncSqliteSaver.
_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS checkpoints (
        thread_id TEXT NOT NULL,
        checkpoint_ns TEXT NOT NULL DEFAULT '',
        checkpoint_id TEXT NOT NULL,
        parent_checkpoint_id TEXT,
        type TEXT,
        checkpoint BLOB,
        metadata BLOB,
        PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS writes (
        thread_id TEXT NOT NULL,
        checkpoint_ns TEXT NOT NULL DEFAULT '',
        checkpoint_id TEXT NOT NULL,
        task_id TEXT NOT NULL,
        idx INTEGER NOT NULL,
        channel TEXT NOT NULL,
        type TEXT,
        value BLOB,
        PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
    )
    """,
)
_COLUMNS = (
    ("writes", "task_path", "TEXT NOT NULL DEFAULT ''"),
    ("writes", "run_id", "TEXT"),
    ("writes", "digest", "INTEGER"),
    ("checkpoints", "run_id", "TEXT"),
    ("checkpoints", "digest", "INTEGER"),
)
_REST = (
    "CREATE INDEX checkpoints_of_run ON checkpoints (run_id) WHERE run_id IS NOT NULL",
    "CREATE INDEX writes_of_run ON writes (run_id) WHERE run_id IS NOT NULL",
    # token: NULL until a lease is taken; owner: NULL while nobody holds one;
    # expires_at: seconds since 1970, NULL for never; is_gone: all that is left of a deleted one
    """
    CREATE TABLE threads (
        thread_id TEXT PRIMARY KEY,
        newest TEXT NOT NULL,
        expires_at REAL,
        token INTEGER,
        owner TEXT,
        beat INTEGER NOT NULL DEFAULT 0,
        is_gone INTEGER NOT NULL DEFAULT 0
    )
    """,
    "CREATE INDEX threads_that_expire ON threads (expires_at) WHERE expires_at IS NOT NULL",
    # one counter for all threads: one that comes again gets no token of before
    "CREATE TABLE tokens (last INTEGER NOT NULL)",
    "INSERT INTO tokens VALUES (0)",
    """
    UPDATE checkpoints SET run_id = json_extract(CAST(metadata AS TEXT), '$.run_id')
    WHERE json_valid(CAST(metadata AS TEXT))
    """,
    """
    INSERT INTO threads (thread_id, newest)
    SELECT thread_id, max(checkpoint_id) FROM checkpoints GROUP BY thread_id
    """,
)


def _to_schema_1(connection: sqlite3.Connection) -> None:
    for statement in _TABLES:
        connection.execute(statement)
    for table, column, kind in _COLUMNS:
        present = {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")}
        if column not in present:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
    for statement in _REST:
        connection.execute(statement)


STEPS: Sequence[Step] = (_to_schema_1,)


def adopt(connection: sqlite3.Connection) -> None:
    """Mark a file of `AsyncSqliteSaver` as schema 0 of ours; any other file stays as it is."""
    if _is_plain(connection):  # whoever else finds it so writes the same
        connection.execute(f"PRAGMA application_id = {CHECKPOINT_FILE_ID}")


def _is_plain(connection: sqlite3.Connection) -> bool:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    if {row["name"] for row in tables} != {"checkpoints", "writes"}:
        return False
    marks = ("application_id", "user_version")
    return not any(connection.execute(f"PRAGMA {mark}").fetchone()[0] for mark in marks)
