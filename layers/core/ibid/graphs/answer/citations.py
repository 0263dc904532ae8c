"""Which citations of an answer hold: what is checked before one is called a citation.

A marker is `[n]`, or several numbers in one, `[1, 2]`, outside fenced blocks and code spans. It
counts if all of this is so:

- 1 <= n <= the number of passages.
- It is the answer's own. A marker whose neighbouring characters on its line are those around the
  same marker in some passage was copied from there with the text, and counts for nothing: 8
  characters before it, or, where the line has fewer, those and the 8 after it.
- What is quoted beside it is in its passage. A quotation is a fenced block or a block quote. It
  belongs to the markers inside it (block quotes only), to those that the line right after it
  begins with (or consists of, if one blank line parts them; never a list item), and to those that
  the text right before it ends with (with a colon beside them, if one blank line parts them).
  Each of its lines must be in one of those markers' passages: a fenced line, outer white space
  cut, is one whole line of it; a line of a block quote is one, or is part of its text with each
  run of white space as one space. Blank lines, and lines of only `...` or `…` and punctuation,
  stand for nothing. If a line is in none of them, none of these passages is cited by this answer,
  wherever else its marker stands: the reader could not tell which of them holds.

Only 500 lines are looked for in running text; those of a longer answer count as not found, so that
time stays linear.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ibid.domain.passages import Citation, Passage
from ibid.graphs.answer.markdown import Block, split_blocks

_MARKER = re.compile(r"\[[1-9][0-9]{0,3}(?:[ ]{0,2},[ ]{0,2}[1-9][0-9]{0,3}){0,50}\]")
_NUMBER = re.compile(r"[0-9]+")
_WINDOW = 8
_AROUND_MARKERS = " \t\n.,;:()*_\u2013\u2014"
_WORD_CHARACTER = re.compile(r"\w")
_MAX_SEARCHES = 500


def citation_of(passage: Passage, *, index: int, url: str | None, cited: bool | None) -> Citation:
    """Return a passage as it is shown under its number."""
    return Citation(
        index=index,
        file_path=passage.file_path,
        start_line=passage.start_line,
        end_line=passage.end_line,
        language=passage.language,
        symbol=passage.symbol or None,
        commit_sha=passage.commit_sha,
        score=passage.score,
        url=url,
        cited=cited,
    )


def check_citations(answer: str, passages: Sequence[Passage]) -> tuple[int, ...]:
    """Return the numbers of the passages that an answer cites, rising; see the module."""
    if not passages:
        return ()
    copied = _markers_of(passages)
    blocks = split_blocks(answer)
    markers = [_own_markers(block, copied, len(passages)) for block in blocks]
    named = {number for found in markers for marker in found for number in marker.numbers}
    held = _Held(passages)
    misquoted: set[int] = set()
    for at, block in enumerate(blocks):
        if block.kind != "paragraph":
            owners = _owners(at, blocks, markers)
            if owners and not held.by(owners, block):
                misquoted |= owners
    return tuple(sorted(named - misquoted))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marker:
    start: int
    end: int
    numbers: frozenset[int]


def _own_markers(
    block: Block, copied: frozenset[tuple[str, str, str]], count: int
) -> Sequence[_Marker]:
    """Find the markers of a block that are the answer's own, in order, with their valid numbers."""
    found: list[_Marker] = []
    for match in _MARKER.finditer(block.prose):
        numbers = frozenset(
            number for number in map(int, _NUMBER.findall(match[0])) if number <= count
        )
        if numbers and _surroundings(block.text, match) not in copied:
            found.append(_Marker(start=match.start(), end=match.end(), numbers=numbers))
    return found


def _markers_of(passages: Sequence[Passage]) -> frozenset[tuple[str, str, str]]:
    """Collect what looks like a marker in the passages, with its surroundings."""
    return frozenset(
        surroundings
        for passage in passages
        for match in _MARKER.finditer(passage.content)
        if (surroundings := _surroundings(passage.content, match)) is not None
    )


def _surroundings(text: str, match: re.Match[str]) -> tuple[str, str, str] | None:
    """Return a marker with its neighbours on its line; None if they are too few to tell."""
    before = text[max(0, match.start() - _WINDOW) : match.start()].rpartition("\n")[2]
    if len(before) == _WINDOW:
        return before, match[0], ""
    after = text[match.end() : match.end() + _WINDOW].partition("\n")[0]
    return (before.lstrip(), match[0], after) if len(after) == _WINDOW else None


def _owners(
    at: int, blocks: Sequence[Block], markers: Sequence[Sequence[_Marker]]
) -> frozenset[int]:
    """Return the numbers that the quotation at this place belongs to."""
    numbers = {number for marker in markers[at] for number in marker.numbers}
    if at + 1 < len(blocks):
        after = blocks[at + 1]
        if after.kind == "paragraph" and not after.starts_list_item:
            leading, end = _leading(after.text, markers[at + 1])
            alone = not after.text[end:].strip(_AROUND_MARKERS)
            if after.blank_before == 0 or (after.blank_before == 1 and alone):
                numbers |= leading
    if at > 0 and blocks[at - 1].kind == "paragraph":
        before = blocks[at - 1]
        trailing, start = _trailing(before.text, markers[at - 1])
        introduces = ":" in before.text[max(0, start - 2) :]
        blank = blocks[at].blank_before
        if blank == 0 or (blank == 1 and introduces):
            numbers |= trailing
    return frozenset(numbers)


def _leading(text: str, markers: Sequence[_Marker]) -> tuple[set[int], int]:
    """Return the numbers of the markers that a text begins with, and where they end."""
    numbers: set[int] = set()
    end = 0
    for marker in markers:
        if text[end : marker.start].strip(_AROUND_MARKERS):
            break
        numbers |= marker.numbers
        end = marker.end
    return numbers, end


def _trailing(text: str, markers: Sequence[_Marker]) -> tuple[set[int], int]:
    """Return the numbers of the markers that a text ends with, and where they start."""
    numbers: set[int] = set()
    start = len(text)
    for marker in reversed(markers):
        if text[marker.end : start].strip(_AROUND_MARKERS):
            break
        numbers |= marker.numbers
        start = marker.start
    return numbers, start


class _Held:
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
    for match in reversed(list(_MARKER.finditer(line))):
        if line[match.end() : end].strip():
            break
        end = match.start()
    return line[:end]
