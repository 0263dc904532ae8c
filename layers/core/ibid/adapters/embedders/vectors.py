"""Unit vectors from what a provider sent, however odd. Needs no numpy: functions carry none."""

import math
from array import array

from ibid.adapters.embedders.retries import TransientFault
from ibid.domain.passages import Vector


def unit_vectors(rows: object, *, count: int, width: int | None) -> list[Vector]:
    """Check a reply's rows and scale each to length one.

    Args:
        rows: What stands in the reply where a list of lists of numbers is due.
        count: How many rows there must be.
        width: How wide each must be; None takes any width that all share.

    Raises:
        TransientFault: It is anything else, or a row has no direction.
    """
    if not isinstance(rows, list) or len(rows) != count:
        raise TransientFault("the reply has another number of vectors than texts were sent")
    vectors = [_unit(row) for row in rows]
    expected = len(vectors[0]) if width is None and vectors else width
    if any(len(vector) != expected for vector in vectors):
        raise TransientFault(f"the reply's vectors are not all {expected} wide")
    return vectors


def _unit(row: object) -> Vector:
    if not isinstance(row, list) or not all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in row
    ):
        raise TransientFault("the reply holds something that is no vector")
    try:
        norm = math.hypot(*row)
    except OverflowError:  # an integer beyond every float
        norm = math.inf
    if not math.isfinite(norm) or norm == 0.0:
        raise TransientFault("the reply holds a vector without a direction")
    return array("f", (value / norm for value in row))
