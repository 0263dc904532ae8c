"""How passages stand in a prompt: numbered, and fenced so that their content can't get out.

The delimiters carry a key that is a digest of everything they part. Whoever writes a file can't
put the key into it, since the key changes with the file; the same prompt has the same key, so a
provider may cache it. Content goes in unchanged, because an answer quotes it line by line; labels
come from file names and symbols, and lose whatever could end their line.
"""

import hashlib
from collections.abc import Sequence

from ibid.domain.passages import Passage

_KEY_BYTES = 8


def excerpt_key(passages: Sequence[Passage], *others: str) -> str:
    """Return the delimiters' key for passages and the other untrusted texts of the prompt."""
    digest = hashlib.blake2b(digest_size=_KEY_BYTES)
    for passage in passages:
        for part in (passage.file_path, passage.symbol, passage.content):
            digest.update(_framed(part))
    for other in others:
        digest.update(_framed(other))
    return digest.hexdigest()


def render_excerpts(passages: Sequence[Passage], key: str) -> str:
    """Render passages under their numbers, from 1; `key` is of `excerpt_key`."""
    return "\n\n".join(
        f"<excerpt-{key} {number}>\n{label(passage, number)}\n{passage.content}\n"
        f"</excerpt-{key} {number}>"
        for number, passage in enumerate(passages, start=1)
    )


def label(passage: Passage, number: int) -> str:
    """Return `[number] path:start-end symbol` on one line."""
    where = f"{one_line(passage.file_path)}:{passage.start_line}-{passage.end_line}"
    return f"[{number}] {where} {one_line(passage.symbol)}".rstrip()


def one_line(text: str) -> str:
    """Return text with every run of white space and of unprintable characters as one space."""
    return " ".join(
        "".join(char if char.isprintable() else " " for char in text).split(),
    )


def _framed(part: str) -> bytes:
    """Return a text's bytes behind their number, so that no two lists of texts look the same."""
    data = part.encode("utf-8", "surrogatepass")
    return len(data).to_bytes(8, "big") + data
