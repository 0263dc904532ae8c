from ibid.ports.index import Candidate, Candidates
from ibid.retrieval.ranking import rank_by_file, rank_candidates
from tests.unit.retrieval.corpus import candidate, chunk


def found(*items: Candidate) -> Candidates:
    top = sorted((item.bm25 for item in items), reverse=True)
    return Candidates(items=items, top_bm25=top, document_frequency={}, chunk_count=len(items))


def of(path: str, bm25: float, *, start: int = 1, index: int = 0) -> Candidate:
    return candidate(chunk(path, start=start, index=index), bm25=bm25)


def order(*items: Candidate) -> list[tuple[str, int]]:
    ranked = rank_candidates(found(*items), question="how", lexical=True, bm25_weight=1)
    return [(each.candidate.chunk.file_path, each.candidate.chunk.start_line) for each in ranked]


def test_the_best_is_first_at_one_and_the_worst_last() -> None:
    items = [of("a.py", 1.0), of("b.py", 3.0), of("c.py", 2.0)]

    ranked = rank_candidates(found(*items), question="how", lexical=True, bm25_weight=1)

    assert [each.candidate.chunk.file_path for each in ranked] == ["b.py", "c.py", "a.py"]
    assert [each.score for each in ranked] == [1, 0.5, 0]


def test_ties_are_in_order_of_path_then_line() -> None:
    items = [of("b.py", 1.0), of("a.py", 1.0, start=9, index=1), of("a.py", 1.0)]

    assert order(*items) == [("a.py", 1), ("a.py", 9), ("b.py", 1)]
    assert order(*reversed(items)) == [("a.py", 1), ("a.py", 9), ("b.py", 1)]


def test_a_second_good_chunk_raises_its_file() -> None:
    items = [of("a.py", 3.0), of("b.py", 2.9), of("b.py", 2.8, start=9, index=1), of("c.py", 1.0)]

    assert order(*items)[0] == ("b.py", 1)


def test_source_goes_before_an_equal_test() -> None:
    items = [of("a/tests/x.py", 2.0), of("b/x.py", 1.9), of("c.py", 1.0)]

    assert order(*items)[0] == ("b/x.py", 1)


def test_files_count_by_their_best_and_half_of_their_second() -> None:
    items = [
        of("a.py", 5.0),
        of("b.py", 4.0),
        of("b.py", 3.0, start=9, index=1),
        of("b.py", 1.0, start=19, index=2),
        of("docs/c.md", 5.0),
    ]

    files = rank_by_file(found(*items), question="how", lexical=True, bm25_weight=1)

    assert [(file.file_path, file.score) for file in files] == [
        ("a.py", 1.0),
        ("b.py", 1.0),
        ("docs/c.md", 0.8),
    ]


def test_nothing_found_ranks_nothing() -> None:
    assert rank_candidates(found(), question="how", lexical=True, bm25_weight=1) == []
    assert rank_by_file(found(), question="how", lexical=False, bm25_weight=1) == []
