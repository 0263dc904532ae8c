"""Which requests are the same one, and that a kept answer is read by nobody else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.domain.errors import ValidationFailed
from ibid.web.idempotency_keys import Likeness, checked_key


def likeness(body: bytes, *, key: str = "k", query: bytes = b"") -> Likeness:
    return Likeness(key=key, query=query, body=body)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a": 1, "b": "x"}', b'{"b":"x","a":1}'),
        (b'{"a": "\\u00e9"}', '{"a": "é"}'.encode()),
        (b"", b""),
        (b"no json", b"no json"),
    ],
)
def test_json_is_compared_as_json(one: bytes, other: bytes) -> None:
    assert likeness(one).fingerprint == likeness(other).fingerprint


@pytest.mark.parametrize(
    "other",
    [
        likeness(b'{"a": 2}'),
        likeness(b'{"a": "1"}'),
        likeness(b'{"a": 1, "b": null}'),
        likeness(b""),
        likeness(b'{"a": 1}', query=b"x=1"),
        likeness(b'{"a": 1}', key="other"),
    ],
)
def test_anything_else_is_another_request(other: Likeness) -> None:
    assert likeness(b'{"a": 1}').fingerprint != other.fingerprint


def test_a_body_that_no_parser_can_take_is_compared_as_it_is() -> None:
    deep = b"[" * 100_000

    assert likeness(deep).fingerprint == likeness(deep).fingerprint
    assert likeness(deep).fingerprint != likeness(deep + b"[").fingerprint


@given(answer=st.binary(max_size=300))
def test_a_sealed_answer_opens_with_its_request(answer: bytes) -> None:
    sealed = likeness(b'{"name": "shop"}').seal(answer, nonce="n")

    assert likeness(b'{ "name":"shop" }').seal(sealed, nonce="n") == answer


def test_a_sealed_answer_shows_nothing_and_opens_with_nothing_else() -> None:
    answer = b'{"id":"1","name":"the crown jewels"}'
    asked = likeness(b'{"name": "the crown jewels"}')

    sealed = asked.seal(answer, nonce="n")

    assert b"crown" not in sealed
    assert sealed != asked.seal(answer, nonce="other")
    assert likeness(b'{"name": "x"}').seal(sealed, nonce="n") != answer
    assert likeness(b'{"name": "the crown jewels"}', key="j").seal(sealed, nonce="n") != answer


@pytest.mark.parametrize("key", ["a", "~" * 255, '5f0c-!"#'])
def test_visible_ascii_is_a_key(key: str) -> None:
    assert checked_key([key]) == key


@pytest.mark.parametrize("given_keys", [[], [""], ["a b"], ["é"], ["x" * 256], ["a\n"], ["a", "a"]])
def test_anything_else_is_malformed(given_keys: list[str]) -> None:
    with pytest.raises(ValidationFailed):
        checked_key(given_keys)
