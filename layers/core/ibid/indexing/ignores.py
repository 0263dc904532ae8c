"""`.gitignore` at every level: the rule nearest to a path decides, the last one of its file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ibid.indexing.globs import Glob, NotAGlob
from ibid.indexing.text import NotText, decode, split_lines

MAX_PATTERNS = 10_000
_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnorePattern:
    """One line of a `.gitignore`.

    Attributes:
        ignores: False where the line begins with `!`.
        folders_only: It ends in `/`.
        anchored: It is held to a path from its own folder on, not to a name at any depth.
        segments: None stands for `**` (or more stars), of which no two are neighbours.
    """

    ignores: bool
    folders_only: bool
    anchored: bool
    segments: Sequence[Glob | None]

    def matches(self, names: Sequence[str], *, folder: bool) -> bool:
        """Say if a path fits, given as its names; nothing is said of what lies below it."""
        if self.folders_only and not folder:
            return False
        if not self.anchored:
            only = self.segments[0]
            return only is None or only.matches(names[-1])
        ends = {0}  # how many names what was read of the pattern may have taken
        for segment in self.segments:
            if segment is None:
                ends = set(range(min(ends), len(names) + 1))
            else:
                ends = {end + 1 for end in ends if end < len(names) and segment.matches(names[end])}
            if not ends:
                return False
        # a last `**` takes at least one name
        return len(names) in ends and (self.segments[-1] is not None or len(ends) > 1)


class IgnoreRules:
    """The rules in force in one folder: its own and those of the folders above it.

    Args:
        files: Pairs of a folder, relative to the work tree with `/` (the root's is empty), and
            its patterns; the later ones go before the earlier ones.
    """

    def __init__(self, files: Sequence[tuple[str, Sequence[IgnorePattern]]] = ()) -> None:
        self._files = files

    def ignores(self, path: str, *, folder: bool) -> bool:
        """Say if a path of the work tree is ignored; its parents are taken not to be."""
        for base, patterns in reversed(self._files):
            names = (path[len(base) + 1 :] if base else path).split("/")
            for pattern in reversed(patterns):
                if pattern.matches(names, folder=folder):
                    return pattern.ignores
        return False

    def below(self, folder: str, patterns: Sequence[IgnorePattern] | None) -> "IgnoreRules":
        """Return the rules in force in a folder, given those of its own file, if it has one."""
        if patterns is None:
            return self
        return IgnoreRules([*self._files, (folder, patterns)])


def read_rules(file: Path) -> Sequence[IgnorePattern] | None:
    """Read one file of rules; None if there is none that can be read."""
    try:
        if file.is_symlink() or not file.is_file():
            return None
        with file.open("rb") as opened:
            lines = split_lines(decode(opened.read(_MAX_BYTES)))
    except (OSError, NotText):
        return None
    return patterns_of(lines)


def patterns_of(lines: Iterable[str]) -> Sequence[IgnorePattern]:
    """Read lines, without their ends; one that git can't use costs only itself.

    The first `MAX_PATTERNS` patterns hold and no others, since each is held to each path.
    """
    patterns = (pattern for line in lines if (pattern := _pattern(line)) is not None)
    return list(islice(patterns, MAX_PATTERNS))


def _pattern(line: str) -> IgnorePattern | None:
    text = _without_last_spaces(line)
    if text.startswith("#"):
        return None
    ignores = not text.startswith("!")
    text = text if ignores else text[1:]
    folders_only = text.endswith("/")
    text = text[:-1] if folders_only else text
    anchored = "/" in text
    text = text.removeprefix("/")
    if not text:
        return None
    segments: list[Glob | None] = []
    try:
        for segment in text.split("/"):
            if not segment.startswith("**") or segment.strip("*"):
                segments.append(Glob(segment))
            elif not segments or segments[-1] is not None:
                segments.append(None)
    except NotAGlob:
        return None
    return IgnorePattern(
        ignores=ignores, folders_only=folders_only, anchored=anchored, segments=segments
    )


def _without_last_spaces(line: str) -> str:
    """Cut the spaces at the end, but one that a backslash stands before."""
    text = line.rstrip(" ")
    backslashes = len(text) - len(text.rstrip("\\"))
    return text + " " if backslashes % 2 and len(text) < len(line) else text
