"""Which files of a folder are to be indexed, in a fixed order, and why the others are not."""

import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ibid.indexing.ignores import IgnoreRules, read_rules
from ibid.indexing.skips import MAX_FILE_BYTES, SkipReason, folder_skip, name_skip, odd_name


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A file to read.

    Attributes:
        path: Relative to the walked folder, with `/`.
        size: In bytes, as it was when it was found.
    """

    path: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """What a walk found.

    Attributes:
        files: By path, in code point order.
        skipped: Files and whole folders left out, counted by reason.
    """

    files: list[FoundFile] = field(default_factory=list)
    skipped: Counter[SkipReason] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str
    rules: IgnoreRules


def walk(root: Path, *, max_file_bytes: int = MAX_FILE_BYTES) -> Walked:
    """Walk a folder without following a link out of it, or any link at all.

    Args:
        root: An existing folder; where it lies in a git work tree, the ignore rules above it
            hold as well.
        max_file_bytes: Larger files are left out.
    """
    walked = Walked()
    base, rules = _rules_above(root)
    folders = [_Folder("", rules)]
    while folders:
        folder = folders.pop()
        entries = _entries(root / folder.path)
        if entries is None:
            walked.skipped[SkipReason.UNREADABLE] += 1
            continue
        if folder.path and (reason := _enters(folder.path, entries)):
            walked.skipped[reason] += 1
            continue
        inner = _own_rules(root, base, folder, entries)
        for entry in entries:
            path = f"{folder.path}/{entry.name}" if folder.path else entry.name
            reason = _entry_skip(entry, path, f"{base}{path}", inner, max_file_bytes)
            if entry.name == ".git":
                continue
            if reason is not None:
                walked.skipped[reason] += 1
            elif entry.is_dir(follow_symlinks=False):
                folders.append(_Folder(path, inner))
            else:
                walked.files.append(
                    FoundFile(path=path, size=entry.stat(follow_symlinks=False).st_size)
                )
    walked.files.sort(key=lambda file: file.path)
    return walked


def _entries(folder: Path) -> list[os.DirEntry[str]] | None:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return None


def _enters(path: str, entries: list[os.DirEntry[str]]) -> SkipReason | None:
    names = [entry.name for entry in entries]
    return folder_skip(path.rpartition("/")[2], names)


def _own_rules(
    root: Path, base: str, folder: _Folder, entries: list[os.DirEntry[str]]
) -> IgnoreRules:
    if not any(entry.name == ".gitignore" for entry in entries):
        return folder.rules
    where = f"{base}{folder.path}".rstrip("/")
    return folder.rules.below(where, read_rules(root / folder.path / ".gitignore"))


def _entry_skip(
    entry: os.DirEntry[str], path: str, tree_path: str, rules: IgnoreRules, max_file_bytes: int
) -> SkipReason | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return SkipReason.UNREADABLE
    if odd_name(path):
        return SkipReason.ODD_NAME
    if stat.S_ISLNK(status.st_mode):
        return SkipReason.SYMLINK
    if stat.S_ISDIR(status.st_mode):
        return SkipReason.GITIGNORED if rules.ignores(tree_path, folder=True) else None
    if not stat.S_ISREG(status.st_mode):
        return SkipReason.SPECIAL
    if rules.ignores(tree_path, folder=False):
        return SkipReason.GITIGNORED
    if (reason := name_skip(path)) is not None:
        return reason
    return SkipReason.TOO_LARGE if status.st_size > max_file_bytes else None


def _rules_above(root: Path) -> tuple[str, IgnoreRules]:
    """Return the root's own path in its work tree, empty or ending in `/`, and the rules there."""
    real = root.resolve()
    top = next((folder for folder in (real, *real.parents) if (folder / ".git").exists()), None)
    if top is None:
        return "", IgnoreRules()
    rules = IgnoreRules().below("", read_rules(top / ".git" / "info" / "exclude"))
    base = real.relative_to(top).as_posix() if real != top else ""
    for where in _above(base):
        rules = rules.below(where, read_rules(top / where / ".gitignore"))
    return (f"{base}/" if base else ""), rules


def _above(base: str) -> Iterator[str]:
    """Give the folders from the work tree's top down to the one above `base`."""
    parts = base.split("/") if base else []
    for count in range(len(parts)):
        yield "/".join(parts[:count])
