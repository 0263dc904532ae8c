"""Measures of one ranking, which the caller averages over queries, and of many times."""

import math
from collections.abc import Collection, Mapping, Sequence


def ndcg(ranked: Sequence[str], relevant: Mapping[str, int], *, depth: int = 10) -> float:
    """Discounted gain of the first `depth` over that of the best order: 0 to 1, 1 is best.

    Args:
        ranked: Ids, best first, none twice.
        relevant: Positive gain by id, at least one.
        depth: At least 1.
    """
    gains = [relevant.get(each, 0) for each in ranked[:depth]]
    ideal = sorted(relevant.values(), reverse=True)[:depth]
    return _discounted(gains) / _discounted(ideal)


def recall(ranked: Sequence[str], relevant: Collection[str], *, depth: int = 10) -> float:
    """Share of the relevant ids among the first `depth`."""
    return len(set(ranked[:depth]) & set(relevant)) / len(relevant)


def hit(ranked: Sequence[str], relevant: Collection[str], *, depth: int) -> float:
    """Give 1 if any of the first `depth` is relevant, else 0."""
    return float(any(each in relevant for each in ranked[:depth]))


def reciprocal_rank(ranked: Sequence[str], relevant: Collection[str]) -> float:
    """Give one over the place of the first relevant id, 0 if there is none."""
    return next((1 / at for at, each in enumerate(ranked, start=1) if each in relevant), 0.0)


def _discounted(gains: Sequence[int]) -> float:
    return math.fsum(gain / math.log2(at + 2) for at, gain in enumerate(gains))


def quantiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, the 95th percentile and the greatest."""
    ordered = sorted(values)
    return (
        ordered[len(ordered) // 2],
        ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))],
        ordered[-1],
    )
