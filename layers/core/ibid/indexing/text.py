r"""From bytes to text, and from text to lines: one rule for both, used everywhere.

A line ends at a line feed, a carriage return and line feed, or a lone carriage return, as editors
count. Nothing else ends a line: no form feed, no `\x85`, no `\u2028`, all of which
`str.splitlines` would cut at.
"""

import codecs
import re

from ibid.domain.errors import IbidError

SNIFFED_BYTES = 8192  # as far as git looks for a NUL
_LINE_END = re.compile(r"\r\n|\n|\r")
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16's, which is its prefix
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class NotText(IbidError):
    """The bytes are no text: a NUL stands near their beginning."""

    code = "NOT_TEXT"


def decode(data: bytes) -> str:
    """Turn a file's bytes into text, without its byte order mark; no byte makes it fail.

    A byte order mark decides. Otherwise it is UTF-8; where that breaks, a text whose bytes
    above 127 are mostly UTF-8 is read as such with U+FFFD in the bad places, any other one as
    Windows-1252, whose five unassigned bytes are read as Latin-1.

    Raises:
        NotText: A NUL in the first 8 KB of what has no byte order mark.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    if b"\0" in data[:SNIFFED_BYTES]:
        raise NotText("a NUL byte in the first 8 KB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return _decode_damaged(data)


def _decode_damaged(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    whole = sum(character > "\x7f" for character in text) - broken
    if whole > broken:
        return text
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def split_lines(text: str) -> list[str]:
    """Cut a text into its lines, without their ends; a last end makes no empty line after it."""
    lines = _LINE_END.split(text) if "\r" in text else text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines
