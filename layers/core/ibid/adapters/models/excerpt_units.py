"""What can be quoted: a run of whole lines of one passage."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal


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
    """

    number: int
    kind: Literal["code", "prose"]
    lines: Sequence[str]
    start_line: int
    language: str = ""
    defines: str = ""
    heading: str = ""

    @property
    def text(self) -> str:
        """The lines as they stand in the file."""
        return "\n".join(self.lines)

    @property
    def end_line(self) -> int:
        """Last line of the file, inclusive."""
        return self.start_line + len(self.lines) - 1

    def window(self, start: int, stop: int) -> "Unit":
        """Part of it by position, without the blank lines at either end."""
        while start < stop - 1 and not self.lines[start].strip():
            start += 1
        while stop - 1 > start and not self.lines[stop - 1].strip():
            stop -= 1
        return replace(
            self,
            lines=self.lines[start:stop],
            start_line=self.start_line + start,
            defines=self.defines if start == 0 else "",
        )
