"""What an answer quotes, and if the passages hold it."""

import re
from collections.abc import Iterator, Sequence

from ibid.domain.passages import Passage
from ibid.graphs.answer.markdown import Block
from ibid.graphs.answer.markers import MARKER

_WORD_CHARACTER = re.compile(r"\w")
_MAX_SEARCHES = 500  # in running text: each is linear in a passage


class HeldText:
    """What the passages hold, line by line and as running text."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._lines = [
            frozenset(line.strip() for line in passage.content.splitlines()) for passage in passages
        ]
        self._running = [" ".join(passage.content.split()) for passage in passages]
        self._searches = 0

    def by(self, owners: frozenset[int], block: Block) -> bool:
        """Tell if each line of a quotation is in a passage of the owners."""
        return all(self._holds(owners, block.kind, line) for line in _quoted_lines(block))

    def _holds(self, owners: frozenset[int], kind: str, line: str) -> bool:
        if any(line in self._lines[number - 1] for number in owners):
            return True
        if kind == "fence":
            return False
        self._searches += len(owners)
        if self._searches > _MAX_SEARCHES:
            return False
        running = " ".join(line.split())
        return any(running in self._running[number - 1] for number in owners)


def _quoted_lines(block: Block) -> Iterator[str]:
    """Yield the lines that a quotation claims to quote, outer white space cut."""
    lines = block.text.splitlines()
    if block.kind == "quote":
        # The lines of a fence within are code; the fence lines themselves quote nothing.
        lines = [line for line in lines if not line.lstrip().startswith(("```", "~~~"))]
        lines = [_without_markers_at_the_end(line) for line in lines]
    for line in lines:
        stripped = line.strip()
        if stripped and not _is_ellipsis(stripped):
            yield stripped


def _is_ellipsis(line: str) -> bool:
    return ("..." in line or "…" in line) and not _WORD_CHARACTER.search(line)


def _without_markers_at_the_end(line: str) -> str:
    """Return a quoted line without the markers that the answer put behind it."""
    end = len(line)
    for match in reversed(list(MARKER.finditer(line))):
        if line[match.end() : end].strip():
            break
        end = match.start()
    return line[:end]
