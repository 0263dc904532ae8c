import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters.models.token_bound import token_bound


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("word", 2),
        ("words of prose", 3 + 1 + 3),
        ("1234", 4),
        ("MAX", 3),
        ("f(x);", 5),
        ("    return x", 2 + 3 + 1),
        ("ação", 6),
        ("漢字", 6),
        ("\ud800", 3),
    ],
)
def test_pairs_of_letters_and_blanks_are_spared(text: str, tokens: int) -> None:
    assert token_bound(text) == tokens


@given(st.text())
def test_no_count_is_over_the_bytes_or_under_half_of_them_and_a_space_a_word(text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))

    assert (size - len(text.split())) / 2 <= token_bound(text) <= size


@given(st.text(), st.text())
def test_more_text_never_counts_less(text: str, more: str) -> None:
    assert token_bound(text + more) >= token_bound(text)
