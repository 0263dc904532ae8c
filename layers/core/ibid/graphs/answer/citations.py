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

from collections.abc import Callable, Sequence

from ibid.domain.events import CitationsFound
from ibid.domain.passages import Citation, Passage
from ibid.graphs.answer.markdown import Block, split_blocks
from ibid.graphs.answer.markers import Marker, markers_of, own_markers
from ibid.graphs.answer.quotations import HeldText

_AROUND_MARKERS = " \t\n.,;:()*_\u2013\u2014"


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


def shown_citations(
    passages: Sequence[Passage], permalink: Callable[[Passage], str | None]
) -> CitationsFound:
    """Return passages as they are shown before the answer is whole, best first."""
    return CitationsFound(
        citations=tuple(
            citation_of(passage, index=index, url=permalink(passage), cited=None)
            for index, passage in enumerate(passages, start=1)
        )
    )


def check_citations(answer: str, passages: Sequence[Passage]) -> tuple[int, ...]:
    """Return the numbers of the passages that an answer cites, rising; see the module."""
    if not passages:
        return ()
    copied = markers_of(passages)
    blocks = split_blocks(answer)
    markers = [own_markers(block, copied, len(passages)) for block in blocks]
    named = {number for found in markers for marker in found for number in marker.numbers}
    held = HeldText(passages)
    misquoted: set[int] = set()
    for at, block in enumerate(blocks):
        if block.kind != "paragraph":
            owners = _owners(at, blocks, markers)
            if owners and not held.by(owners, block):
                misquoted |= owners
    return tuple(sorted(named - misquoted))


def _owners(
    at: int, blocks: Sequence[Block], markers: Sequence[Sequence[Marker]]
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


def _leading(text: str, markers: Sequence[Marker]) -> tuple[set[int], int]:
    """Return the numbers of the markers that a text begins with, and where they end."""
    numbers: set[int] = set()
    end = 0
    for marker in markers:
        if text[end : marker.start].strip(_AROUND_MARKERS):
            break
        numbers |= marker.numbers
        end = marker.end
    return numbers, end


def _trailing(text: str, markers: Sequence[Marker]) -> tuple[set[int], int]:
    """Return the numbers of the markers that a text ends with, and where they start."""
    numbers: set[int] = set()
    start = len(text)
    for marker in reversed(markers):
        if text[marker.end : start].strip(_AROUND_MARKERS):
            break
        numbers |= marker.numbers
        start = marker.start
    return numbers, start
