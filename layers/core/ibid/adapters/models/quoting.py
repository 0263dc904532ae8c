"""Quote excerpts in Markdown so that nothing in them can pass for ours.

Code stands in a fence longer than any run of backticks it holds. Prose stands in a block quote,
unless it holds what Markdown or a citation checker could take for a link, a marker, a tag or an
open code span: then it stands in a fence too. Whoever reads citations counts markers outside code
only, and a quoted `[1]` is never outside.
"""

import re
from collections.abc import Sequence
from typing import Final

from ibid.adapters.models.excerpt_units import Unit
from ibid.adapters.models.phrases import Phrases

_RUN: Final = re.compile(r"`+")
_RISKY: Final = re.compile(r"[\[\]<>|\\`]|~~~|https?:|^ {4}|^\s*(?:[=#-]|\t)")
_PATH: Final = re.compile(r"/\S*\.[A-Za-z]")  # outside a fence it would pass for a path of ours
_SPAN: Final = re.compile(r"(?<!`)(?P<run>`+)(?!`)[^`\n]+(?P=run)(?!`)")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]")
_FENCE_LENGTH: Final = 3
_LANGUAGE: Final = re.compile(r"[a-z0-9+#._-]{1,30}")


def quote(unit: Unit, path: str, phrases: Phrases) -> str:
    """Quote a unit as two blocks: where it stands with its marker and a colon, then its lines.

    A marker with a colon right before a quotation is what the citation check takes as its owner.
    """
    place = f"{place_of(path, unit.start_line, unit.end_line)} [{unit.number}]"
    if unit.defines:
        words = phrases.begins if unit.goes_on or unit.may_go_on else phrases.defined
        place = words.format(name=code_span(unit.defines), place=place)
    if unit.kind == "prose" and is_plain(unit.lines):
        return f"{place}:\n\n" + "\n".join(f"> {line}" for line in unit.shown)
    text = "\n".join(unit.shown)
    return f"{place}:\n\n" + fenced(text, unit.language if unit.kind == "code" else "text")


def is_plain(lines: Sequence[str]) -> bool:
    """Whether prose may stand outside code: no marker, link, tag or open code span in it."""
    return not any(
        _RISKY.search(_SPAN.sub("code", line)) or _CONTROL.search(line) or _PATH.search(line)
        for line in lines
    )


def fenced(text: str, language: str) -> str:
    """Put a text in a fence that it can't close."""
    run = max((len(found) for found in _RUN.findall(text)), default=0)
    fence = "`" * max(_FENCE_LENGTH, run + 1)
    info = language if _LANGUAGE.fullmatch(language) else ""
    return f"{fence}{info}\n{text}\n{fence}"


def code_span(text: str) -> str:
    """Put one line in a code span that it can't close; control characters are shown as U+FFFD."""
    line = _CONTROL.sub("\ufffd", text)
    run = "`" * (max((len(found) for found in _RUN.findall(line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{run}{pad}{line}{pad}{run}"


def place_of(path: str, start_line: int, end_line: int) -> str:
    """Write where lines stand, as a code span."""
    return code_span(f"{path}:{start_line}-{end_line}")


def names_a_path(line: str) -> bool:
    """Whether a line, outside a fence, would pass for naming a path of ours."""
    return bool(_PATH.search(line))
