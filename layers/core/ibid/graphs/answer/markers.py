"""The markers of an answer, `[n]` or `[n, m]`, and how to tell them from copied ones."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ibid.domain.passages import Passage
from ibid.graphs.answer.markdown import Block

MARKER = re.compile(r"\[[1-9][0-9]{0,3}(?:[ ]{0,2},[ ]{0,2}[1-9][0-9]{0,3}){0,50}\]")
_NUMBER = re.compile(r"[0-9]+")
_WINDOW = 8
_LINE_START = " \t>-*+"

Surroundings = tuple[str, str, str]
"""What stands before a marker on its line, the marker, what stands behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """One marker of a block's text, with those of its numbers that a passage has."""

    start: int
    end: int
    numbers: frozenset[int]


def own_markers(block: Block, copied: frozenset[Surroundings], count: int) -> Sequence[Marker]:
    """Find the markers of a block that are the answer's own, in order, with their valid numbers."""
    found: list[Marker] = []
    for match in MARKER.finditer(block.prose):
        numbers = frozenset(
            number for number in map(int, _NUMBER.findall(match[0])) if number <= count
        )
        if numbers and _surroundings(block.text, match) not in copied:
            found.append(Marker(start=match.start(), end=match.end(), numbers=numbers))
    return found


def markers_of(passages: Sequence[Passage]) -> frozenset[Surroundings]:
    """Collect what looks like a marker in the passages, with its surroundings."""
    return frozenset(
        surroundings
        for passage in passages
        for match in MARKER.finditer(passage.content)
        if (surroundings := _surroundings(passage.content, match)) is not None
    )


def _surroundings(text: str, match: re.Match[str]) -> Surroundings | None:
    """Return a marker with its neighbours on its line; None if they are too few to tell."""
    before = text[max(0, match.start() - _WINDOW) : match.start()].rpartition("\n")[2]
    if len(before) == _WINDOW:
        return before, match[0], ""
    after = text[match.end() : match.end() + _WINDOW].partition("\n")[0]
    return (before.lstrip(_LINE_START), match[0], after) if len(after) == _WINDOW else None
