"""Cut passages into what can be quoted, and long units to the lines that tell."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ibid.adapters.models.code_shape import (
    LONGEST_DOCSTRING,
    docstring_lines,
    open_lines,
    shape_of,
)
from ibid.adapters.models.code_units import code_units
from ibid.adapters.models.excerpt_units import Unit
from ibid.adapters.models.prose_units import prose_units
from ibid.domain.analysis import analyse
from ibid.domain.passages import Passage

PROSE: Final = frozenset(
    {"markdown", "text", "rst", "restructuredtext", "asciidoc", "org", "html", ""}
)
"""Languages cut by paragraph; every other one is cut as code."""

DOCSTRING_WORTH: Final = 0.6
"""What a word of a docstring counts where lines are chosen, beside one of the code."""
SLACK: Final = 4
"""One more line in so many, if that spares the cut."""
FINISH: Final = 6
"""Most lines more, if they finish a docstring or a call."""
LAST: Final = 2
"""Lines that are not left out at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is quoted: excerpts, lines of code each, and characters of prose each."""

    excerpts: int
    code_lines: int
    prose_characters: int


def units_of(passage: Passage, number: int) -> list[Unit]:
    """Cut a passage into what can be quoted; units never overlap, and keep the lines' order."""
    lines = passage.content.split("\n")
    if passage.truncated:
        lines = lines[:-1]  # the last one is a marker of ours, no line of the file
    is_prose = passage.language in PROSE
    whole = Unit(
        number=number,
        kind="prose" if is_prose else "code",
        lines=lines,
        start_line=passage.start_line,
        language=passage.language,
    )
    cut = prose_units(whole) if is_prose else code_units(whole)
    return [unit for unit in cut if any(line.strip() for line in unit.lines)]


def cut_to_size(unit: Unit, weights: Mapping[str, float], language: str, size: Size) -> Unit:
    """Cut a unit to its head and the window that holds most, the earliest on a tie.

    Args:
        unit: Whole.
        weights: What each telling word of the question is worth.
        language: That the words were analysed in.
        size: How much may be quoted.
    """
    is_code = unit.kind == "code"
    length = size.code_lines if is_code else _lines_within(unit, size.prose_characters)
    if len(unit.lines) <= length + (length // SLACK if is_code else 0):
        return unit
    return _Cutter(unit, weights, language).to(length)


class _Cutter:
    """One unit that is too long."""

    def __init__(self, unit: Unit, weights: Mapping[str, float], language: str) -> None:
        self._unit = unit
        self._weights = weights
        self._terms = [
            frozenset(analyse(line, language=language)) & weights.keys() for line in unit.lines
        ]
        is_code = unit.kind == "code"
        self._open = open_lines(unit.lines) if is_code else [False] * len(unit.lines)
        self._docstring = range(0)
        self._head = unit.head
        shape = shape_of(unit.lines, unit.defines, unit.language) if unit.defines else None
        if shape is not None:
            self._docstring = range(shape.signature, shape.docstring)
            whole = len(self._docstring) <= LONGEST_DOCSTRING
            kept = self._docstring if whole else docstring_lines(unit.lines, shape)
            self._head = kept.stop if len(kept) <= LONGEST_DOCSTRING and kept else shape.signature

    def to(self, length: int) -> Unit:
        count = len(self._unit.lines)
        head = self._head if self._head < length else 0
        room = length - head
        held = _Held(self._weights)
        for at in range(head + room):
            held.add(self._terms[at], told=at in self._docstring)
        best, start = self._worth(held, head), head
        for at in range(head + 1, count - room + 1):
            held.drop(self._terms[at - 1], told=at - 1 in self._docstring)
            held.add(self._terms[at + room - 1], told=at + room - 1 in self._docstring)
            if self._may_start(at) and (worth := self._worth(held, at)) > best:
                best, start = worth, at
        return self._unit.cut(head, start, self._finished(start + room))

    def _may_start(self, at: int) -> bool:
        """Neither within what is open, nor at a table's rule."""
        return not self._open[at - 1] and any(map(str.isalnum, self._unit.lines[at]))

    def _worth(self, held: "_Held", start: int) -> float:
        begins = 0.5 if start == 0 and self._unit.defines else 0.0
        return held.worth() * (1 + begins) + begins

    def _finished(self, stop: int) -> int:
        """A few lines more, if they finish what is open, or all."""
        if self._unit.kind == "code" and len(self._unit.lines) - stop <= LAST:
            return len(self._unit.lines)
        for at in range(stop, min(stop + FINISH, len(self._unit.lines)) + 1):
            if not self._open[at - 1]:
                return at
        return stop


class _Held:
    """The telling words of a window that slides: each one counted by its lines."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self._lines = {False: Counter[str](), True: Counter[str]()}
        self._known: float | None = None

    def add(self, terms: Collection[str], *, told: bool) -> None:
        """Take a line in, of a docstring if it is told there."""
        self._count(terms, told=told, by=1)

    def drop(self, terms: Collection[str], *, told: bool) -> None:
        """Leave a line out again."""
        self._count(terms, told=told, by=-1)

    def worth(self) -> float:
        """What the words are worth together, each once."""
        if self._known is None:
            code, told = (+self._lines[told] for told in (False, True))
            self._known = math.fsum(self._weights[term] for term in code)
            self._known += DOCSTRING_WORTH * math.fsum(
                self._weights[term] for term in told.keys() - code.keys()
            )
        return self._known

    def _count(self, terms: Collection[str], *, told: bool, by: int) -> None:
        lines = self._lines[told]
        for term in terms:
            before = lines[term]
            lines[term] = before + by
            if before in {0, -by}:  # it comes or goes
                self._known = None


def _lines_within(unit: Unit, characters: int) -> int:
    """How many of the longest lines fit, at least one and a table's header."""
    widest = max(len(line) for line in unit.lines) + 1
    return max(unit.head + 1, 1, characters // widest)


def telling_line(lines: Sequence[str], weights: Mapping[str, float], language: str) -> int:
    """Find the line whose words are worth most, the earliest on a tie."""

    def worth(at: int) -> tuple[float, int]:
        held = weights.keys() & set(analyse(lines[at], language=language))
        return math.fsum(weights[term] for term in held), -at

    return max(range(len(lines)), key=worth)
