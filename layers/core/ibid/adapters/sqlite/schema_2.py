"""The app store's second schema: numbered runs with journals and pauses, keys, ratings."""

import sqlite3

_STATEMENTS = (
    "ALTER TABLE conversations ADD COLUMN runs_begun INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN number INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN graph TEXT NOT NULL DEFAULT 'messages'",
    "ALTER TABLE runs ADD COLUMN turn_id TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE runs ADD COLUMN cancel_requested INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN resumes TEXT",
    "ALTER TABLE runs ADD COLUMN resumed_by TEXT",
    "ALTER TABLE runs ADD COLUMN decision TEXT",
    # of a paused run's question
    "ALTER TABLE runs ADD COLUMN pause_expires_at INTEGER",
    # NULL before the first write of the journal, and once it was removed
    "ALTER TABLE runs ADD COLUMN journal_expires_at INTEGER",
    "ALTER TABLE runs ADD COLUMN is_journal_removed INTEGER NOT NULL DEFAULT 0",
    """
    UPDATE runs SET number = numbered.number, turn_id = id
    FROM (
        SELECT rowid AS run, row_number() OVER (
            PARTITION BY tenant, conversation_id ORDER BY created_at, rowid
        ) AS number
        FROM runs
    ) AS numbered
    WHERE numbered.run = runs.rowid
    """,
    # what ended before journals has none to replay; a live run goes on with an empty one
    "UPDATE runs SET is_journal_removed = 1 WHERE ended_at IS NOT NULL",
    """
    UPDATE conversations SET runs_begun = (
        SELECT count(*) FROM runs
        WHERE runs.tenant = conversations.tenant AND runs.conversation_id = conversations.id
    )
    """,
    "DROP INDEX one_live_run_a_conversation",
    "DROP INDEX runs_of_conversation",
    "CREATE UNIQUE INDEX runs_by_number ON runs (tenant, conversation_id, number)",
    """
    CREATE UNIQUE INDEX one_running_run_a_conversation ON runs (tenant, conversation_id)
        WHERE state = 'running'
    """,
    """
    CREATE UNIQUE INDEX one_pending_pause_a_conversation ON runs (tenant, conversation_id)
        WHERE state = 'paused' AND resumed_by IS NULL
    """,
    "CREATE INDEX running_runs ON runs (tenant, subject) WHERE state = 'running'",
    "CREATE INDEX live_runs ON runs (tenant, conversation_id, number) WHERE ended_at IS NULL",
    """
    CREATE INDEX due_pauses ON runs (pause_expires_at)
        WHERE state = 'paused' AND resumed_by IS NULL
    """,
    """
    CREATE INDEX due_journals ON runs (journal_expires_at)
        WHERE journal_expires_at IS NOT NULL AND ended_at IS NOT NULL
    """,
    """
    CREATE TABLE journal (
        tenant TEXT NOT NULL,
        run_id TEXT NOT NULL,
        first_id INTEGER NOT NULL,
        part INTEGER NOT NULL,
        parts INTEGER NOT NULL,
        last_id INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (tenant, run_id, first_id, part),
        FOREIGN KEY (tenant, run_id) REFERENCES runs (tenant, id) ON DELETE CASCADE
    )
    """,
    # conversation_id: that of the run which it answers, or of the one it made
    """
    CREATE TABLE idempotency (
        tenant TEXT NOT NULL,
        id TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        owner TEXT NOT NULL,
        beat INTEGER NOT NULL,
        plan TEXT,
        conversation_id TEXT,
        status INTEGER,
        headers TEXT,
        body BLOB,
        run_id TEXT,
        expires_at INTEGER NOT NULL,
        PRIMARY KEY (tenant, id),
        FOREIGN KEY (tenant, conversation_id) REFERENCES conversations (tenant, id)
            ON DELETE CASCADE
    )
    """,
    "CREATE INDEX idempotency_that_expires ON idempotency (expires_at)",
    """
    CREATE INDEX idempotency_of_conversation ON idempotency (tenant, conversation_id)
        WHERE conversation_id IS NOT NULL
    """,
    """
    CREATE TABLE feedback (
        tenant TEXT NOT NULL,
        subject TEXT NOT NULL,
        run_id TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        rating TEXT NOT NULL,
        comment TEXT,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (tenant, subject, run_id),
        FOREIGN KEY (tenant, conversation_id) REFERENCES conversations (tenant, id)
            ON DELETE CASCADE
    )
    """,
    "CREATE INDEX feedback_of_conversation ON feedback (tenant, conversation_id)",
)


def to_schema_2(connection: sqlite3.Connection) -> None:
    """Take a file of schema 1 further; its runs get numbers in the order they began."""
    for statement in _STATEMENTS:
        connection.execute(statement)
