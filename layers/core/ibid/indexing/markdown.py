"""Markdown by heading: a section is its heading's lines and what follows, up to the next one."""

import functools
import itertools
from collections.abc import Sequence

from markdown_it import MarkdownIt

from ibid.indexing.spans import Span

MAX_TITLE = 80


@functools.cache
def _parser() -> MarkdownIt:
    """Make a parser of blocks only: nothing here needs the text inside them."""
    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def headings(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    """List the headings as (line from 0, level from 1, title); none in code, lists or quotes."""
    first = _front_matter(lines)
    tokens = _parser().parse("\n".join(lines[first:]))
    return [
        (first + opening.map[0], int(opening.tag[1:]), title.content)
        for opening, title in itertools.pairwise(tokens)
        if opening.type == "heading_open" and opening.level == 0 and opening.map
    ]


def heading_symbol(titles: Sequence[str]) -> str:
    """Write a heading and those it stands under as one dotted name without spaces."""
    return ".".join("-".join(title.replace(".", " ").split())[:MAX_TITLE] for title in titles)


def markdown_spans(lines: Sequence[str]) -> list[Span]:
    """Cut at every heading; a section's symbol is its heading under those above it."""
    spans = []
    start, symbol, group = 0, "", ""
    above: list[tuple[int, str]] = []
    for row, level, title in headings(lines):
        spans.append(Span(start, row, symbol, group))
        above = [(depth, name) for depth, name in above if depth < level]
        over = heading_symbol([name for _, name in above])
        above.append((level, title))
        start, symbol = row, heading_symbol([name for _, name in above])
        group = over or symbol  # a heading joins what stands under it
    spans.append(Span(start, len(lines), symbol, group))
    return spans


def _front_matter(lines: Sequence[str]) -> int:
    """Return the line after a leading `---` block, or 0 if there is none."""
    if lines and lines[0].rstrip() == "---":
        for row in range(1, len(lines)):
            if lines[row].rstrip() in {"---", "..."}:
                return row + 1
    return 0
