"""SHA-256 of files, read in pieces."""

import hashlib
from pathlib import Path


def file_digest(path: Path) -> str:
    """Hash a file's bytes, in hex.

    Raises:
        OSError: It can't be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
