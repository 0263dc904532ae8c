"""The one place that writes files which a stranger named: nothing leaves its folder."""

import unicodedata
from collections import Counter
from pathlib import Path
from typing import BinaryIO

from ibid.domain.errors import SourceRejected
from ibid.indexing.skips import MAX_FILE_BYTES, SkipReason, odd_name

MAX_TOTAL_BYTES = 500_000_000
MAX_ENTRIES = 100_000
MAX_DEPTH = 100
MAX_RATIO = 200
RATIO_FROM = 20_000_000
_PIECE = 1 << 16
_MAX_SHOWN = 120


class TreeWriter:
    """Writes regular files below a folder, and counts what it leaves out.

    Args:
        root: An empty folder.
        what: Names the source in messages, such as `archive`.
        max_total_bytes: Of all files together, as they are unpacked.
        max_entries: Of everything in it.
        folds_case: Refuse names that differ by case or Unicode form only: they are one file on
            some systems.
        packed_bytes: Its size as it came; what unpacks to more than 200 times that, and more
            than 20 MB, is a bomb. 0 means that it is not known.
    """

    def __init__(
        self,
        root: Path,
        *,
        what: str,
        max_total_bytes: int = MAX_TOTAL_BYTES,
        max_entries: int = MAX_ENTRIES,
        folds_case: bool = True,
        packed_bytes: int = 0,
    ) -> None:
        self.root = root
        self.skipped: Counter[SkipReason] = Counter()
        self.total_bytes = 0
        self._what = what
        self._max_total_bytes = max_total_bytes
        self._left = max_entries
        self._folds_case = folds_case
        self._bomb_bytes = max(RATIO_FROM, MAX_RATIO * packed_bytes) if packed_bytes else 0
        self._tops: set[str] = set()
        self._files: set[str] = set()
        self._folders: dict[str, str] = {"": ""}

    def parts_of(self, name: str) -> list[str]:
        """Return a name's segments; none for the root itself.

        Raises:
            SourceRejected: It is absolute, or climbs.
        """
        plain = name.replace("\\", "/")
        parts = [part for part in plain.split("/") if part not in {"", "."}]
        if plain.startswith("/") or (parts and len(parts[0]) == 2 and parts[0][1] == ":"):  # noqa: PLR2004 - a drive letter
            raise self.rejected("an absolute path", name)
        if ".." in parts:
            raise self.rejected("a path that leaves its folder", name)
        if len(parts) > MAX_DEPTH:
            raise self.rejected("a path that is too deep", name)
        return parts

    def rejected(self, why: str, name: str = "") -> SourceRejected:
        """Make the error that names an entry, in a form safe to show."""
        shown = f": {name[:_MAX_SHOWN]!a}" if name else ""
        return SourceRejected(f"The {self._what} has {why}{shown}")

    def count_entry(self) -> None:
        """Count an entry of any kind.

        Raises:
            SourceRejected: There are too many.
        """
        self._left -= 1
        if self._left < 0:
            raise self.rejected("too many entries")

    def count_bytes(self, count: int) -> None:
        """Count unpacked bytes, kept or not.

        Raises:
            SourceRejected: There are too many: a bomb, or simply too large.
        """
        self.total_bytes += count
        if self.total_bytes > self._max_total_bytes:
            raise self.rejected(f"more than {self._max_total_bytes:,} bytes once unpacked")
        if self._bomb_bytes and self.total_bytes > self._bomb_bytes:
            raise self.rejected(f"content packed more than {MAX_RATIO} to 1, as a bomb is")

    @property
    def top(self) -> Path:
        """The one folder that holds every file, or the root where there is no such folder."""
        if len(self._tops) == 1:
            only = self.root.joinpath(*self._tops)
            if only.is_dir():
                return only
        return self.root

    def write(self, name: str, content: BinaryIO) -> None:
        """Write one regular file; over 1 MB it is read but not kept.

        The bytes are counted by whoever unpacks them.

        Raises:
            SourceRejected: Its name is absolute, climbs, or collides with an earlier one.
        """
        parts = self.parts_of(name)
        if not parts:
            raise self.rejected("a file without a name", name)
        kept = self._claim(parts, name)
        data = bytearray()
        while piece := content.read(_PIECE):
            if len(data) <= MAX_FILE_BYTES:
                data += piece
        if not kept:
            return
        if len(data) > MAX_FILE_BYTES:
            self.skipped[SkipReason.TOO_LARGE] += 1
            return
        self._keep(parts, bytes(data))

    def _claim(self, parts: list[str], name: str) -> bool:
        """Take a path; False if the file is one that is never written."""
        folded = [self._fold(part) for part in parts]
        for depth in range(1, len(parts)):
            where, spelt = "/".join(folded[:depth]), "/".join(parts[:depth])
            if where in self._files or self._folders.setdefault(where, spelt) != spelt:
                raise self.rejected("two entries in one place", name)
        where = "/".join(folded)
        if where in self._files or where in self._folders:
            raise self.rejected("two entries in one place", name)
        self._files.add(where)
        self._tops.add(parts[0])
        if ".git" in {part.casefold() for part in parts}:
            return False
        if odd_name("/".join(parts)):
            self.skipped[SkipReason.ODD_NAME] += 1
            return False
        return True

    def _fold(self, part: str) -> str:
        return unicodedata.normalize("NFC", part).casefold() if self._folds_case else part

    def _keep(self, parts: list[str], data: bytes) -> None:
        target = self.root.joinpath(*parts)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as opened:
                opened.write(data)
        except OSError:  # a name longer than the system takes
            self.skipped[SkipReason.ODD_NAME] += 1
