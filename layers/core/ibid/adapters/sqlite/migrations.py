"""The app store's schema, and how an older file becomes the current one.

A file says in `user_version` which schema it has. Each step takes it one version further; all the
steps that a file lacks run in one transaction, so it is never seen between two versions.
"""

import sqlite3
from collections.abc import Callable, Sequence

from ibid.adapters.sqlite.schema_2 import to_schema_2
from ibid.domain.errors import Misconfigured, SchemaTooNew

Step = Callable[[sqlite3.Connection], None]

APPLICATION_ID = 0x49626964  # "Ibid": tells our file from anybody else's database
_ANY_APPLICATION = 0  # what SQLite writes into a new file

_SCHEMA_1 = (
    """
    CREATE TABLE projects (
        tenant TEXT NOT NULL,
        id TEXT NOT NULL,
        name TEXT NOT NULL,
        status TEXT NOT NULL,
        source TEXT,
        reply_language TEXT,
        settings TEXT NOT NULL,
        active_generation INTEGER,
        embedding_signature TEXT,
        chunk_count INTEGER NOT NULL,
        path_count INTEGER NOT NULL,
        commit_sha TEXT,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (tenant, id)
    )
    """,
    """
    CREATE TABLE members (
        tenant TEXT NOT NULL,
        subject TEXT NOT NULL,
        project_id TEXT NOT NULL,
        role TEXT NOT NULL,
        PRIMARY KEY (tenant, subject, project_id),
        FOREIGN KEY (tenant, project_id) REFERENCES projects (tenant, id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX members_of_project ON members (tenant, project_id)",
    """
    CREATE TABLE jobs (
        tenant TEXT NOT NULL,
        id TEXT NOT NULL,
        project_id TEXT NOT NULL,
        state TEXT NOT NULL,
        phase TEXT NOT NULL,
        statistics TEXT NOT NULL,
        error TEXT,
        lease_owner TEXT NOT NULL,
        beat INTEGER NOT NULL,
        started_at INTEGER NOT NULL,
        finished_at INTEGER,
        PRIMARY KEY (tenant, id),
        FOREIGN KEY (tenant, project_id) REFERENCES projects (tenant, id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX jobs_of_project ON jobs (tenant, project_id, started_at, id)",
    """
    CREATE UNIQUE INDEX one_live_job_a_project ON jobs (tenant, project_id)
        WHERE finished_at IS NULL
    """,
    """
    CREATE TABLE conversations (
        tenant TEXT NOT NULL,
        subject TEXT NOT NULL,
        id TEXT NOT NULL,
        project_id TEXT NOT NULL,
        title TEXT,
        reply_language TEXT,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (tenant, id),
        FOREIGN KEY (tenant, project_id) REFERENCES projects (tenant, id) ON DELETE CASCADE
    )
    """,
    """
    CREATE INDEX conversations_of_principal
        ON conversations (tenant, subject, created_at, id)
    """,
    "CREATE INDEX conversations_of_project ON conversations (tenant, project_id)",
    """
    CREATE TABLE runs (
        tenant TEXT NOT NULL,
        id TEXT NOT NULL,
        subject TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        project_id TEXT NOT NULL,
        message_id TEXT NOT NULL,
        state TEXT NOT NULL,
        lease_owner TEXT NOT NULL,
        beat INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        ended_at INTEGER,
        last_event_id INTEGER NOT NULL,
        terminator TEXT,
        PRIMARY KEY (tenant, id),
        FOREIGN KEY (tenant, conversation_id) REFERENCES conversations (tenant, id)
            ON DELETE CASCADE
    )
    """,
    "CREATE INDEX runs_of_conversation ON runs (tenant, conversation_id)",
    """
    CREATE UNIQUE INDEX one_live_run_a_conversation ON runs (tenant, conversation_id)
        WHERE ended_at IS NULL
    """,
    """
    CREATE TABLE messages (
        tenant TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        position INTEGER NOT NULL,
        id TEXT NOT NULL,
        run_id TEXT NOT NULL,
        role TEXT NOT NULL,
        content TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        outcome TEXT NOT NULL,
        PRIMARY KEY (tenant, conversation_id, position),
        FOREIGN KEY (tenant, conversation_id) REFERENCES conversations (tenant, id)
            ON DELETE CASCADE
    )
    """,
)


def _to_schema_1(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA_1:
        connection.execute(statement)


STEPS: Sequence[Step] = (_to_schema_1, to_schema_2)


def migrate(
    connection: sqlite3.Connection,
    *,
    name: str,
    steps: Sequence[Step] = STEPS,
    application_id: int = APPLICATION_ID,
) -> None:
    """Bring a file to the schema that `steps` lead to; nothing is done if it has it.

    Args:
        connection: In autocommit mode, outside a transaction.
        name: What messages call the file.
        steps: The one at position n takes a file from schema n to n + 1; 0 is an empty file.
        application_id: What tells this kind of file from others, above 0.

    Raises:
        SchemaTooNew: A newer version wrote the file.
        Misconfigured: It is another program's database.
    """
    connection.execute("BEGIN IMMEDIATE")  # two processes that open a new file take turns
    try:
        version = known_version(
            connection, name=name, newest=len(steps), application_id=application_id
        )
        for step in steps[version:]:
            step(connection)
        if version < len(steps):
            connection.execute(f"PRAGMA application_id = {application_id}")
            connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def known_version(
    connection: sqlite3.Connection,
    *,
    name: str,
    newest: int,
    application_id: int = APPLICATION_ID,
) -> int:
    """Return the file's schema, 0 for an empty file.

    Raises:
        SchemaTooNew: It is above `newest`.
        Misconfigured: It is another program's database.
    """
    found_id = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    is_new = found_id == _ANY_APPLICATION and tables == 0
    if found_id != application_id and not is_new:
        raise Misconfigured(f"{name!r} is a database of another program")
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > newest:
        raise SchemaTooNew(f"{name!r} has schema {version}; this version of Ibid knows {newest}")
    return version
