"""Chunks as rows of a table."""

import sqlite3
from pathlib import Path
from typing import Any, Final

from ibid.domain.passages import Chunk

CHUNK_COLUMNS: Final = (
    "file_path",
    "start_line",
    "end_line",
    "language",
    "symbol",
    "chunk_index",
    "content",
    "content_hash",
    "commit_sha",
)
"""In the order of `row_of` and `chunk_of`."""

CHUNK_VALUES: Final = (
    "CAST(? AS TEXT), ?, ?, CAST(? AS TEXT), CAST(? AS TEXT), ?, CAST(? AS TEXT), CAST(? AS TEXT),"
    " CAST(? AS TEXT)"
)
"""What `row_of` is bound to."""


def row_of(chunk: Chunk) -> tuple[Any, ...]:
    """Turn a chunk into what SQLite is given."""
    return (
        encoded(chunk.file_path),
        chunk.start_line,
        chunk.end_line,
        encoded(chunk.language),
        encoded(chunk.symbol),
        chunk.chunk_index,
        encoded(chunk.content),
        encoded(chunk.content_hash),
        None if chunk.commit_sha is None else encoded(chunk.commit_sha),
    )


def chunk_of(row: tuple[Any, ...]) -> Chunk:
    """Turn the columns back into a chunk."""
    path, start, end, language, symbol, index, content, content_hash, commit = row
    return Chunk(
        file_path=path,
        start_line=start,
        end_line=end,
        language=language,
        symbol=symbol,
        chunk_index=index,
        content=content,
        content_hash=content_hash,
        commit_sha=commit,
    )


def connect(path: Path, *, sealed: bool = False) -> sqlite3.Connection:
    """Open a database for any thread, one at a time.

    Args:
        path: A sealed one is neither locked nor written.
        sealed: It exists and never changes again.
    """
    database = sqlite3.connect(
        f"{path.absolute().as_uri()}?{'mode=ro&immutable=1' if sealed else 'mode=rwc'}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
    )
    database.text_factory = _decoded
    return database


def encoded(text: str) -> bytes:
    """Give a text's bytes; half a surrogate pair, as a notebook's JSON may hold, is kept."""
    return text.encode("utf-8", "surrogatepass")


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")
