"""A cursor serves its own list; whatever else comes as one is refused."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters.records import cursors
from ibid.domain.errors import ValidationFailed

SCOPE = ("projects", "acme", "ann")
NUMBER = st.integers(-(2**63) + 1, 2**63 - 1)


@given(NUMBER, st.text(st.characters(codec="utf-8"), max_size=128))
def test_a_position_comes_back(number: int, text: str) -> None:
    cursor = cursors.encode(number, text, scope=SCOPE)

    assert cursors.decode(cursor, int, str, scope=SCOPE) == [number, text]
    assert cursor.isascii()
    assert "=" not in cursor


@given(st.text())
def test_anything_else_is_refused(cursor: str) -> None:
    with pytest.raises(ValidationFailed):
        cursors.decode(cursor, int, str, scope=SCOPE)


def _forged(*position: object) -> str:
    good = cursors.encode(1, scope=SCOPE)
    digest = json.loads(base64.urlsafe_b64decode(good + "=" * (-len(good) % 4)))[0]
    text = json.dumps([digest, *position])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "position",
    [
        [],
        [1],
        ["1", "a"],
        [1, 2],
        [True, "a"],
        [1.0, "a"],
        [None, "a"],
        [[], "a"],
        [1, "a", "b"],
        [2**63, "a"],
        [1, "\ud800"],
        [1, "a" * 2_000],
    ],
)
def test_a_forged_position_is_refused(position: list[object]) -> None:
    with pytest.raises(ValidationFailed):
        cursors.decode(_forged(*position), int, str, scope=SCOPE)


@pytest.mark.parametrize(
    "scope",
    [
        ("projects", "acme", "bob"),
        ("projects", "acm", "eann"),
        ("projects", 'acme", "ann'),
        ("jobs", "acme", "ann"),
        ("projects", "acme"),
    ],
)
def test_a_cursor_of_another_scope_is_refused(scope: tuple[str, ...]) -> None:
    cursor = cursors.encode(1, "a", scope=SCOPE)

    with pytest.raises(ValidationFailed):
        cursors.decode(cursor, int, str, scope=scope)
