"""`.gitignore` at every level: the rule nearest to a path decides, the last one of its file."""

from collections.abc import Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec

from ibid.indexing.text import NotText, decode, split_lines

_MAX_BYTES = 1_000_000


class IgnoreRules:
    """The rules in force in one folder: its own and those of the folders above it.

    Args:
        specs: Pairs of a folder, relative to the work tree with `/` (the root's is empty), and
            its rules; the later ones go before the earlier ones.
    """

    def __init__(self, specs: Sequence[tuple[str, GitIgnoreSpec]] = ()) -> None:
        self._specs = specs

    def ignores(self, path: str, *, folder: bool) -> bool:
        """Say if a path of the work tree is ignored; its parents are taken not to be."""
        for base, spec in reversed(self._specs):
            inner = path[len(base) + 1 :] if base else path
            verdict: bool | None = spec.check_file(f"{inner}/" if folder else inner).include
            if verdict is not None:
                return verdict
        return False

    def below(self, folder: str, spec: GitIgnoreSpec | None) -> "IgnoreRules":
        """Return the rules in force in a folder, given those of its own file, if it has one."""
        if spec is None:
            return self
        return IgnoreRules([*self._specs, (folder, spec)])


def read_rules(file: Path) -> GitIgnoreSpec | None:
    """Read one file of rules; None if there is none that can be read."""
    try:
        if file.is_symlink() or not file.is_file():
            return None
        with file.open("rb") as opened:
            lines = split_lines(decode(opened.read(_MAX_BYTES)))
    except (OSError, NotText):
        return None
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:  # one bad pattern: keep the others, as git does
        return GitIgnoreSpec.from_lines([line for line in lines if _is_pattern(line)])


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
