"""Lucene's BM25, weighed once when the index is built, so that a search only adds.

    idf * tf / (tf + k1 * (1 - b + b * length / mean length))
    idf = ln(1 + (N - df + .5) / (df + .5))

Header and text are summed into one term frequency; pairs of adjacent words are terms as well, but
lengths count single words alone (Robertson and Zaragoza 2009, Lucene's variant; the pairs are
ours, measured). Each posting keeps its whole product in float32, which is what FTS5's `bm25()`
can't be told: its idf and its lengths are its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ibid.adapters.sqlite.index_file import Array, ArraySource
from ibid.adapters.sqlite.index_postings import Postings

K1: Final = 1.2
B: Final = 0.75

_PIECE: Final = 1 << 18

Floats = npt.NDArray[np.float64]


def weighed(
    postings: Postings, lengths: Sequence[int] | npt.NDArray[np.int64], folder: Path, name: str
) -> Iterator[ArraySource]:
    """Weigh all postings, and give the four arrays that `Bm25` reads.

    Args:
        postings: Of rows below the number of lengths.
        lengths: Single words by row.
        folder: Where they wait on disk until they are read; the caller removes it.
        name: Begins the arrays' names.
    """
    length = np.asarray(lengths, np.float64)
    norm = K1 * (1 - B + B * length / max(length.mean(), 1e-9)) if len(length) else length
    terms = total = 0
    paths = {part: folder / f"{name}.{part}" for part in ("keys", "ends", "rows", "weights")}
    files = {part: path.open("wb") for part, path in paths.items()}
    try:
        for batch in postings.batches():
            df = batch.frequencies
            idf = np.log1p((len(length) - df + 0.5) / (df + 0.5))
            weights = np.repeat(idf, df) * batch.counts / (batch.counts + norm[batch.rows])
            batch.keys.astype("<u8").tofile(files["keys"])
            (total + np.cumsum(df)).astype("<u4").tofile(files["ends"])
            batch.rows.astype("<i4").tofile(files["rows"])
            weights.astype("<f4").tofile(files["weights"])
            terms += len(batch.keys)
            total += len(batch.rows)
    finally:
        for file in files.values():
            file.close()
    for part, dtype, size in (
        ("keys", "<u8", terms),
        ("ends", "<u4", terms),
        ("rows", "<i4", total),
        ("weights", "<f4", total),
    ):
        yield ArraySource(f"{name}.{part}", dtype, (size,), _pieces(paths[part], dtype))


def _pieces(path: Path, dtype: str) -> Iterator[Array]:
    with path.open("rb") as file:
        while len(piece := np.fromfile(file, dtype, _PIECE)):
            yield piece


@dataclass(frozen=True, slots=True)
class Bm25:
    """The weighed postings of some rows.

    Attributes:
        keys: Every term's, rising.
        ends: Where its postings end; they begin where the term's before it end.
        rows: Rows that hold the term, rising within a term.
        weights: The row's score for the term, for each of `rows`.
        size: Number of rows.
    """

    keys: npt.NDArray[np.uint64]
    ends: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]
    size: int

    @classmethod
    def read(cls, arrays: Mapping[str, npt.NDArray[Any]], name: str, size: int) -> "Bm25":
        """Take the arrays that `weighed` gave."""
        keys, ends, rows, weights = (
            arrays[f"{name}.{part}"] for part in ("keys", "ends", "rows", "weights")
        )
        return cls(keys, ends, rows, weights, size)

    def frequency(self, key: int) -> int:
        """Count the rows that hold a term."""
        (span,) = self._spans([key])
        return int(span.stop) - int(span.start)

    def scores(self, terms: Mapping[int, float]) -> Floats:
        """Score every row by weight of term key; 0 where none matches."""
        scores = np.zeros(self.size)
        for span, weight in zip(self._spans([*terms]), terms.values(), strict=True):
            scores[self.rows[span]] += weight * self.weights[span]
        return scores

    def _spans(self, keys: Sequence[int]) -> Iterator[slice]:
        found = np.searchsorted(self.keys, np.array(keys, np.uint64))
        for key, at in zip(keys, found.tolist(), strict=True):
            if at < len(self.keys) and int(self.keys[at]) == key:
                yield slice(int(self.ends[at - 1]) if at else 0, int(self.ends[at]))
            else:
                yield slice(0, 0)
