from hypothesis import given, settings
from hypothesis import strategies as st

from ibid.retrieval.budget import CUT_MARKER, merge_within
from tests.unit.retrieval.corpus import chunk, ranked


def test_what_fits_is_kept_whole() -> None:
    chunks = [ranked(chunk("a.py", "12345"), 1.0), ranked(chunk("b.py", "12345"), 0.5)]

    passages = merge_within(chunks, max_characters=10, lexical=True)

    assert [each.content for each in passages] == ["12345", "12345"]


def test_the_worst_are_dropped_until_the_rest_fits() -> None:
    chunks = [
        ranked(chunk("a.py", "12345"), 1.0),
        ranked(chunk("b.py", "123456"), 0.5),
        ranked(chunk("c.py", "1"), 0.2),
    ]

    passages = merge_within(chunks, max_characters=10, lexical=True)

    assert [each.file_path for each in passages] == ["a.py"]


def test_a_good_chunk_is_not_lost_for_the_length_of_its_neighbour() -> None:
    chunks = [
        ranked(chunk("a.py", "b" * 10, start=2, index=1), 1.0),
        ranked(chunk("a.py", "a" * 10, start=1, index=0), 0.1),
    ]

    [passage] = merge_within(chunks, max_characters=12, lexical=True)

    assert (passage.content, passage.start_line, passage.truncated) == ("b" * 10, 2, False)


def test_a_lone_chunk_is_cut_after_a_whole_line_and_says_so() -> None:
    content = "\n".join(f"line {number}" for number in range(10, 30))

    [passage] = merge_within(
        [ranked(chunk("a.py", content, start=5), 1.0)],
        max_characters=len(CUT_MARKER) + 20,
        lexical=True,
    )

    assert passage.content == f"line 10\nline 11\n{CUT_MARKER}"
    assert (passage.start_line, passage.end_line) == (5, 6)
    assert passage.truncated


def test_a_first_line_that_is_too_long_is_cut_within() -> None:
    [passage] = merge_within(
        [ranked(chunk("a.py", "x" * 900), 1.0)], max_characters=100, lexical=True
    )

    assert passage.content == f"{'x' * (99 - len(CUT_MARKER))}\n{CUT_MARKER}"
    assert passage.start_line == passage.end_line == 1


def test_nothing_needs_no_budget() -> None:
    assert merge_within([], max_characters=1, lexical=True) == []


@settings(deadline=None)
@given(
    st.lists(st.text(alphabet="ab\n", min_size=1, max_size=80), min_size=1, max_size=6),
    st.integers(len(CUT_MARKER) + 2, 300),
)
def test_no_more_is_shown_than_the_budget_and_the_best_is_always_there(
    contents: list[str], budget: int
) -> None:
    chunks = [
        ranked(chunk(f"{number}.py", content, start=7), 1 / number)
        for number, content in enumerate(contents, start=1)
    ]

    passages = merge_within(chunks, max_characters=budget, lexical=True)

    assert sum(len(each.content) for each in passages) <= budget
    assert passages[0].file_path == "1.py"
    for each in passages:
        shown = each.content.removesuffix(f"\n{CUT_MARKER}") if each.truncated else each.content
        assert shown.count("\n") == each.end_line - each.start_line
