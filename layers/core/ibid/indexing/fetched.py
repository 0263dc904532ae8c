"""What a source becomes once it is on disk."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ibid.indexing.commits import Head
from ibid.indexing.skips import SkipReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A folder to index.

    Attributes:
        root: It; gone when the source is closed, unless it is the person's own folder.
        head: The commit that it was taken from, if there is one.
        skipped: What was never written there, by reason, such as a repository's links.
    """

    root: Path
    head: Head | None = None
    skipped: Mapping[SkipReason, int] = field(default_factory=dict)
