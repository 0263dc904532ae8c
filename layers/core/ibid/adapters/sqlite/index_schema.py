"""The tables of a generation's database, their version, and how an older file becomes current."""

import secrets
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from ibid.adapters.sqlite.index_file import (
    append_arrays,
    copied,
    database_bytes,
    make_durable,
    map_arrays,
    schema_version,
)
from ibid.domain.errors import GenerationGone, SchemaTooNew

SCHEMA_VERSION: Final = 1

SCHEMA: Final = f"""
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE generation (
    tenant TEXT NOT NULL,
    project_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    embedding_signature TEXT,
    main_language TEXT NOT NULL,
    chunk_count INTEGER NOT NULL,
    path_count INTEGER NOT NULL,
    commit_sha TEXT,
    source_digest TEXT NOT NULL
) STRICT;
-- Files are numbered by path and chunks by path and index, so a path prefix is a run of both.
CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    first_chunk INTEGER NOT NULL
) STRICT;
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,
    file_id INTEGER NOT NULL REFERENCES files (id),
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    language TEXT NOT NULL,
    symbol TEXT NOT NULL,
    chunk_index INTEGER NOT NULL,
    content TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    commit_sha TEXT
) STRICT;
CREATE INDEX chunks_by_hash ON chunks (content_hash);
CREATE TABLE words (
    word TEXT PRIMARY KEY,
    id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""

Step = Callable[[sqlite3.Connection], None]
"""Turns one version's database into the next one's, within a transaction that is not its own."""

STEPS: Final[Mapping[int, Step]] = {}
"""By the version that it starts from; one without a step is built again by the next indexing."""


def make_current(
    path: Path, *, version: int = SCHEMA_VERSION, steps: Mapping[int, Step] = STEPS
) -> None:
    """Bring a generation's file to the current schema; nothing happens if it is.

    The file is replaced whole by a rename, so that readers see the old one or the new one.

    Raises:
        SchemaTooNew: A newer version of Ibid wrote it.
        GenerationGone: It is older than any version that can be migrated.
        FaultyFile: It is not whole.
    """
    found = schema_version(path)
    if found > version:
        raise SchemaTooNew(
            f"{path} has schema {found}; this version reads up to {version}: use a newer Ibid,"
            " or delete the file and index again"
        )
    if found == version:
        return
    missing = next((at for at in range(found, version) if at not in steps), None)
    if missing is not None:
        raise GenerationGone(
            f"{path.name} has schema {found}, which can't be migrated to {version}: index again"
        )
    arrays = map_arrays(path)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.migrating")
    try:
        with path.open("rb") as source, draft.open("wb") as target:
            shutil.copyfileobj(source, target)
            target.truncate(database_bytes(path))
        _migrate(draft, found, version, steps)
        append_arrays(draft, copied(arrays))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    make_durable(path.parent)


def _migrate(draft: Path, found: int, version: int, steps: Mapping[int, Step]) -> None:
    with closing(sqlite3.connect(draft, isolation_level=None)) as database:
        database.execute("BEGIN")
        for at in range(found, version):
            steps[at](database)
        database.execute(f"PRAGMA user_version = {version:d}")
        database.execute("COMMIT")
