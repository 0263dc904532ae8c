"""One segment of a `.gitignore` pattern, matched without ever going back, whatever it holds.

What stands between two `*` has a fixed length, so the first place where it fits is as good as any
other. That makes the cost at most the product of both lengths; backtracking can double it with
every `*`. A pattern that wants more characters than a name has is not even compiled.
"""

import re
from collections.abc import Sequence
from functools import cached_property

MAX_NAME_CHARACTERS = 4_096  # no file system takes a longer one
_ANY = "."
_CLASSES = {
    "alnum": ("09", "AZ", "az"),
    "alpha": ("AZ", "az"),
    "blank": ("  ", "\t\t"),
    "cntrl": ("\x00\x1f", "\x7f\x7f"),
    "digit": ("09",),
    "graph": ("!~",),
    "lower": ("az",),
    "print": (" ~",),
    "punct": ("!/", ":@", "[`", "{~"),
    "space": ("  ", "\t\r"),
    "upper": ("AZ",),
    "xdigit": ("09", "AF", "af"),
}


class NotAGlob(ValueError):
    """An open `[`, an unknown class or a last backslash: git lets it match nothing."""


class _Piece:
    """What stands between two `*`: characters, `?` and sets, each of which takes one."""

    def __init__(self, units: Sequence[tuple[str, str | None]]) -> None:
        self.length = len(units)
        self._source = "".join(source for source, _ in units)
        characters = [character for _, character in units if character is not None]
        self.literal = "".join(characters) if len(characters) == len(units) else None

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        return re.compile(self._source, re.DOTALL)

    def is_at(self, name: str, start: int) -> bool:
        if self.literal is not None:
            return name.startswith(self.literal, start)
        return self._expression.match(name, start) is not None

    def find(self, name: str, start: int, end: int) -> int:
        """Return the first place within the part of the name, -1 if there is none."""
        if self.literal is not None:
            return name.find(self.literal, start, end)
        found = self._expression.search(name, start, end)
        return -1 if found is None else found.start()


class Glob:
    r"""The pattern of one name: `*`, `?`, `[set]` and `\` before what is meant as it stands.

    Raises:
        NotAGlob: It can match nothing.
    """

    def __init__(self, text: str) -> None:
        pieces = [_Piece(units) for units in _pieces(text)]
        self._first, self._last = pieces[0], pieces[-1]
        self._inner = [piece for piece in pieces[1:-1] if piece.length]
        self._stars = len(pieces) > 1
        self._literal = None if self._stars else self._first.literal
        self._least = sum(piece.length for piece in pieces)

    def matches(self, name: str) -> bool:
        """Say if a whole name fits; one over `MAX_NAME_CHARACTERS` never does."""
        if self._literal is not None:
            return name == self._literal
        if not self._least <= len(name) <= MAX_NAME_CHARACTERS:
            return False
        if not self._stars:
            return len(name) == self._least and self._first.is_at(name, 0)
        end = len(name) - self._last.length
        if not (self._first.is_at(name, 0) and self._last.is_at(name, end)):
            return False
        at = self._first.length
        for piece in self._inner:
            at = piece.find(name, at, end)
            if at < 0:
                return False
            at += piece.length
        return True


def _pieces(text: str) -> list[list[tuple[str, str | None]]]:
    """Cut at each `*`; every unit is an expression and, if it is just a character, that."""
    pieces: list[list[tuple[str, str | None]]] = [[]]
    at = 0
    while at < len(text):
        sign = text[at]
        at += 1
        if sign == "*":
            pieces.append([])
        elif sign == "?":
            pieces[-1].append((_ANY, None))
        elif sign == "[":
            source, at = _set(text, at)
            pieces[-1].append((source, None))
        else:
            if sign == "\\":
                sign = _character(text, at)
                at += 1
            pieces[-1].append((re.escape(sign), sign))
    return pieces


def _set(text: str, at: int) -> tuple[str, int]:
    """Read a set from behind its `[`, as git does; return its expression and where it ends."""
    negated = text[at : at + 1] in {"!", "^"}
    at += negated
    begin, members = at, ""
    low: str | None = None  # what a `-` would begin at
    while at == begin or _character(text, at) != "]":
        sign = _character(text, at)
        if sign == "[" and text[at + 1 : at + 2] == ":":
            name, at = _class_name(text, at)
            members += "".join(_run(run[0], run[1]) for run in _CLASSES[name])
            low = None
        elif sign == "-" and low is not None and text[at + 1 : at + 2] not in {"", "]"}:
            high, at = _member(text, at + 1)
            if low <= high:
                members += _run(low, high)
            low = None
        else:
            low, at = _member(text, at)
            members += re.escape(low)
    return f"[{'^' if negated else ''}{members}]", at + 1


def _run(low: str, high: str) -> str:
    return f"{re.escape(low)}-{re.escape(high)}"


def _member(text: str, at: int) -> tuple[str, int]:
    if text[at] == "\\":
        at += 1
    return _character(text, at), at + 1


def _class_name(text: str, at: int) -> tuple[str, int]:
    end = text.find("]", at + 2)
    name = text[at + 2 : end - 1]
    if end < 0 or text[end - 1] != ":" or name not in _CLASSES:
        raise NotAGlob("no such class")
    return name, end + 1


def _character(text: str, at: int) -> str:
    if at >= len(text):
        raise NotAGlob("it breaks off")
    return text[at]
