"""The line that names a chunk: where it stands and what it defines."""

import hashlib
from typing import Final

_AS_SPACES: Final = str.maketrans("/.-", "   ")


def header(file_path: str, symbol: str) -> str:
    """Write the first line of the embedded text: the path, then the symbol if there is one."""
    return f"{file_path} {symbol}".strip()


def embedded_text(file_path: str, symbol: str, content: str) -> str:
    """Write what is embedded of a chunk: its header line, then its lines."""
    return f"{header(file_path, symbol)}\n{content}"


def bm25_header(file_path: str, symbol: str) -> str:
    """Write the header as BM25 analyses it: a path's segments and endings are words."""
    return header(file_path, symbol).translate(_AS_SPACES)


def content_hash(header: str, content: str) -> str:
    """Hash all that a chunk's vector depends on but the model: SHA-256, in hex."""
    return hashlib.sha256(f"{header}\n{content}".encode("utf-8", "surrogatepass")).hexdigest()
