"""From files to documents: the text of each, its digest, and the commit that holds it."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ibid.indexing.commits import Head
from ibid.indexing.languages import language_of
from ibid.indexing.skips import MAX_FILE_BYTES, SkipReason, content_skip
from ibid.indexing.text import NotText, decode, split_lines
from ibid.indexing.walk import FoundFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file's text, ready to be cut.

    Attributes:
        commit_sha: The commit in which the file has exactly these bytes, or None.
    """

    path: str
    text: str
    commit_sha: str | None


def digest_of(data: bytes, commit_sha: str | None) -> str:
    """Digest all that decides a file's chunks but its path and the chunker's version."""
    mark = (commit_sha or "").encode()
    return hashlib.blake2b(mark + b"\0" + data, digest_size=16).hexdigest()


def read_bytes(root: Path, file: FoundFile, *, max_bytes: int = MAX_FILE_BYTES) -> bytes | None:
    """Read a file that a walk found; None if it can't be read, or has grown too large."""
    try:
        with (root / file.path).open("rb") as opened:
            data = opened.read(max_bytes + 1)
    except OSError:
        return None
    return data if len(data) <= max_bytes else None


def document_of(path: str, data: bytes, head: Head | None) -> Document | SkipReason:
    """Decode a file, or say why it is left out."""
    try:
        text = decode(data)
    except NotText:
        return SkipReason.BINARY
    lines = split_lines(text)
    reason = content_skip(lines, language_of(path, lines[0] if lines else ""))
    if reason is not None:
        return reason
    return Document(path=path, text=text, commit_sha=head.holding(path, data) if head else None)
