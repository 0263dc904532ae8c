"""Vectors as rows of one matrix: exact cosines by one matrix-vector product."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibid.adapters.sqlite.index_file import ArraySource
from ibid.domain.passages import Vector

Floats32 = npt.NDArray[np.float32]

_PIECE_ROWS = 2_000


class VectorSpool:
    """Vectors in the order they come, on disk; all as wide as the first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb")
        self.width = 0
        self.count = 0

    def add(self, vectors: Sequence[Vector]) -> None:
        """Append some.

        Raises:
            ValueError: One is not as wide as the others, or holds what is no number.
        """
        for vector in vectors:
            self.width = self.width or len(vector)
            if len(vector) != self.width or vector.typecode != "f" or not self.width:
                raise ValueError(f"vectors of {self.width} float32 were begun with")
        rows = np.array(vectors, np.float32)
        if not np.isfinite(rows).all():
            raise ValueError("a vector holds an infinity or no number")
        rows.tofile(self._file)
        self.count += len(vectors)

    def arrays(
        self, order: npt.NDArray[np.int64], first_rows: npt.NDArray[np.int64]
    ) -> Iterator[ArraySource]:
        """Give the rows in another order, and the normalised mean of each file's.

        Args:
            order: For each row of the result, which vector it is.
            first_rows: Of each file, in the result's order; a file's rows are adjacent.
        """
        self._file.close()
        if not self.count:
            return
        spool: Floats32 = np.memmap(self._path, np.float32, "r", shape=(self.count, self.width))
        yield ArraySource(
            "vectors",
            "<f4",
            spool.shape,
            (spool[order[at : at + _PIECE_ROWS]] for at in range(0, len(order), _PIECE_ROWS)),
        )
        ends = np.append(first_rows[1:], len(order))
        yield ArraySource(
            "means",
            "<f4",
            (len(first_rows), self.width),
            (_mean(spool[order[first:end]]) for first, end in zip(first_rows, ends, strict=True)),
        )

    def close(self) -> None:
        """Let go of the file; repeatable."""
        self._file.close()


def _mean(rows: Floats32) -> Floats32:
    mean = rows.mean(axis=0, dtype=np.float64)
    norm = float(np.linalg.norm(mean))
    normalised: Floats32 = (mean / (norm or 1)).astype(np.float32)
    return normalised
