"""Find what describes a whole project: its README's first paragraph, or its package's docstring."""

import re
from collections.abc import Sequence
from typing import Final

from ibid.adapters.models.cutting import units_of
from ibid.adapters.models.excerpt_units import Unit
from ibid.domain.passages import Passage

MOST: Final = 2
"""Descriptions that are worth quoting: the project's own, and perhaps a part's."""

_README: Final = re.compile(r"(?:^|/)readme(?:\.\w+)?$", re.IGNORECASE)
_PACKAGE: Final = re.compile(r"(?:^|/)(?:__init__\.py|mod\.rs|lib\.rs|doc\.go|package-info\.java)$")
_DOCSTRING: Final = re.compile(r"\s*(?:[rRuU]?(?:\"\"\"|''')|//!|/\*\*|// Package )")
_NO_WORDS: Final = re.compile(
    r"!?\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])?|<[^>]*>|\.\. |:\w+:|https?:\S+"
)
_FEWEST_WORDS: Final = 5
_EARLY: Final = 30  # lines: a description stands at a file's beginning


def describing_units(passages: Sequence[Passage]) -> list[Unit]:
    """Find the paragraphs that describe the project, the one of the outermost README first.

    Returns:
        At most `MOST`, of different files; empty if no passage holds the beginning of the root's
        README (one further in describes a part) or of a package.
    """
    found: dict[str, tuple[tuple[bool, int, int], Unit]] = {}
    for number, passage in enumerate(passages, start=1):
        readme, package = _README.search(passage.file_path), _PACKAGE.search(passage.file_path)
        depth = passage.file_path.count("/")
        if not (package or (readme and not depth)):
            continue
        unit = next(
            (
                unit
                for unit in units_of(passage, number)
                if (_tells(unit) if readme else _DOCSTRING.match(unit.text))
            ),
            None,
        )
        if unit is not None and unit.start_line <= _EARLY:
            rank = (readme is None, depth, unit.start_line)
            best = found.get(passage.file_path)
            if best is None or rank < best[0]:
                found[passage.file_path] = (rank, unit)
    ranked = sorted(found.values(), key=lambda each: each[0])
    outermost = [unit for rank, unit in ranked if rank[:2] == ranked[0][0][:2]]
    return outermost[:MOST]


def _tells(unit: Unit) -> bool:
    """Whether a paragraph is made of words rather than badges, links or code."""
    words = re.findall(r"[^\W\d_]{2,}", _NO_WORDS.sub(" ", unit.text))
    ends = unit.lines[-1].rstrip().endswith(":")
    return unit.kind == "prose" and not ends and len(words) >= _FEWEST_WORDS
