"""The best rows of a score array."""

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]


def best(scores: npt.NDArray[np.floating], count: int) -> Rows:
    """Pick the rows of the `count` highest scores, best first; of equals, the lowest rows."""
    if count < len(scores):
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        above = np.flatnonzero(scores > least)
        equal = np.flatnonzero(scores == least)[: count - len(above)]
        rows = np.sort(np.concatenate([above, equal]))
    else:
        rows = np.arange(len(scores))
    return rows[np.argsort(-scores[rows], kind="stable")]


def best_positive(scores: npt.NDArray[np.floating], count: int) -> Rows:
    """Pick as `best` does, among scores above 0."""
    rows = np.flatnonzero(scores > 0)
    return rows[best(scores[rows], count)]
