"""Which rows hold which term how often, for any number of rows in bounded memory.

A term is a 64-bit key: a word's number in the upper half, and in the lower half 0 or, for a pair of
adjacent words, the second word's number. So pairs, by far the most terms, cost no text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int32]

_RUN_POSTINGS: Final = 400_000  # 24 bytes each while they are sorted
_MERGE_POSTINGS: Final = 1_000_000
_SAMPLE: Final = 1024  # every so manieth key of a run is a sample of where to cut the merge


def word_key(number: int) -> int:
    """Give the key of a single word; numbers start at 1."""
    return number << 32


def pair_key(first: int, second: int) -> int:
    """Give the key of two adjacent words; numbers start at 1."""
    return word_key(first) | second


def word_keys(numbers: npt.NDArray[np.uint32]) -> Keys:
    """Give the key of each single word."""
    return numbers.astype(np.uint64) << np.uint64(32)


def pair_keys(numbers: npt.NDArray[np.uint32]) -> Keys:
    """Give the key of each two adjacent words."""
    return word_keys(numbers[:-1]) | numbers[1:].astype(np.uint64)


@dataclass(frozen=True, slots=True)
class Batch:
    """A run of whole terms, keys rising.

    Attributes:
        keys: Each once.
        frequencies: Rows that hold the key, for each.
        rows: Of all the keys, one key's after the other's, rising within a key.
        counts: How often the row holds the key; as long as `rows`.
    """

    keys: Keys
    frequencies: npt.NDArray[np.int64]
    rows: Rows
    counts: Rows


@dataclass(frozen=True, slots=True)
class _Run:
    """What was sorted at once, on disk: by key, then by row."""

    keys: Keys
    rows: Rows
    counts: Rows

    def between(self, start: int | None, end: int | None) -> slice:
        low = 0 if start is None else int(np.searchsorted(self.keys, np.uint64(start)))
        high = len(self.keys) if end is None else int(np.searchsorted(self.keys, np.uint64(end)))
        return slice(low, high)


class Postings:
    """Takes occurrences row by row, and gives them back term by term."""

    def __init__(self, folder: Path, name: str, *, run_postings: int = _RUN_POSTINGS) -> None:
        self._folder = folder
        self._name = name
        self._run_postings = run_postings
        self._runs: list[_Run] = []
        self._waiting: list[tuple[int, Keys]] = []
        self._waiting_postings = 0

    def add(self, row: int, keys: Keys) -> None:
        """Add all the occurrences of one row; rows come once each, rising."""
        self._waiting.append((row, keys))
        self._waiting_postings += len(keys)
        if self._waiting_postings >= self._run_postings:
            self._spill()

    def batches(self, *, postings: int = _MERGE_POSTINGS) -> Iterator[Batch]:
        """Give all terms, some `postings` at a time; nothing may be added after it."""
        self._spill()
        for start, end in pairwise([None, *self._cuts(postings), None]):
            parts = [(run, run.between(start, end)) for run in self._runs]
            if not parts:
                return
            keys = np.concatenate([run.keys[part] for run, part in parts])
            # Runs hold rising rows, so a stable sort by key alone leaves each key's rows rising
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
            starts = np.flatnonzero(_differs(keys))
            yield Batch(
                keys[starts],
                np.diff(starts, append=len(keys)),
                np.concatenate([run.rows[part] for run, part in parts])[order],
                np.concatenate([run.counts[part] for run, part in parts])[order],
            )

    def _cuts(self, postings: int) -> Sequence[int]:
        """Choose keys that part all postings evenly; one key's are never parted."""
        if sum(len(run.keys) for run in self._runs) <= postings:
            return []
        sample = np.sort(np.concatenate([run.keys[::_SAMPLE] for run in self._runs]))
        return [int(key) for key in np.unique(sample[:: max(1, postings // _SAMPLE)][1:])]

    def _spill(self) -> None:
        if not self._waiting:
            return
        keys = np.concatenate([keys for _, keys in self._waiting])
        rows = np.repeat(
            np.array([row for row, _ in self._waiting], np.int32),
            [len(keys) for _, keys in self._waiting],
        )
        self._waiting.clear()
        self._waiting_postings = 0
        order = np.argsort(keys, kind="stable")
        keys, rows = keys[order], rows[order]
        starts = np.flatnonzero(_differs(keys) | _differs(rows))
        if not len(starts):
            return
        path = self._folder / f"{self._name}.{len(self._runs)}.run"
        with path.open("wb") as file:
            keys[starts].tofile(file)
            rows[starts].tofile(file)
            np.diff(starts, append=len(keys)).astype(np.int32).tofile(file)
        n = len(starts)
        self._runs.append(
            _Run(
                np.memmap(path, np.uint64, "r", 0, n),
                np.memmap(path, np.int32, "r", 8 * n, n),
                np.memmap(path, np.int32, "r", 12 * n, n),
            )
        )


def _differs(values: npt.NDArray[np.generic]) -> npt.NDArray[np.bool_]:
    """Mark each value that is not the one before it; the first is marked."""
    marks = np.ones(len(values), bool)
    marks[1:] = values[1:] != values[:-1]
    return marks
