"""Cut code into definitions and runs of statements."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ibid.adapters.models.code_shape import open_lines
from ibid.adapters.models.definitions import assigned_name, defined_name
from ibid.adapters.models.excerpt_units import Unit

WINDOWED: Final = 55
"""Lines from which a definition at a passage's end may have been cut by the indexer."""

_ABOVE: Final = re.compile(r"\s*(?:@|#\[|#|//|/\*|\*|--|\[\w)")
_CLOSES: Final = re.compile(r"\s*(?:[)\]}{]|else\b|elif\b|except\b|finally\b|catch\b|end\b)")
_HOLDS_MEMBERS: Final = re.compile(
    r"\b(?:class|interface|struct|enum|trait|impl|module|namespace|object|record)\b"
)
_CLOSED: Final = re.compile(r"\s*(?:\}|end\b)")
_STATEMENTS: Final = 14
_NO_BODY: Final = 3  # lines, decorators too


@dataclass(frozen=True, slots=True)
class _Start:
    defines: str = ""
    indent: int = 0
    holds_members: bool = False


def code_units(whole: Unit) -> Iterator[Unit]:
    """Cut a passage of code: a unit a definition, with the comments and decorators above it."""
    starts = _starts(whole.lines, whole.language)
    order = sorted(starts)
    for first, stop in zip(order, [*order[1:], len(whole.lines)], strict=True):
        start = starts[first]
        unit = replace(whole.window(first, stop), defines=start.defines)
        if not start.defines:
            yield unit
        elif stop < len(whole.lines):
            nested = starts[stop].indent > start.indent
            yield replace(unit, goes_on=nested)
        else:
            yield _at_the_end(unit, start)


def _at_the_end(unit: Unit, start: _Start) -> Unit:
    """Tell of a passage's last definition whether more of it follows there."""
    if open_lines(unit.lines)[-1]:
        return replace(unit, goes_on=True)
    closed = _CLOSED.match(unit.lines[-1])
    long = len(unit.lines) >= WINDOWED
    return replace(unit, may_go_on=not closed and (start.holds_members or long))


def _starts(lines: Sequence[str], language: str) -> dict[int, _Start]:
    """Where units start, and what each defines; a run of statements starts at a blank line."""
    starts = {0: _Start()}
    depth: int | None = None  # of the definition that the line is within
    free = 0  # the first line that a definition below may claim as its comment
    last = 0
    for at, line in enumerate(lines):
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        name = defined_name(line, language)
        if name and depth is not None and indent > depth and at - last <= _NO_BODY:
            name = "" if not starts[last].holds_members else name  # it is all that the outer holds
        if name:
            first = at
            while first > free and _ABOVE.match(lines[first - 1]):
                first -= 1
            starts[first] = _Start(name, indent, bool(_HOLDS_MEMBERS.search(line)))
            depth, free, last = indent, at + 1, first
        elif depth is not None and indent <= depth and not _CLOSES.match(line):
            starts[at] = _Start(assigned_name(line), indent)
            depth, last = None, at
        elif depth is None and (at - last >= _STATEMENTS or _after_blank(lines, at)):
            starts[at] = _Start(assigned_name(line), indent)
            last = at
    return starts


def _after_blank(lines: Sequence[str], at: int) -> bool:
    return at > 0 and not lines[at - 1].strip()
