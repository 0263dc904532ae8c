"""Cut prose into paragraphs, list items, tables and the code blocks within it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from ibid.adapters.models.excerpt_units import Unit

_FENCE: Final = re.compile(r" {0,3}(?P<run>`{3,}|~{3,})[ \t]*(?P<info>[\w+#.-]*)")
_HEADING: Final = re.compile(r" {0,3}(?:#{1,6}|={1,6})[ \t]+(?P<title>\S.*)$")
_UNDERLINE: Final = re.compile(r" {0,3}([=~^\"'*+#-])\1{2,}\s*$")
_ITEM: Final = re.compile(r"\s*(?:[-*+\u2022]|\d{1,3}[.)])\s+\S")
_ROW: Final = re.compile(r" {0,3}\|.*\S")
_RULE: Final = re.compile(r"\s*\|[\s|:-]*-[\s|:-]*$")
_HEADER: Final = 2  # a table's first row and the rule below it
_TITLES: Final = 2


@dataclass(frozen=True, slots=True)
class _Line:
    kind: Literal["text", "item", "code", "table", "heading", "gap"]
    said: str = ""  # a heading's title, or the language of code


_QUOTED: Final = frozenset({"text", "item", "code", "table"})


def prose_units(whole: Unit) -> Iterator[Unit]:
    """Cut a passage of prose; headings are no units but the context of those below."""
    titles: list[str] = []
    first = 0
    marked = [*_marked(whole.lines), _Line("gap")]
    for at, line in enumerate(marked):
        opener = marked[first]
        if at > first and opener.kind in _QUOTED and _parts(opener, line):
            if _RULE.match(whole.lines[first]) and at - first > 1:
                first += 1  # a table that lost its header
            unit = replace(whole.window(first, at), heading=" ".join(titles[-_TITLES:]))
            if opener.kind == "code":
                unit = replace(unit, kind="code", language=opener.said)
            elif len(unit.lines) > _HEADER and _RULE.match(unit.lines[1]):
                unit = replace(unit, head=_HEADER)
            yield unit
            first = at
        if line.kind == "heading":
            titles.append(line.said)
        if line.kind in {"heading", "gap"}:
            first = at + 1


def _parts(opener: _Line, line: _Line) -> bool:
    """Whether a line can't belong to the unit that another one opened."""
    same = opener.kind if opener.kind in {"code", "table"} else "text"
    return line.kind != same


def _marked(lines: Sequence[str]) -> list[_Line]:
    """Tell what each line is."""
    marked: list[_Line] = []
    fence: tuple[str, str] | None = None
    for at, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence is not None:
            closes = mark and mark["run"].startswith(fence[0]) and not mark["info"]
            marked.append(_Line("gap") if closes else _Line("code", fence[1]))
            fence = None if closes else fence
        elif mark:
            fence = (mark["run"], mark["info"])
            marked.append(_Line("gap"))
        elif at and marked[-1].kind == "text" and _UNDERLINE.match(line):
            marked[-1] = _Line("heading", lines[at - 1].strip())
            marked.append(_Line("gap"))
        else:
            marked.append(_plain(line))
    return marked


def _plain(line: str) -> _Line:
    if not line.strip():
        return _Line("gap")
    if title := _HEADING.match(line):
        return _Line("heading", title["title"].strip(" #="))
    if _ROW.match(line):
        return _Line("table")
    return _Line("item" if _ITEM.match(line) else "text")
