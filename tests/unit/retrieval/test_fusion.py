import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibid.ports.index import Candidate, Candidates
from ibid.retrieval.fusion import bm25_weight, confidence, fuse, scaled
from tests.unit.retrieval.corpus import candidate


def found(*items: Candidate, top: tuple[float, ...] = (2.0, 1.0)) -> Candidates:
    return Candidates(items=items, top_bm25=top, document_frequency={}, chunk_count=10)


def test_both_scores_are_standardised_over_the_union() -> None:
    items = [candidate(bm25=3.0, cosine=0.1), candidate(bm25=1.0, cosine=0.5)]
    trust = (0.1 + (2 - 1 / 9) / 2) / 0.45

    scores = fuse(found(*items), lexical=False, bm25_weight=0.5)

    assert scores.tolist() == pytest.approx([0.5 * trust - 0.5, 0.5 - 0.5 * trust], abs=1e-6)


def test_bm25_counts_more_where_its_best_stands_out() -> None:
    assert confidence([]) == 0
    assert confidence([0.0]) == 0
    assert confidence([5.0]) == 1
    assert confidence([2.0] * 10) == 0
    assert confidence([4.0, *[1.0] * 9]) == pytest.approx(0.75)
    assert confidence([4.0, 4.0]) == pytest.approx(8 / 9)


def test_the_whole_file_counts_for_every_candidate_once_a_file_has_several_chunks() -> None:
    alone = candidate(bm25=1.0, document_bm25=1.0, file_chunks=1)
    part = candidate(bm25=1.0, document_bm25=2.0, file_chunks=2)

    with_context = fuse(found(alone, part), lexical=True, bm25_weight=1)
    without = fuse(found(alone, part), lexical=True, bm25_weight=1, document_context=False)
    all_alone = fuse(found(alone, alone), lexical=True, bm25_weight=1)

    assert with_context.tolist() == pytest.approx([1.3, 1.6])
    assert without.tolist() == [1.0, 1.0]
    assert all_alone.tolist() == [1.0, 1.0]


def test_without_any_word_in_common_the_cosine_decides() -> None:
    scores = fuse(
        found(candidate(cosine=0.1), candidate(cosine=0.9), top=()), lexical=False, bm25_weight=0.5
    )

    assert scores[1] > scores[0]


def test_nothing_found_gives_no_score() -> None:
    for lexical in (True, False):
        assert fuse(found(), lexical=lexical, bm25_weight=0.5).size == 0
    assert scaled(np.array([])).size == 0


def test_bm25_is_favoured_for_a_language_that_the_model_does_not_know() -> None:
    assert bm25_weight("english", frozenset({"english"})) == 0.5
    assert bm25_weight("other", frozenset({"english"})) == 0.75
    assert bm25_weight("spanish", frozenset()) == 0.5


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_scaled_scores_keep_their_order_and_span_zero_to_one(values: list[float]) -> None:
    scores = scaled(np.array(values))

    assert all(0 <= score <= 1 for score in scores)
    assert max(scores) == 1
    for (one, low), (other, high) in zip(
        zip(values, scores, strict=True), zip(values[1:], scores[1:], strict=True), strict=False
    ):
        assert (one - other) * (low - high) >= 0


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.floats(-1, 1), st.floats(0, 100), st.floats(-1, 1)),
        max_size=20,
    )
)
def test_a_score_is_always_a_number(rows: list[tuple[float, float, float, float]]) -> None:
    items = [
        candidate(bm25=b, cosine=c, document_bm25=db, document_cosine=dc, file_chunks=2)
        for b, c, db, dc in rows
    ]
    top = tuple(sorted((b for b, *_ in rows if b > 0), reverse=True)[:10])

    scores = fuse(found(*items, top=top), lexical=False, bm25_weight=0.75)

    assert len(scores) == len(rows)
    assert all(math.isfinite(score) for score in scores)
