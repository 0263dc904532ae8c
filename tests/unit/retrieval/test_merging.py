from hypothesis import given, settings
from hypothesis import strategies as st

from ibid.domain.passages import Chunk
from ibid.retrieval.merging import merge
from tests.unit.retrieval.corpus import chunk, ranked

LINES = [f"line {number}" for number in range(1, 31)]


def lines(first: int, last: int) -> str:
    return "\n".join(LINES[first - 1 : last])


def part(index: int, first: int, last: int, *, path: str = "a.py", symbol: str = "") -> Chunk:
    return chunk(path, lines(first, last), start=first, index=index, symbol=symbol)


def test_overlapping_neighbours_are_cut_by_line() -> None:
    one, two = part(0, 1, 6, symbol="A A.f"), part(1, 5, 9, symbol="A A.g")

    [passage] = merge([ranked(two, 1.0, cosine=0.2), ranked(one, 0.4, cosine=0.6)], lexical=False)

    assert (passage.start_line, passage.end_line) == (1, 9)
    assert passage.content == lines(1, 9)
    assert passage.symbol == "A A.f A.g"
    assert (passage.score, passage.cosine) == (1.0, 0.6)
    assert passage.commit_sha == "c0ffee"
    assert not passage.truncated


def test_chunks_that_do_not_follow_each_other_stay_apart() -> None:
    apart = [ranked(part(0, 1, 3), 0.5), ranked(part(2, 4, 6), 1.0), ranked(part(3, 9, 9), 0.7)]

    passages = merge(apart, lexical=True)

    assert [(each.start_line, each.end_line) for each in passages] == [(4, 6), (9, 9), (1, 3)]
    assert [each.cosine for each in passages] == [None, None, None]


def test_a_neighbour_within_its_predecessor_adds_no_line() -> None:
    [passage] = merge(
        [ranked(part(0, 1, 9)), ranked(part(1, 3, 5)), ranked(part(2, 10, 11))], lexical=True
    )

    assert (passage.start_line, passage.end_line, passage.content) == (1, 11, lines(1, 11))


def test_files_are_never_merged() -> None:
    passages = merge([ranked(part(0, 1, 3, path="b.py")), ranked(part(1, 4, 6))], lexical=True)

    assert [each.file_path for each in passages] == ["a.py", "b.py"]


def test_chunks_whose_lines_do_not_add_up_are_left_as_they_are() -> None:
    odd = Chunk(
        file_path="a.py",
        start_line=1,
        end_line=9,
        language="python",
        symbol="",
        chunk_index=0,
        content="one line",
        content_hash="h",
        commit_sha=None,
    )

    passages = merge([ranked(odd), ranked(part(1, 5, 9))], lexical=True)

    assert [each.content for each in passages] == ["one line", lines(5, 9)]


def test_nothing_merges_to_nothing() -> None:
    assert merge([], lexical=True) == []


@st.composite
def chunked_files(draw: st.DrawFn) -> tuple[dict[str, list[str]], list[tuple[Chunk, float]]]:
    """Files of odd lines, cut into chunks that overlap, touch or leave gaps, and some of them."""
    files: dict[str, list[str]] = {}
    chosen: list[tuple[Chunk, float]] = []
    for path in ("a.py", "b/ü.md"):
        text = draw(
            st.lists(st.sampled_from(["", " ", "x", "é\t", "same"]), min_size=1, max_size=40)
        )
        files[path] = text
        start = 1
        for index in range(draw(st.integers(0, 8))):
            if start > len(text):
                break
            end = draw(st.integers(start, len(text)))
            if draw(st.booleans()):
                content = "\n".join(text[start - 1 : end])
                score = draw(st.floats(0, 1))
                chosen.append((chunk(path, content, start=start, index=index), score))
            start = draw(st.integers(start, end + 3))
    return files, draw(st.permutations(chosen))


@settings(deadline=None)
@given(chunked_files())
def test_a_merged_passage_is_exactly_its_lines_of_the_file(
    drawn: tuple[dict[str, list[str]], list[tuple[Chunk, float]]],
) -> None:
    files, chosen = drawn

    passages = merge([ranked(each, score) for each, score in chosen], lexical=True)

    for passage in passages:
        expected = files[passage.file_path][passage.start_line - 1 : passage.end_line]
        assert passage.content == "\n".join(expected)
        assert len(expected) == passage.end_line - passage.start_line + 1
    for each, score in chosen:
        assert any(
            passage.file_path == each.file_path
            and passage.start_line <= each.start_line
            and passage.end_line >= each.end_line
            and passage.score >= score
            for passage in passages
        )
    assert max((each.score for each in passages), default=0) == max(
        (score for _, score in chosen), default=0
    )
    assert [(-each.score, each.file_path, each.start_line) for each in passages] == sorted(
        (-each.score, each.file_path, each.start_line) for each in passages
    )
