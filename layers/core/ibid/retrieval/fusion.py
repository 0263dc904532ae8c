"""One score out of BM25 and cosine: steps 5 and 6 of the measured recipe.

Both scores of every candidate are standardised over the union of both lists. BM25 counts more
where its best hit stands out from the next nine, and where the question is in a language that the
embedding model does not know. A chunk is also judged by its whole file.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ibid.ports.index import Candidates

Scores = NDArray[np.float64]

DOCUMENT_WEIGHT: Final = 0.3
"""Weight of the whole file's score beside its chunk's."""
BM25_WEIGHT: Final = 0.5
"""Share of BM25 where the embedding model knows the question's language."""
BM25_WEIGHT_FOREIGN: Final = 0.75
"""Its share where the model does not."""

_CONFIDENCE_OFFSET: Final = 0.1
_USUAL_CONFIDENCE: Final = 0.45  # the offset and a usual gap: there, BM25 has just its share
_BEST: Final = 10
_TINY: Final = 1e-9


def fuse(
    found: Candidates, *, lexical: bool, bm25_weight: float, document_context: bool = True
) -> Scores:
    """Score every candidate; scores compare within one search only.

    Args:
        found: What the index gave; may be empty.
        lexical: Nothing was embedded, so BM25 alone decides.
        bm25_weight: Share of BM25, 0 to 1, before its confidence is known.
        document_context: Judge a chunk by its whole file as well.

    Returns:
        A score for each of `found.items`, in their order, any sign, higher is better.
    """
    items = found.items
    count = len(items)
    bm25 = np.fromiter((item.bm25 for item in items), np.float64, count)
    cosine = np.fromiter((item.cosine for item in items), np.float64, count)
    if document_context and any(item.file_chunks > 1 for item in items):
        # of every file, one-chunk ones too: else they would lose against parts of longer ones
        of_file = np.fromiter((item.document_bm25 for item in items), np.float64, count)
        bm25 = bm25 + DOCUMENT_WEIGHT * of_file
        of_file = np.fromiter((item.document_cosine for item in items), np.float64, count)
        cosine = cosine + DOCUMENT_WEIGHT * of_file
    if lexical:
        return bm25
    trust = (_CONFIDENCE_OFFSET + confidence(found.top_bm25)) / _USUAL_CONFIDENCE
    return bm25_weight * trust * _standardised(bm25) + (1 - bm25_weight) * _standardised(cosine)


def confidence(top_bm25: Sequence[float]) -> float:
    """Tell how far BM25's best score stands out from the mean of the next nine, 0 to 1.

    Args:
        top_bm25: The best scores of the search, best first; those missing of ten count as 0.
    """
    if not top_bm25 or top_bm25[0] <= 0:
        return 0.0
    best, *others = top_bm25[:_BEST]
    return (best - sum(others) / (_BEST - 1)) / best


def scaled(scores: Scores) -> Scores:
    """Scale to 0..1, worst to best; all 1 where none is better than another."""
    if not scores.size:
        return scores
    low, high = float(scores.min()), float(scores.max())
    if high - low < _TINY:
        return np.ones_like(scores)
    scaled_scores: Scores = (scores - low) / (high - low)
    return scaled_scores


def bm25_weight(language: str, known: frozenset[str]) -> float:
    """Choose BM25's share for a question's language and a model's languages (empty: many)."""
    return BM25_WEIGHT if not known or language in known else BM25_WEIGHT_FOREIGN


def _standardised(values: Scores) -> Scores:
    result: Scores = (values - values.mean()) / (values.std() + _TINY) if values.size else values
    return result
