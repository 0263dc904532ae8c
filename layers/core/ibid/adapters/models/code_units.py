"""Cut code into definitions and runs of statements."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from ibid.adapters.models.definitions import assigned_name, defined_name
from ibid.adapters.models.excerpt_units import Unit

_ABOVE: Final = re.compile(r"\s*(?:@|#\[|#|//|/\*|\*|--|\[\w)")
_CLOSES: Final = re.compile(r"\s*(?:[)\]}{]|else\b|elif\b|except\b|finally\b|catch\b|end\b)")
_STATEMENTS: Final = 14


def code_units(whole: Unit) -> Iterator[Unit]:
    """Cut a passage of code: a unit a definition, with the comments and decorators above it."""
    starts = _starts(whole.lines, whole.language)
    for first, stop in pairwise([*sorted(starts), len(whole.lines)]):
        yield replace(whole.window(first, stop), defines=starts[first])


def _starts(lines: Sequence[str], language: str) -> dict[int, str]:
    """Where units start, and what each defines; a run of statements starts at a blank line."""
    starts = {0: ""}
    depth: int | None = None  # of the definition that the line is within
    free = 0  # the first line that a definition below may claim as its comment
    for at, line in enumerate(lines):
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        if name := defined_name(line, language):
            first = at
            while first > free and _ABOVE.match(lines[first - 1]):
                first -= 1
            starts[first] = name
            depth, free = indent, at + 1
        elif depth is not None and indent <= depth and not _CLOSES.match(line):
            starts[at] = assigned_name(line)
            depth = None
        elif depth is None and (at - max(starts) >= _STATEMENTS or _after_blank(lines, at)):
            starts[at] = assigned_name(line)
    return starts


def _after_blank(lines: Sequence[str], at: int) -> bool:
    return at > 0 and not lines[at - 1].strip()
