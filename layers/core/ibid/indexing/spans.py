"""Runs of lines and how they are sized: windows for the long, joining for the short.

The figures are those of the measured recipe: windows of 60 lines every 40, code units whole up to
90 lines, neighbours joined up to 30.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

WINDOW_LINES = 60
WINDOW_STEP = 40
WHOLE_LINES = 90
JOINED_LINES = 30
MAX_CHARACTERS = 8_000

# What closes a block and says nothing by itself.
_CLOSING = re.compile(r"\W*(?:end|endif|esac|fi|done)?\W*|\W*#\s*endif\b.*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Span:
    """A run of lines of one file.

    Attributes:
        start: First line, from 0.
        end: The line after the last.
        symbol: What the lines define, dotted; several parted by spaces; may be empty.
        group: Neighbours of one group may be joined; None never is.
        language: Where it differs from its file's, as in a notebook's cells; else empty.
    """

    start: int
    end: int
    symbol: str = ""
    group: str | None = None
    language: str = ""


def fit(lines: Sequence[str], spans: Iterable[Span], *, whole: int = WHOLE_LINES) -> list[Span]:
    """Trim, window and join spans, in their order, until each is of a size to embed.

    Args:
        lines: The whole file's.
        spans: In order of their start.
        whole: Longest run of lines that stays in one piece.

    Returns:
        Spans that begin and end with a line that is not blank, no two equal, none blank. Each
        is at most `whole` lines and 8,000 characters, except a single line longer than that.
    """
    sized: list[Span] = []
    for span in spans:
        trimmed = _trim(lines, span)
        if trimmed is None:
            continue
        if sized and _only_closes(lines, trimmed) and _extends(sized[-1], trimmed, whole):
            sized[-1] = replace(sized[-1], end=trimmed.end)
            continue
        sized.extend(_windowed(trimmed, whole))
    pieces = (
        piece
        for joined in _joined(sized)
        for part in _capped(lines, joined)
        if (piece := _trim(lines, part)) is not None
    )
    return _without_inner(sorted(pieces, key=lambda piece: (piece.start, -piece.end)))


def windows(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut lines into windows that overlap; what fits into one window is one."""
    for first in range(start, end, WINDOW_STEP):
        yield first, min(first + WINDOW_LINES, end)
        if first + WINDOW_LINES >= end:
            return


def _trim(lines: Sequence[str], span: Span) -> Span | None:
    start, end = span.start, span.end
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return replace(span, start=start, end=end) if start < end else None


def _only_closes(lines: Sequence[str], span: Span) -> bool:
    return all(_CLOSING.fullmatch(lines[row]) for row in range(span.start, span.end))


def _extends(last: Span, span: Span, whole: int) -> bool:
    return last.end <= span.start and span.end - last.start <= whole + JOINED_LINES


def _windowed(span: Span, whole: int) -> Iterator[Span]:
    if span.end - span.start <= whole:
        yield span
        return
    for start, end in windows(span.start, span.end):
        yield replace(span, start=start, end=end)


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for span in spans:
        last = joined[-1] if joined else None
        if last is not None and _joins(last, span):
            joined[-1] = replace(last, end=span.end, symbol=_both(last.symbol, span.symbol))
        else:
            joined.append(span)
    return joined


def _joins(last: Span, span: Span) -> bool:
    return (
        span.group is not None
        and last.group == span.group
        and last.language == span.language
        and last.end <= span.start
        and span.end - last.start <= JOINED_LINES
    )


def _both(first: str, second: str) -> str:
    known = first.split()
    return " ".join([*known, *(name for name in second.split() if name not in known)])


def _capped(lines: Sequence[str], span: Span) -> Iterator[Span]:
    start, characters = span.start, 0
    for row in range(span.start, span.end):
        characters += len(lines[row]) + 1
        if characters > MAX_CHARACTERS and row > start:
            yield replace(span, start=start, end=row)
            start, characters = row, len(lines[row]) + 1
    yield replace(span, start=start, end=span.end)


def _without_inner(spans: Iterable[Span]) -> list[Span]:
    """Drop what lies within another of the same name: windows overlap, so their pieces may."""
    kept: list[Span] = []
    for span in spans:
        last = kept[-1] if kept else None
        if last is None or span.end > last.end or span.symbol != last.symbol:
            kept.append(span)
    return kept
