"""What can be quoted: a run of whole lines of one passage, some left out if it is long."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

ELLIPSIS: Final = "..."
"""The line that stands for lines left out; whoever checks quotations passes over it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A run of whole lines of one passage that says one thing.

    Attributes:
        number: The passage's, from 1.
        lines: As in the passage, none of them added or changed.
        start_line: Of the file, from 1.
        language: Of a code unit's lines, empty if unknown.
        defines: The name that the lines begin to define, or empty.
        heading: Titles above a paragraph, of the same passage.
        head: How many of the first lines are kept however it is cut: a table's header.
        gap: After how many lines others are left out, and how many those are.
        goes_on: More lines of the same thing follow.
        may_go_on: Whether they do can't be told from the passage.
    """

    number: int
    kind: Literal["code", "prose"]
    lines: Sequence[str]
    start_line: int
    language: str = ""
    defines: str = ""
    heading: str = ""
    head: int = 0
    gap: tuple[int, int] = (0, 0)
    goes_on: bool = False
    may_go_on: bool = False

    @property
    def text(self) -> str:
        """The lines as they stand in the file."""
        return "\n".join(self.lines)

    @property
    def end_line(self) -> int:
        """Last line of the file, inclusive."""
        return self.start_line + len(self.lines) + self.gap[1] - 1

    @property
    def shown(self) -> Sequence[str]:
        """The lines, with an ellipsis for those that are left out and those that follow."""
        lines = list(self.lines)
        if self.goes_on:
            lines.append(_like(lines[-1]))
        after, left_out = self.gap
        if left_out:
            lines.insert(after, _like(lines[after]))
        return lines

    def number_of(self, position: int) -> int:
        """The number in the file of one of the lines, by its position."""
        after, left_out = self.gap
        return self.start_line + position + (left_out if position >= after else 0)

    def window(self, start: int, stop: int) -> "Unit":
        """Part of it by position, without the blank lines at either end."""
        start, stop = self._trimmed(start, stop)
        return replace(
            self,
            lines=self.lines[start:stop],
            start_line=self.start_line + start,
            defines=self.defines if start == 0 else "",
            head=self.head if start == 0 else 0,
        )

    def cut(self, head: int, start: int, stop: int) -> "Unit":
        """Keep the first lines up to `head` and a window after them; tell what is left out."""
        start, stop = self._trimmed(max(head, start), stop)
        goes_on = self.goes_on or any(line.strip() for line in self.lines[stop:])
        if head in {0, start}:
            return replace(self.window(0 if head else start, stop), goes_on=goes_on)
        first = replace(self.window(0, head), goes_on=goes_on)
        between = start - len(first.lines)
        blank = not any(line.strip() for line in self.lines[len(first.lines) : start])
        if blank:
            return replace(self.window(0, stop), goes_on=goes_on)
        return replace(
            first,
            lines=[*first.lines, *self.lines[start:stop]],
            gap=(len(first.lines), between),
        )

    def _trimmed(self, start: int, stop: int) -> tuple[int, int]:
        while start < stop - 1 and not self.lines[start].strip():
            start += 1
        while stop - 1 > start and not self.lines[stop - 1].strip():
            stop -= 1
        return start, stop


def _like(line: str) -> str:
    """An ellipsis as far in as a line."""
    return line[: len(line) - len(line.lstrip())] + ELLIPSIS
