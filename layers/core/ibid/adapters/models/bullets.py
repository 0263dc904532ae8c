"""Quote an excerpt as one list item that tells: a sentence or a line, with just its place."""

import re
from collections.abc import Sequence
from typing import Final

from ibid.adapters.models.code_shape import Shape, is_import, shape_of
from ibid.adapters.models.cutting import telling_line
from ibid.adapters.models.excerpt_units import Unit
from ibid.adapters.models.question_terms import QuestionTerms
from ibid.adapters.models.quoting import code_span, is_plain, names_a_path, place_of

LONGEST_SENTENCE: Final = 5
"""Lines of a docstring's first sentence; what is longer is cut there."""

_QUOTES: Final = re.compile(r"^[rRuU]?(?:\"\"\"|''')|(?:\"\"\"|''')$")
_COMMENT: Final = re.compile(r"^(?:#+!?|//[/!]?|/\*+!?|\*+/?|--+)|\*+/$")
_ENDS: Final = re.compile(r"[.!?][\"')\]`]*$")
_WITHIN: Final = re.compile(r"(?<=[a-z)`\"'][.!?])\s+(?=[A-Z`])")


def quote_in_a_bullet(unit: Unit, path: str, asked: QuestionTerms) -> str:
    """Quote a unit as one list item: its words or telling lines, where those stand, its marker."""
    if unit.kind == "prose" and is_plain(unit.lines):
        words = " ".join(line.strip(" -*+") for line in unit.lines)
        return _item(words, unit, path, range(len(unit.lines)))
    shape = shape_of(unit.lines, unit.defines, unit.language) if unit.defines else None
    if shape is not None and (told := _told(unit, shape)):
        return _item(told[0], unit, path, told[1])
    return _line(unit, path, asked, shape)


def _told(unit: Unit, shape: Shape) -> tuple[str, range] | None:
    """A definition and the first sentence that its docstring or the comment above it says."""
    name = unit.lines[shape.line].strip()
    if shape.signature > shape.line + 1 or names_a_path(name):
        name = unit.defines
    told, last = _sentence(unit.lines[shape.signature : shape.docstring], _QUOTES)
    lines = range(shape.line, shape.signature + last)
    if not told:
        told, last = _sentence(unit.lines[: shape.line], _COMMENT)
        lines = range(shape.signature)
    if not told or names_a_path(told):
        return None
    said = told if is_plain([told]) else code_span(told)
    return f"{code_span(name)}: {said}", lines


def _sentence(lines: Sequence[str], marks: re.Pattern[str]) -> tuple[str, int]:
    """The first sentence of a docstring or a comment, and how many of its lines that takes."""
    told: list[str] = []
    for at, line in enumerate(lines[:LONGEST_SENTENCE], start=1):
        if marks is _COMMENT and not marks.match(line.strip()):
            return "", 0
        words = marks.sub("", marks.sub("", line.strip()).strip()).strip()
        if not words and told:
            return " ".join(told), at - 1
        first, *rest = _WITHIN.split(words, maxsplit=1)
        told += [first] if first else []
        if rest or _ENDS.search(words):
            return " ".join(told), at
    return " ".join(told), min(len(lines), LONGEST_SENTENCE)


def _line(unit: Unit, path: str, asked: QuestionTerms, shape: Shape | None) -> str:
    """The line that holds most of what is asked; the definition's own if no other holds any."""
    worth = dict.fromkeys(asked.terms, 1.0)
    shown = [at for at, line in enumerate(unit.lines) if _can_stand(line)]
    if unit.kind == "code":
        shown = [at for at in shown if not is_import(unit.lines[at])] or shown
    if not shown:
        return f"- {place_of(path, unit.start_line, unit.end_line)} [{unit.number}]"
    if shape is not None and shape.line in shown:
        worth = dict.fromkeys(set(asked.terms) - asked.names, 1.0)
        shown = [shape.line, *(at for at in shown if at != shape.line)]
    at = shown[telling_line([unit.lines[at] for at in shown], worth, asked.language)]
    words = code_span(unit.lines[at].strip())
    if shape is not None and at != shape.line:
        words = f"{code_span(unit.defines)}: {words}"
    return _item(words, unit, path, range(at, at + 1))


def _can_stand(line: str) -> bool:
    return any(map(str.isalnum, line)) and not names_a_path(line)


def _item(words: str, unit: Unit, path: str, lines: range) -> str:
    first, last = (unit.number_of(at) for at in (lines.start, lines.stop - 1))
    return f"- {words} ({place_of(path, first, last)} [{unit.number}])"
