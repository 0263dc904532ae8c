"""An answer's Markdown, as far as checking it needs: what is code, what is quoted, what is prose.

One pass over the lines and one over the backticks: time is linear in the text, whatever it is.
Followed from CommonMark: fences (an unclosed one runs to the end), block quotes, code spans (a run
of backticks closes at the next run of its length in the same paragraph). A paragraph also ends
where a list item or a heading begins.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_FENCE = re.compile(r"[ \t]*(?P<run>`{3,}|~{3,})(?P<info>.*)")
_QUOTE = re.compile(r"[ \t]*>[ ]?")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]")
_HEADING = re.compile(r"[ ]{0,3}#{1,6}[ \t]")
_BACKTICKS = re.compile(r"`+")
_MASK = "\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A paragraph, a fenced block or a block quote.

    Attributes:
        text: Its lines, without fence lines and quote signs.
        prose: As long as `text`, with everything that is code masked.
        code_spans: What stands between backticks, outer white space cut.
        blank_before: Blank lines between it and the block before.
        starts_list_item: It begins with a list's bullet or number.
    """

    kind: Literal["paragraph", "fence", "quote"]
    text: str
    prose: str
    code_spans: Sequence[str]
    blank_before: int
    starts_list_item: bool


def split_blocks(text: str) -> list[Block]:
    """Split an answer into its blocks, in order."""
    splitter = _Splitter()
    for line in text.splitlines():
        splitter.take(line)
    splitter.close()
    return splitter.blocks


class _Splitter:
    """Takes line after line and makes a block whenever one has ended."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._kind: Literal["paragraph", "fence", "quote"] | None = None
        self._lines: list[str] = []
        self._fence = ""
        self._blank = 0

    def take(self, line: str) -> None:
        if self._kind == "fence":
            if _closes(line, self._fence):
                self.close()
            else:
                self._lines.append(line)
            return
        quote = _QUOTE.match(line)
        fence = _opening(line)
        if quote:
            self._open("quote")
            self._lines.append(line[quote.end() :])
        elif fence:
            self.close()
            self._open("fence")
            self._fence = fence
        elif not line.strip():
            self.close()
            self._blank += 1
        else:
            if _LIST_ITEM.match(line) or _HEADING.match(line):
                self.close()
            self._open("paragraph")
            self._lines.append(line)

    def close(self) -> None:
        """End the open block, if there is one."""
        if self._kind is None:
            return
        text = "\n".join(self._lines)
        prose, spans = _without_code(self._kind, self._lines, text)
        self.blocks.append(
            Block(
                kind=self._kind,
                text=text,
                prose=prose,
                code_spans=spans,
                blank_before=self._blank,
                starts_list_item=self._kind == "paragraph" and bool(_LIST_ITEM.match(text)),
            )
        )
        self._kind, self._lines, self._blank = None, [], 0

    def _open(self, kind: Literal["paragraph", "fence", "quote"]) -> None:
        if self._kind != kind:
            self.close()
            self._kind = kind


def _opening(line: str) -> str | None:
    """Return the run that opens a fence on this line, if one does."""
    fence = _FENCE.fullmatch(line)
    if fence is None or (fence["run"][0] == "`" and "`" in fence["info"]):
        return None
    return fence["run"]


def _closes(line: str, opening: str) -> bool:
    run = line.strip()
    return len(run) >= len(opening) and not run.strip(opening[0])


def _without_code(kind: str, lines: Sequence[str], text: str) -> tuple[str, Sequence[str]]:
    """Return the text with its code masked, and its code spans."""
    if kind == "fence":
        return _MASK * len(text), ()
    if kind == "quote":
        text = _mask_fences(lines)
    return _mask_spans(text)


def _mask_fences(lines: Sequence[str]) -> str:
    """Mask the fences within a block quote, their fence lines too."""
    masked: list[str] = []
    opening: str | None = None
    for line in lines:
        if opening is None:
            opening = _opening(line)
            masked.append(line if opening is None else _MASK * len(line))
        else:
            if _closes(line, opening):
                opening = None
            masked.append(_MASK * len(line))
    return "\n".join(masked)


def _mask_spans(text: str) -> tuple[str, Sequence[str]]:
    """Mask the code spans of one paragraph, and return their contents."""
    runs = [run.span() for run in _BACKTICKS.finditer(text)]
    by_length: dict[int, list[int]] = {}
    for number, (start, end) in enumerate(runs):
        by_length.setdefault(end - start, []).append(number)
    pieces: list[str] = []
    spans: list[str] = []
    done = number = 0
    while number < len(runs):
        start, end = runs[number]
        same = by_length[end - start]
        at = bisect_right(same, number)
        if at == len(same) or text[start - 1 : start] == "\\":
            number += 1  # nothing closes it: plain backticks
            continue
        closing_start, closing_end = runs[same[at]]
        spans.append(text[end:closing_start].strip())
        pieces += [text[done:start], _MASK * (closing_end - start)]
        done = closing_end
        number = same[at] + 1
    return "".join([*pieces, text[done:]]), spans
