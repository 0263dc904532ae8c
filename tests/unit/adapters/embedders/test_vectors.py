import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters.embedders.retries import TransientFault
from ibid.adapters.embedders.vectors import unit_vectors


@given(row=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=64).filter(any))
def test_every_vector_is_scaled_to_length_one(row: list[float]) -> None:
    (vector,) = unit_vectors([row], count=1, width=None)

    assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    "rows",
    [
        None,
        {"0": [1.0]},
        [],
        [[1.0], [1.0]],
        [[1.0, 2.0]],
        [["1.0"]],
        [[True]],
        ["1"],
        [[0.0]],
        [[]],
        [[math.nan]],
        [[math.inf]],
        [[10**400]],
    ],
)
def test_anything_but_one_vector_of_the_width_is_a_fault(rows: object) -> None:
    with pytest.raises(TransientFault):
        unit_vectors(rows, count=1, width=1)


def test_without_a_width_all_must_share_one() -> None:
    with pytest.raises(TransientFault, match="not all 2 wide"):
        unit_vectors([[1.0, 2.0], [1.0]], count=2, width=None)


def test_no_texts_have_no_vectors() -> None:
    assert unit_vectors([], count=0, width=None) == []
