"""Jupyter notebooks by cell, as lines of the `.ipynb` file itself, so that citations hold."""

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from ibid.domain.errors import IbidError
from ibid.indexing.markdown import heading_symbol, headings
from ibid.indexing.skips import LONGEST_LINE
from ibid.indexing.spans import Span
from ibid.indexing.text import split_lines

_SPACE = " \t\n"
_DECODER = json.JSONDecoder()


class NotANotebook(IbidError):
    """The file is no JSON, or has no `cells`."""

    code = "NOT_A_NOTEBOOK"


def notebook_spans(lines: Sequence[str]) -> list[Span]:
    """Find each cell's source lines; outputs and metadata are left out.

    A cell's symbol is the heading it stands under. A notebook written on one line is one span,
    cells with a line of over 50,000 characters, such as a picture's, are left out.

    Raises:
        NotANotebook: It can't be read as one.
    """
    text = "\n".join(lines)
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    spans: list[Span] = []
    above: list[tuple[int, str]] = []
    language = ""
    try:
        cells, language = _cells(text)
        for start, end, kind, source in cells:
            if kind == "markdown":
                for _, level, title in headings(split_lines(source)):
                    above = [(depth, name) for depth, name in above if depth < level]
                    above.append((level, title))
            first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1)
            if first + 1 < last and lines[first].rstrip().endswith("["):
                first += 1  # the bracket's own line says only "source"
            if first + 1 < last and lines[last - 1].strip() in {"]", "],"}:
                last -= 1
            shown = all(len(line) <= LONGEST_LINE for line in lines[first:last])
            if source.strip() and shown and not (spans and first < spans[-1].end):
                symbol = heading_symbol([name for _, name in above])
                spoken = language if kind == "code" else kind
                spans.append(Span(first, last, symbol, None, spoken))
    except (ValueError, RecursionError, IndexError) as error:
        raise NotANotebook("its JSON can't be read") from error
    return spans


def _cells(text: str) -> tuple[list[tuple[int, int, str, str]], str]:
    """Return the cells as (start and end of their source's value, kind, source) and a language."""
    cells: list[tuple[int, int, str, str]] = []
    metadata: Any = {}
    found = False
    for key, start in _members(text, _skip(text, 0)):
        if key == "cells" and text[start] == "[":
            found = True
            for cell in _elements(text, start):
                cells.extend(_source(text, cell))
        elif key == "metadata":
            metadata, _ = _DECODER.raw_decode(text, start)
    if not found:
        raise ValueError("no cells")
    return cells, _kernel_language(metadata)


def _kernel_language(metadata: Any) -> str:  # noqa: ANN401 - whatever the JSON holds
    for section, field in (("language_info", "name"), ("kernelspec", "language")):
        inner = metadata.get(section) if isinstance(metadata, dict) else None
        name = inner.get(field) if isinstance(inner, dict) else None
        if isinstance(name, str) and name:
            return name.lower()[:40]
    return "python"


def _source(text: str, start: int) -> Iterator[tuple[int, int, str, str]]:
    kind, source, span = "raw", "", (0, 0)
    for key, value_start in _members(text, start):
        if key not in {"cell_type", "source"}:
            continue
        value, end = _DECODER.raw_decode(text, value_start)
        if key == "cell_type":
            kind = str(value)
        else:
            span = (value_start, end)
            source = "".join(map(str, value)) if isinstance(value, list) else str(value)
    if span[1]:
        yield *span, kind, source


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


def _members(text: str, start: int) -> Iterator[tuple[str, int]]:
    """Give each key of the object at `start` with where its value begins."""
    if text[start] != "{":
        raise ValueError("no object")
    at = _skip(text, start + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] != ":":
            raise ValueError("no colon")
        at = _skip(text, at + 1)
        yield key, at
        at = _after(text, at)


def _elements(text: str, start: int) -> Iterator[int]:
    at = _skip(text, start + 1)
    while text[at] != "]":
        yield at
        at = _after(text, at)


def _after(text: str, at: int) -> int:
    """Pass a value, and the comma behind it."""
    _, at = _DECODER.raw_decode(text, at)
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at
