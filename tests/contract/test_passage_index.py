"""What every passage index must do, whatever keeps it."""

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, product
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ibid.adapters.sqlite.index import SqlitePassageIndex
from ibid.domain.analysis import analyse, pairs
from ibid.domain.chunks_header import bm25_header
from ibid.domain.errors import GenerationGone, ValidationFailed, VectorStoreUnavailable
from ibid.domain.passages import Chunk, Vector
from ibid.ports.index import (
    Candidate,
    Candidates,
    GenerationFacts,
    IndexQuery,
    PassageIndex,
    PathList,
    VectorCache,
)
from tests.contract.passages import PROJECT, SIGNATURE, TENANT, chunk, fill, find, unit
from tests.fakes.index import FakePassageIndex

ODD_IDS = (
    "a/b",
    "a%2Fb",
    "..",
    ".",
    "../acme",
    "Acme",
    "ACME",
    "straße",
    "STRASSE",
    "🦉",
    "e\u0301",
    "\u00e9",
    "a b",
    "a\u202eb",
    "a*b?[c]",
    "'; DROP TABLE chunks; --",
    "CON",
    "x" * 128,
    "x" * 127 + "y",
    "界" * 128,
)


class Index(PassageIndex, VectorCache, Protocol):
    """An index whose sealed generations are the vector cache as well."""


@pytest.fixture
def fake_index() -> Index:
    return FakePassageIndex()


@pytest.fixture
async def embedded_index(tmp_path: Path) -> AsyncIterator[Index]:
    adapter = SqlitePassageIndex(tmp_path / "index")
    yield adapter
    await adapter.close()


@pytest.fixture(params=["fake", "embedded"])
def index(request: pytest.FixtureRequest) -> Index:
    adapter: Index = request.getfixturevalue(f"{request.param}_index")
    return adapter


async def scroll(
    index: PassageIndex, *, path_prefix: str = "", cursor: str | None = None, limit: int = 1000
) -> tuple[Sequence[Chunk], str | None]:
    page = await index.scroll(
        tenant=TENANT,
        project_id=PROJECT,
        generation=1,
        path_prefix=path_prefix,
        cursor=cursor,
        limit=limit,
    )
    return page.items, page.next_cursor


async def paths(index: PassageIndex, prefix: str = "", limit: int = 200) -> PathList:
    found = await index.paths(
        tenant=TENANT, project_id=PROJECT, generation=1, prefix=prefix, limit=limit
    )
    return PathList(paths=list(found.paths), truncated=found.truncated)


def by_place(found: Candidates) -> dict[tuple[str, int], Candidate]:
    return {(each.chunk.file_path, each.chunk.chunk_index): each for each in found.items}


# ------------------------------------------------------------------------------ generations


async def test_what_was_written_comes_back_unchanged(index: Index) -> None:
    odd = replace(
        chunk("dir/na me 'q\" 🦉 \u202e.py", content="a\0b\r\n\tü 🦉 \ud800\n"),
        symbol="Ä.b ñ",
        commit_sha=None,
    )

    await fill(index, [odd])

    assert list((await scroll(index))[0]) == [odd]
    assert (await paths(index)).paths == [odd.file_path]


async def test_facts_are_what_was_sealed(index: Index) -> None:
    chunks = [chunk("a"), chunk("b", 0), chunk("b", 1)]

    sealed = await fill(index, chunks, [unit(1, 0, 0)] * 3)

    assert sealed == GenerationFacts(
        embedding_signature=SIGNATURE,
        main_language="english",
        chunk_count=3,
        path_count=2,
        commit_sha="c0ffee",
        source_digest="digest",
    )
    assert await index.facts(tenant=TENANT, project_id=PROJECT, generation=1) == sealed


@pytest.mark.parametrize("signature", [None, SIGNATURE])
async def test_a_generation_of_no_chunks_is_read_as_empty(
    index: Index, signature: str | None
) -> None:
    writer = await index.write(tenant=TENANT, project_id=PROJECT, generation=1)

    facts = await writer.seal(
        embedding_signature=signature,
        main_language="english",
        commit_sha=None,
        source_digest="none",
    )

    assert (facts.chunk_count, facts.path_count) == (0, 0)
    found = await find(index, {"text": 1.0}, vector=unit(1, 0, 0))
    assert (list(found.items), list(found.top_bm25)) == ([], [])
    assert (dict(found.document_frequency), found.chunk_count) == ({"text": 0}, 0)
    assert await scroll(index) == ([], None)
    assert await paths(index) == PathList(paths=[], truncated=False)


async def test_an_unsealed_generation_is_counted_but_gone_to_every_read(index: Index) -> None:
    writer = await index.write(tenant=TENANT, project_id=PROJECT, generation=1)
    await writer.add([chunk("a")], None)

    assert list(await index.generations(tenant=TENANT, project_id=PROJECT)) == [1]
    await every_read_says_gone(index)

    await writer.abort()


async def every_read_says_gone(index: Index, *, generation: int = 1) -> None:
    where = {"tenant": TENANT, "project_id": PROJECT}
    with pytest.raises(GenerationGone):
        await find(index, {"text": 1.0}, generation=generation)
    with pytest.raises(GenerationGone):
        await index.facts(**where, generation=generation)
    with pytest.raises(GenerationGone):
        await index.scroll(**where, generation=generation, path_prefix="", cursor=None, limit=10)
    with pytest.raises(GenerationGone):
        await index.paths(**where, generation=generation, prefix="", limit=10)


async def test_an_aborted_generation_leaves_nothing(index: Index) -> None:
    writer = await index.write(tenant=TENANT, project_id=PROJECT, generation=1)
    await writer.add([chunk("a")], None)

    await writer.abort()
    await writer.abort()

    assert list(await index.generations(tenant=TENANT, project_id=PROJECT)) == []
    await every_read_says_gone(index)


async def test_an_abort_after_the_seal_harms_nothing(index: Index) -> None:
    writer = await index.write(tenant=TENANT, project_id=PROJECT, generation=1)
    await writer.add([chunk("a")], None)
    await writer.seal(
        embedding_signature=None, main_language="english", commit_sha=None, source_digest="d"
    )

    await writer.abort()

    assert (await paths(index)).paths == ["a"]


async def test_writing_again_drops_what_was_not_sealed(index: Index) -> None:
    left = await index.write(tenant=TENANT, project_id=PROJECT, generation=1)
    await left.add([chunk("left")], None)

    await fill(index, [chunk("right")])

    assert (await paths(index)).paths == ["right"]
    await left.abort()
    assert (await paths(index)).paths == ["right"]


async def test_generations_are_listed_in_rising_order(index: Index) -> None:
    for number in (10, 2, 1):
        await fill(index, [chunk("a")], generation=number)
    unsealed = await index.write(tenant=TENANT, project_id=PROJECT, generation=3)

    assert list(await index.generations(tenant=TENANT, project_id=PROJECT)) == [1, 2, 3, 10]
    assert list(await index.generations(tenant=TENANT, project_id="another")) == []

    await unsealed.abort()


async def test_a_search_sees_one_generation_only(index: Index) -> None:
    await fill(index, [chunk("old", content="owl")], generation=1)
    await fill(index, [chunk("new", content="owl"), chunk("more", content="owl")], generation=2)

    old, new = await find(index, {"owl": 1.0}), await find(index, {"owl": 1.0}, generation=2)

    assert set(by_place(old)) == {("old", 0)}
    assert set(by_place(new)) == {("new", 0), ("more", 0)}
    assert (old.chunk_count, new.chunk_count) == (1, 2)
    assert (old.document_frequency, new.document_frequency) == ({"owl": 1}, {"owl": 2})


async def test_generations_are_written_at_once(index: Index) -> None:
    numbers = range(1, 9)

    await asyncio.gather(
        *(
            fill(
                index,
                [chunk(f"of {number}", at, content=f"owl {number}") for at in range(20)],
                generation=number,
            )
            for number in numbers
        )
    )

    for number in numbers:
        found = await find(index, {"owl": 1.0}, generation=number)
        assert {path for path, _ in by_place(found)} == {f"of {number}"}


async def test_a_deleted_generation_is_gone_and_the_others_stay(index: Index) -> None:
    for number in (1, 2):
        await fill(index, [chunk("a")], generation=number)
    await find(index, {"text": 1.0})

    for _ in range(2):
        await index.delete(tenant=TENANT, project_id=PROJECT, generation=1)

    await every_read_says_gone(index)
    assert list(await index.generations(tenant=TENANT, project_id=PROJECT)) == [2]
    assert len((await find(index, {"text": 1.0}, generation=2)).items) == 1


async def test_a_deleted_number_can_be_written_again(index: Index) -> None:
    await fill(index, [chunk("old")])
    await find(index, {"text": 1.0})
    await index.delete(tenant=TENANT, project_id=PROJECT, generation=1)

    await fill(index, [chunk("new")])

    assert set(by_place(await find(index, {"text": 1.0}))) == {("new", 0)}


async def test_a_deleted_project_loses_everything_and_others_nothing(index: Index) -> None:
    for number in (1, 2):
        await fill(index, [chunk("a")], generation=number)
    await fill(index, [chunk("theirs")], tenant="other")
    await fill(index, [chunk("mine")], project_id="other")
    unsealed = await index.write(tenant=TENANT, project_id=PROJECT, generation=3)

    for _ in range(2):
        await index.delete_project(tenant=TENANT, project_id=PROJECT)

    assert list(await index.generations(tenant=TENANT, project_id=PROJECT)) == []
    await every_read_says_gone(index)
    assert len((await find(index, {"text": 1.0}, tenant="other")).items) == 1
    assert len((await find(index, {"text": 1.0}, project_id="other")).items) == 1
    await unsealed.abort()


async def test_any_two_ids_are_two_places(index: Index) -> None:
    places = list(product(ODD_IDS[:6], ODD_IDS[:6])) + [(each, each) for each in ODD_IDS]
    places = list(dict.fromkeys(places))
    for number, (tenant, project_id) in enumerate(places):
        await fill(index, [chunk(f"{number}")], tenant=tenant, project_id=project_id)

    for number, (tenant, project_id) in enumerate(places):
        found = await find(index, {"text": 1.0}, tenant=tenant, project_id=project_id)
        assert set(by_place(found)) == {(f"{number}", 0)}

    for tenant, project_id in places:
        await index.delete_project(tenant=tenant, project_id=project_id)
        assert list(await index.generations(tenant=tenant, project_id=project_id)) == []


# ------------------------------------------------------------------------------------- lists

LISTED = ["B.py", "a", "a.py", "a/b.py", "a/c.py", "b", "ß", "日本/x", "🦉", "\U0010ffff"]


async def test_paths_are_in_code_point_order(index: Index) -> None:
    await fill(index, [chunk(path) for path in reversed(LISTED)])

    assert await paths(index) == PathList(paths=LISTED, truncated=False)


@pytest.mark.parametrize(
    ("prefix", "found"),
    [
        ("a", ["a", "a.py", "a/b.py", "a/c.py"]),
        ("a/", ["a/b.py", "a/c.py"]),
        ("a/b.py", ["a/b.py"]),
        ("日", ["日本/x"]),
        ("\U0010ffff", ["\U0010ffff"]),
        ("A", []),
        ("a/b.pyx", []),
        ("%", []),
        ("_", []),
        ("*", []),
    ],
)
async def test_a_prefix_means_itself_in_every_read(
    index: Index, prefix: str, found: list[str]
) -> None:
    await fill(index, [chunk(path) for path in LISTED], [unit(1, 0, 0)] * len(LISTED))

    assert await paths(index, prefix) == PathList(paths=found, truncated=False)
    assert [each.file_path for each in (await scroll(index, path_prefix=prefix))[0]] == found
    for terms, vector in (({"text": 1.0}, None), ({}, unit(1, 0, 0))):
        candidates = await find(index, terms, vector=vector, path_prefix=prefix)
        assert sorted(path for path, _ in by_place(candidates)) == found


async def test_paths_say_when_there_are_more(index: Index) -> None:
    await fill(index, [chunk(path) for path in ("a", "b", "c")])

    assert await paths(index, limit=2) == PathList(paths=["a", "b"], truncated=True)
    assert await paths(index, limit=3) == PathList(paths=["a", "b", "c"], truncated=False)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 1000])
async def test_scrolling_gives_every_chunk_once_in_order(index: Index, limit: int) -> None:
    files = {"b": 3, "a": 2, "c/x": 1, "c": 1}
    chunks = [chunk(path, at) for path, size in files.items() for at in range(size)]
    await fill(index, chunks)

    seen: list[Chunk] = []
    cursor = None
    for _ in range(len(chunks) + 1):
        items, cursor = await scroll(index, cursor=cursor, limit=limit)
        assert len(items) <= limit
        seen += items
        if cursor is None:
            break

    assert seen == sorted(chunks, key=lambda each: (each.file_path, each.chunk_index))


@pytest.mark.parametrize("cursor", ["", "not-a-cursor", "-1", "ü", "1 ", "=" * 8, "A" * 10_000])
async def test_a_forged_cursor_is_refused(index: Index, cursor: str) -> None:
    await fill(index, [chunk("a"), chunk("b")])

    with pytest.raises(ValidationFailed):
        await scroll(index, cursor=cursor)


# ---------------------------------------------------------------------------------- searches


async def test_nothing_matching_and_no_vectors_is_empty(index: Index) -> None:
    await fill(index, [chunk("a"), chunk("b")])

    found = await find(index, {"absent": 1.0, "absent word": 0.15}, vector=unit(1, 0, 0))

    assert found == Candidates(
        items=[], top_bm25=[], document_frequency={"absent": 0}, chunk_count=2
    )


async def test_a_lexical_search_of_vectors_has_no_cosines(index: Index) -> None:
    await fill(index, [chunk("a", content="owl"), chunk("b")], [unit(1, 0, 0)] * 2)

    found = await find(index, {"owl": 1.0})

    assert set(by_place(found)) == {("a", 0)}
    assert {(each.cosine, each.document_cosine) for each in found.items} == {(0.0, 0.0)}


async def test_a_member_of_one_list_has_the_other_score_too(index: Index) -> None:
    chunks = [chunk("words", content="owl owl"), chunk("both", content="owl"), chunk("meaning")]
    await fill(index, chunks, [unit(-1, 0, 0), unit(0.5, 1, 0), unit(1, 0, 0)])

    found = by_place(await find(index, {"owl": 1.0}, vector=unit(1, 0, 0), depth=1))

    assert set(found) == {("words", 0), ("meaning", 0)}
    assert found["words", 0].cosine == pytest.approx(-1)
    assert found["meaning", 0].bm25 == 0
    assert found["words", 0].bm25 > 0


async def test_depth_bounds_each_list(index: Index) -> None:
    size = 30
    chunks = [chunk(f"{number:02}", content="owl " * (1 + number % 5)) for number in range(size)]
    await fill(index, chunks, [unit(1, number / size, 0) for number in range(size)])

    for depth in (1, 5, 29, 30, 1000):
        lexical = await find(index, {"owl": 1.0}, depth=depth)
        dense = await find(index, {}, vector=unit(1, 0, 0), depth=depth)
        assert len(lexical.items) == len(dense.items) == min(depth, size)
        assert len(lexical.top_bm25) == 10
        assert list(dense.top_bm25) == []
    nearest = await find(index, {}, vector=unit(1, 0, 0), depth=3)
    assert sorted(path for path, _ in by_place(nearest)) == ["00", "01", "02"]


async def test_pairs_count_where_the_words_are_adjacent_in_the_text(index: Index) -> None:
    await fill(
        index,
        [
            chunk("adjacent", content="zebra owl filler"),
            chunk("apart", content="zebra filler owl"),
            chunk("turned", content="owl zebra filler"),
        ],
    )

    found = by_place(await find(index, {"zebra": 1.0, "owl": 1.0, "zebra owl": 0.15}))

    best, *others = sorted((each.bm25, path) for (path, _), each in found.items())[::-1]
    assert best[1] == "adjacent"
    assert others[0][0] == pytest.approx(others[1][0])


async def test_a_header_is_found_by_its_segments(index: Index) -> None:
    await fill(index, [chunk("src/night-owl.py", symbol="Zebra.run"), chunk("other")])

    for term in ("src", "night", "owl", "zebra", "run"):
        assert set(by_place(await find(index, {term: 1.0}))) == {("src/night-owl.py", 0)}


WORDS = ("owl", "zebra", "parse_header", "HTTPServer", "v2", "naïve", "the", "running", "日本語")


@dataclass(frozen=True)
class Corpus:
    chunks: Sequence[Chunk]
    vectors: Sequence[Vector] | None
    terms: Mapping[str, float]
    vector: Vector
    depth: int
    path_prefix: str | None


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
    near = st.tuples(*[st.integers(-3, 3)] * 3).filter(any).map(lambda each: unit(*each))
    files = draw(
        st.dictionaries(
            st.sampled_from(["a.py", "a/owl.py", "a/b/c.md", "zebra"]),
            st.lists(texts, min_size=1, max_size=4),
            max_size=4,
        )
    )
    chunks = [
        chunk(path, at, content, symbol=draw(st.sampled_from(["", "Owl.run"])))
        for path, contents in files.items()
        for at, content in enumerate(contents)
    ]
    words = draw(st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join))
    analysed = analyse(words, language="english")
    vectors = draw(st.lists(near, min_size=len(chunks), max_size=len(chunks)) | st.none())
    return Corpus(
        chunks=chunks,
        vectors=vectors,
        terms={
            **{word: float(times) for word, times in Counter(analysed).items()},
            **{pair: 0.15 * times for pair, times in Counter(pairs(analysed)).items()},
        },
        vector=draw(near),
        depth=draw(st.integers(1, 20)),
        path_prefix=draw(st.sampled_from([None, "", "a", "a/", "q"])),
    )


def bm25(
    bags: Sequence[Sequence[str]], lengths: Sequence[int], terms: Mapping[str, float]
) -> list[float]:
    """Lucene's formula as a textbook has it, one document and one term at a time."""
    mean = sum(lengths) / len(lengths) if lengths else 0
    scores = []
    for bag, length in zip(bags, lengths, strict=True):
        score = 0.0
        for term, weight in terms.items():
            df = sum(term in other for other in bags)
            tf = bag.count(term)
            if tf:
                idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
                score += weight * idf * tf / (tf + 1.2 * (0.25 + 0.75 * length / mean))
        scores.append(score)
    return scores


generation_numbers = count(1)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(corpus=corpora())
async def test_scores_are_the_recipes(index: Index, corpus: Corpus) -> None:
    generation = next(generation_numbers)
    await fill(index, corpus.chunks, corpus.vectors, generation=generation)

    found = await find(
        index,
        corpus.terms,
        vector=corpus.vector,
        path_prefix=corpus.path_prefix,
        depth=corpus.depth,
        generation=generation,
    )

    headers = [
        analyse(bm25_header(each.file_path, each.symbol), language="english")
        for each in corpus.chunks
    ]
    texts = [analyse(each.content, language="english") for each in corpus.chunks]
    singles = {term: weight for term, weight in corpus.terms.items() if " " not in term}
    of_chunks = bm25(
        [[*head, *text, *pairs(text)] for head, text in zip(headers, texts, strict=True)],
        [len(head) + len(text) for head, text in zip(headers, texts, strict=True)],
        corpus.terms,
    )
    files = list(dict.fromkeys(each.file_path for each in corpus.chunks))
    members = [
        [at for at, each in enumerate(corpus.chunks) if each.file_path == path] for path in files
    ]
    whole = [[word for at in numbers for word in texts[at]] for numbers in members]
    of_files = bm25(whole, [len(each) for each in whole], singles)
    expected: dict[tuple[str, int], tuple[float, float, float, float, int]] = {}
    for at, each in enumerate(corpus.chunks):
        file = files.index(each.file_path)
        expected[each.file_path, each.chunk_index] = (
            of_chunks[at],
            of_files[file],
            0.0 if corpus.vectors is None else cosine(corpus.vectors[at], corpus.vector),
            0.0
            if corpus.vectors is None
            else cosine(mean([corpus.vectors[other] for other in members[file]]), corpus.vector),
            len(members[file]),
        )
    for place, member in by_place(found).items():
        assert expected[place] == pytest.approx(
            (
                member.bm25,
                member.document_bm25,
                member.cosine,
                member.document_cosine,
                member.file_chunks,
            ),
            rel=1e-6,
            abs=1e-6,
        )
    allowed = [
        (place, scores)
        for place, scores in expected.items()
        if place[0].startswith(corpus.path_prefix or "")
    ]
    lexical = sorted((scores[0] for _, scores in allowed if scores[0] > 0), reverse=True)
    dense = sorted((scores[2] for _, scores in allowed), reverse=True)
    near = 1e-5
    least_bm25 = lexical[: corpus.depth][-1] if lexical else math.inf
    least_cosine = dense[: corpus.depth][-1] if dense and corpus.vectors is not None else math.inf
    chosen = set(by_place(found))
    assert len(chosen) == len(found.items)
    assert chosen <= {
        place
        for place, scores in allowed
        if scores[0] >= least_bm25 - near or scores[2] >= least_cosine - near
    }
    assert chosen >= {
        place
        for place, scores in allowed
        if scores[0] > least_bm25 + near or scores[2] > least_cosine + near
    }
    assert list(found.top_bm25) == pytest.approx(lexical[:10], rel=1e-6, abs=1e-6)
    assert found.chunk_count == len(corpus.chunks)
    assert dict(found.document_frequency) == {
        term: sum(term in (*head, *text) for head, text in zip(headers, texts, strict=True))
        for term in singles
    }


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0


def mean(vectors: Sequence[Vector]) -> list[float]:
    sums = [math.fsum(column) for column in zip(*vectors, strict=True)]
    # Vectors that cancel out leave a rounding error without a direction
    return sums if math.hypot(*sums) > 1e-6 else [0.0] * len(sums)


async def test_a_time_out_is_unavailability_and_nothing_else(index: Index) -> None:
    await fill(index, [chunk("a")])
    query = IndexQuery(terms={"text": 1.0}, vector=None)

    try:
        found = await index.candidates(
            query, tenant=TENANT, project_id=PROJECT, generation=1, timeout_s=1e-9
        )
    except VectorStoreUnavailable as error:
        assert repr(PROJECT) in str(error)  # noqa: PT017 - in time it need not raise
    else:
        assert len(found.items) == 1


async def test_searches_run_at_once_beside_a_deletion(index: Index) -> None:
    await fill(index, [chunk(f"{number}", content="owl") for number in range(50)])
    await fill(index, [chunk("kept", content="owl")], generation=2)

    async def search() -> str:
        try:
            return f"{len((await find(index, {'owl': 1.0})).items)} found"
        except GenerationGone:
            return "gone"

    async def delete() -> str:
        await index.delete(tenant=TENANT, project_id=PROJECT, generation=1)
        return "deleted"

    outcomes = await asyncio.gather(*(search() for _ in range(20)), delete(), search())

    assert set(outcomes) <= {"50 found", "gone", "deleted"}
    assert await search() == "gone"


# ------------------------------------------------------------------------------------- cache


async def test_the_cache_gives_the_very_vectors(index: Index) -> None:
    chunks = [chunk("a", content="one"), chunk("a", 1, content="two")]
    vectors = [unit(1, 2, 3), unit(-3, 2, 1)]
    await fill(index, chunks, vectors)

    hashes = [each.content_hash for each in chunks]
    found = await index.get(
        [*hashes, "unknown"], tenant=TENANT, project_id=PROJECT, signature=SIGNATURE
    )

    assert found == dict(zip(hashes, vectors, strict=True))


async def test_the_cache_spans_generations_of_its_project_and_signature(index: Index) -> None:
    old, new, lexical = (chunk("a", content=word) for word in ("old", "new", "lexical"))
    theirs, other = chunk("a", content="theirs"), chunk("a", content="other")
    await fill(index, [old], [unit(1, 0, 0)], generation=1)
    await fill(index, [new], [unit(0, 1, 0)], generation=2)
    await fill(index, [lexical], generation=3)
    await fill(index, [other], [unit(0, 0, 1)], generation=4, signature="another/3")
    await fill(index, [theirs], [unit(1, 1, 1)], tenant="other")
    unsealed = await index.write(tenant=TENANT, project_id=PROJECT, generation=5)
    pending = chunk("a", content="pending")
    await unsealed.add([pending], [unit(1, 1, 0)])

    found = await index.get(
        [each.content_hash for each in (old, new, lexical, theirs, other, pending)],
        tenant=TENANT,
        project_id=PROJECT,
        signature=SIGNATURE,
    )

    assert found == {old.content_hash: unit(1, 0, 0), new.content_hash: unit(0, 1, 0)}
    await unsealed.abort()


async def test_the_cache_of_nothing_is_empty(index: Index) -> None:
    async def get(hashes: Sequence[str]) -> Mapping[str, Vector]:
        return await index.get(hashes, tenant=TENANT, project_id=PROJECT, signature=SIGNATURE)

    assert await get(["unknown"]) == {}
    await fill(index, [chunk("a")], [unit(1, 0, 0)])
    assert await get([]) == {}
    assert await get([f"unknown {number}" for number in range(10_000)]) == {}
