import math

import pytest

from tests.bench.metrics import hit, ndcg, recall, reciprocal_rank


def test_the_ideal_order_has_gain_one() -> None:
    assert ndcg(["a", "b", "x"], {"a": 2, "b": 1}) == 1
    assert ndcg(["x", "a"], {"a": 1}) == pytest.approx(1 / math.log2(3))
    assert ndcg(["x", "a"], {"a": 1}, depth=1) == 0


def test_recall_is_the_share_found() -> None:
    assert recall(["a", "x", "b"], {"a", "b"}, depth=2) == 0.5


def test_hits_and_ranks_count_the_first_relevant() -> None:
    assert (hit(["x", "a"], {"a"}, depth=1), hit(["x", "a"], {"a"}, depth=2)) == (0, 1)
    assert reciprocal_rank(["x", "a", "b"], {"a", "b"}) == 0.5
    assert reciprocal_rank(["x"], {"a"}) == 0
