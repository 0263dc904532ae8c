import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters.sqlite.index_ranking import best, best_positive

SCORES = st.lists(st.integers(-3, 3).map(float), max_size=30)


@given(scores=SCORES, count=st.integers(1, 35))
def test_the_best_come_first_and_equals_in_their_order(scores: list[float], count: int) -> None:
    order = sorted(range(len(scores)), key=lambda row: (-scores[row], row))

    assert best(np.array(scores), count).tolist() == order[:count]


@given(scores=SCORES, count=st.integers(1, 35))
def test_the_best_positive_leave_out_the_others(scores: list[float], count: int) -> None:
    order = sorted(
        (row for row in range(len(scores)) if scores[row] > 0),
        key=lambda row: (-scores[row], row),
    )

    assert best_positive(np.array(scores), count).tolist() == order[:count]
