"""Where a definition's signature and docstring end, and where brackets are open."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ibid.adapters.models.definitions import defined_name

LONGEST_LEAD: Final = 8
"""Lines of comments and decorators; a definition below more of them has no head."""
LONGEST_SIGNATURE: Final = 20
"""Lines; of a longer one the first counts."""
LONGEST_DOCSTRING: Final = 4
"""Lines of a docstring that is kept whole; of a longer one its first paragraph."""

_IMPORT: Final = re.compile(
    r"\s*(?:import\b|from\s+\S+\s+import\b|#include\b|using\b|use\s|package\b|require\b"
    r"|(?:const|var|let)\s.*\brequire\(|[)\]},;]|$)"
)
_QUOTES: Final = re.compile(r"\"\"\"|'''")
_OPENS: Final = re.compile(r"\s*[rRuUbBfF]{0,2}(?P<quotes>\"\"\"|''')(?P<rest>.*)")
_SIGNATURE_ENDS: Final = re.compile(r"(?:[:{]|=>|\bdo|\bthen)\s*(?:(?:#|//|/\*).*)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The parts of a definition, by position.

    Attributes:
        line: Where its name stands.
        signature: The line after its signature.
        docstring: The line after its docstring; the signature's end without one.
    """

    line: int
    signature: int
    docstring: int


def shape_of(lines: Sequence[str], name: str, language: str) -> Shape | None:
    """Find a definition's parts, or None where they can't be told."""
    lead = lines[: LONGEST_LEAD + LONGEST_SIGNATURE]
    line = next(
        (
            at
            for at, text in enumerate(lead[: LONGEST_LEAD + 1])
            if defined_name(text, language) == name
        ),
        None,
    )
    if line is None:
        return None
    opened = open_lines(lead)
    signature = next(
        (
            at + 1
            for at in range(line, len(lead))
            if not opened[at] and _SIGNATURE_ENDS.search(lead[at])
        ),
        line + 1,
    )
    return Shape(line=line, signature=signature, docstring=_docstring_end(lines, signature))


def open_lines(lines: Sequence[str]) -> list[bool]:
    """Tell after which lines a triple quote, a round or a square bracket is still open.

    Brackets in short strings and comments are counted like others: it is a hint, no parse.
    """
    found: list[bool] = []
    quotes = ""
    depth = 0
    for line in lines:
        code = line
        for mark in _QUOTES.findall(line):
            if not quotes:
                quotes = mark
            elif mark == quotes:
                quotes = ""
            code = ""
        if not quotes and code:
            depth += sum(map(code.count, "([")) - sum(map(code.count, ")]"))
            depth = max(0, depth)
        found.append(bool(quotes) or depth > 0)
    return found


def _docstring_end(lines: Sequence[str], start: int) -> int:
    if start >= len(lines) or not (opening := _OPENS.match(lines[start])):
        return start
    if opening["quotes"] in opening["rest"]:
        return start + 1
    for at in range(start + 1, len(lines)):
        if opening["quotes"] in lines[at]:
            return at + 1
    return len(lines)


def docstring_lines(lines: Sequence[str], shape: Shape) -> range:
    """Return the positions of a docstring's first paragraph, with its quotes; maybe none."""
    stop = shape.signature
    while stop < shape.docstring and lines[stop].strip():
        stop += 1
    return range(shape.signature, stop)


def is_import(line: str) -> bool:
    """Whether a line brings in names from elsewhere, or is blank or closes such a statement."""
    return bool(_IMPORT.match(line))


def all_imports(lines: Sequence[str]) -> bool:
    """Whether lines say nothing but what they bring in from elsewhere."""
    return all(map(is_import, lines))
