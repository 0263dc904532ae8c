import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from ibid.domain.errors import (
    EmbedderUnavailable,
    EmbeddingModelChanged,
    GenerationGone,
    VectorStoreUnavailable,
)
from ibid.domain.passages import Vector
from ibid.ports.index import Candidates, IndexQuery
from ibid.retrieval.search import PassageSearch
from tests.fakes.embedder import HashingEmbedder
from tests.fakes.index import FakePassageIndex
from tests.unit.retrieval.corpus import write

FILES = {
    "src/session.py": [
        "def open_session(app):\n    return Session(app)",
        "def close_session(session):\n    session.close()",
    ],
    "src/route.py": ["def route(rule):\n    return rule", "def blueprint(name):\n    return name"],
    "tests/test_session.py": ["def test_session():\n    open_session(None)"],
    "docs/zeppelin.md": ["Zeppelins are airships."],
}
HERE: dict[str, Any] = {"tenant": "t", "project_id": "p", "generation": 1, "timeout_s": 5.0}


@dataclass(slots=True)
class SlowIndex(FakePassageIndex):
    """Never answers a search."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def candidates(
        self,
        query: IndexQuery,
        *,
        tenant: str,
        project_id: str,
        generation: int,
        timeout_s: float,
    ) -> Candidates:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError((query, tenant, project_id, generation, timeout_s))


class SlowEmbedder(HashingEmbedder):
    """Never embeds a question, whatever time it was given."""

    async def embed_query(self, text: str, *, timeout_s: float) -> Vector:
        await asyncio.Event().wait()
        raise AssertionError((text, timeout_s))


async def lexical() -> PassageSearch:
    index = FakePassageIndex()
    await write(index, FILES)
    return PassageSearch(index=index, embedder=None)


async def hybrid(embedder: HashingEmbedder) -> PassageSearch:
    index = FakePassageIndex()
    await write(index, FILES, embedder=embedder)
    return PassageSearch(index=index, embedder=embedder)


async def test_a_lexical_generation_is_searched_by_words_alone() -> None:
    search = await lexical()

    [first, *_] = await search.search("Where is open_session defined?", **HERE)

    assert (first.file_path, first.start_line) == ("src/session.py", 1)
    assert first.cosine is None
    assert first.score == 1


async def test_a_generation_with_vectors_is_searched_by_both() -> None:
    embedder = HashingEmbedder()
    search = await hybrid(embedder)

    [first, *_] = await search.search("Where is open_session defined?", **HERE)

    assert first.file_path == "src/session.py"
    assert first.cosine is not None
    assert embedder.queries == ["Where is open_session defined?"]


async def test_neighbours_come_as_one_passage() -> None:
    search = await lexical()

    [passage, *_] = await search.search("open_session close_session", **HERE)

    assert passage.content == "\n".join(FILES["src/session.py"])
    assert (passage.start_line, passage.end_line) == (1, 4)


async def test_what_no_chunk_is_near_to_finds_nothing() -> None:
    search = await lexical()

    assert await search.search("bananas", **HERE) == []
    assert await search.search("the of and", **HERE) == []


async def test_a_path_prefix_keeps_others_out() -> None:
    search = await lexical()

    passages = await search.search("open_session", path_prefix="tests/", **HERE)

    assert [each.file_path for each in passages] == ["tests/test_session.py"]


async def test_limits_of_chunks_and_characters_hold() -> None:
    search = await lexical()

    assert len(await search.search("open_session", limit=1, **HERE)) == 1
    [passage] = await search.search("open_session", max_characters=50, **HERE)
    assert passage.content == FILES["src/session.py"][0]


async def test_ranking_has_no_floor_and_files_come_once() -> None:
    search = await hybrid(HashingEmbedder())

    ranked = await search.rank("bananas", **HERE)
    files = await search.rank_files("open_session", limit=2, **HERE)

    assert len(ranked) == sum(len(contents) for contents in FILES.values())
    assert [file.file_path for file in files] == ["src/session.py", "tests/test_session.py"]


async def test_a_failed_embedding_is_never_nothing_found() -> None:
    embedder = HashingEmbedder()
    search = await hybrid(embedder)
    embedder.failure = EmbedderUnavailable("away")

    with pytest.raises(EmbedderUnavailable):
        await search.search("bananas", **HERE)


async def test_a_late_embedding_fails_in_time() -> None:
    search = await hybrid(SlowEmbedder())

    with pytest.raises(EmbedderUnavailable):
        await search.search("bananas", **{**HERE, "timeout_s": 0.01})


async def test_a_late_index_fails_in_time() -> None:
    index = SlowIndex()
    await write(index, FILES)
    search = PassageSearch(index=index, embedder=None)

    with pytest.raises(VectorStoreUnavailable):
        await search.search("open_session", **{**HERE, "timeout_s": 0.01})


async def test_a_cancelled_search_is_cancelled_not_late() -> None:
    index = SlowIndex()
    await write(index, FILES)
    task = asyncio.create_task(
        PassageSearch(index=index, embedder=None).search("open_session", **HERE)
    )
    await index.asked.wait()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_another_model_than_the_generations_is_refused() -> None:
    index = FakePassageIndex()
    await write(index, FILES, embedder=HashingEmbedder(signature="one"))

    for embedder in (None, HashingEmbedder(signature="two")):
        with pytest.raises(EmbeddingModelChanged):
            await PassageSearch(index=index, embedder=embedder).search("x", **HERE)


async def test_a_lexical_generation_needs_no_model_and_embeds_nothing() -> None:
    index = FakePassageIndex()
    await write(index, FILES)
    embedder = HashingEmbedder()

    await PassageSearch(index=index, embedder=embedder).search("open_session", **HERE)

    assert embedder.queries == []


async def test_a_missing_generation_is_gone() -> None:
    search = await lexical()

    with pytest.raises(GenerationGone):
        await search.search("open_session", **{**HERE, "generation": 2})


async def test_nobody_elses_chunk_is_found() -> None:
    search = await lexical()

    with pytest.raises(GenerationGone):
        await search.search("open_session", **{**HERE, "tenant": "stranger"})
