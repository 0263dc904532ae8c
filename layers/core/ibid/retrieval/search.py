"""Passages that may answer a question, out of one generation."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Final, NotRequired, TypedDict, TypeVar, Unpack

from ibid.domain.errors import (
    EmbedderUnavailable,
    EmbeddingModelChanged,
    IbidError,
    VectorStoreUnavailable,
)
from ibid.domain.passages import Passage
from ibid.ports.embedder import Embedder
from ibid.ports.index import Candidates, IndexQuery, PassageIndex
from ibid.retrieval.budget import merge_within
from ibid.retrieval.floor import Floor
from ibid.retrieval.fusion import bm25_weight
from ibid.retrieval.question import Question, read_question
from ibid.retrieval.ranking import Ranked, RankedFile, rank_by_file, rank_candidates

DEPTH: Final = 100
"""Length of each list whose union is ranked."""

T = TypeVar("T")


class Where(TypedDict):
    """What is searched, and for how long: as `PassageSearch.search` says."""

    tenant: str
    project_id: str
    generation: int
    path_prefix: NotRequired[str | None]
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    question: Question
    candidates: Candidates
    lexical: bool
    bm25_weight: float


class PassageSearch:
    """Searches a passage index by words, and by meaning where the generation has vectors.

    Every method may raise:
        GenerationGone: The generation is deleted, or was never sealed.
        EmbeddingModelChanged: It has another model's vectors, or no model is in use.
        EmbedderUnavailable: The question was not embedded in time; it never counts as not found.
        VectorStoreUnavailable: The index did not answer in time.
    """

    def __init__(self, *, index: PassageIndex, embedder: Embedder | None) -> None:
        self._index = index
        self._embedder = embedder

    async def search(
        self,
        query: str,
        *,
        tenant: str,
        project_id: str,
        generation: int,
        path_prefix: str | None = None,
        limit: int = 12,
        max_characters: int = 24_000,
        timeout_s: float,
    ) -> Sequence[Passage]:
        """Find the passages that may answer a question.

        The best `limit` chunks are taken, those below the floor left out, neighbours merged, and
        the worst dropped until the rest fits.

        Args:
            query: Standalone text, 1 to 4,000 characters.
            tenant: Who pays; nobody else's chunk is ever found.
            project_id: One of the tenant's projects.
            generation: The only one searched.
            path_prefix: Only files whose path starts with it; None means all.
            limit: Most chunks, at least 1.
            max_characters: Of all contents together, at least 1.
            timeout_s: Seconds for the embedding, and as many for the index, above 0.

        Returns:
            Best first, ties by path, then line; empty if nothing is above the floor.
        """
        found = await self._find(
            query,
            tenant=tenant,
            project_id=project_id,
            generation=generation,
            path_prefix=path_prefix,
            timeout_s=timeout_s,
        )
        floor = Floor(found.question, found.candidates)
        best = [each for each in _ranked(found)[:limit] if floor.holds(each.candidate)]
        return merge_within(best, max_characters=max_characters, lexical=found.lexical)

    async def rank(
        self, query: str, *, limit: int = 100, **where: Unpack[Where]
    ) -> Sequence[Ranked]:
        """Order single chunks as `search` does, before its floor, merging and budget.

        Benches take nDCG and recall here. Arguments are those of `search`.
        """
        found = await self._find(query, **where)
        return _ranked(found)[:limit]

    async def rank_files(
        self, query: str, *, limit: int = 100, **where: Unpack[Where]
    ) -> Sequence[RankedFile]:
        """Order the files that may answer a question, best first, ties by path; no floor.

        Arguments are those of `search`.
        """
        found = await self._find(query, **where)
        return rank_by_file(
            found.candidates,
            question=query,
            lexical=found.lexical,
            bm25_weight=found.bm25_weight,
        )[:limit]

    async def _find(self, query: str, **where: Unpack[Where]) -> _Found:
        tenant, project_id = where["tenant"], where["project_id"]
        generation, timeout_s = where["generation"], where["timeout_s"]
        facts = await _within(
            timeout_s,
            self._index.facts(tenant=tenant, project_id=project_id, generation=generation),
            VectorStoreUnavailable(f"no facts of generation {generation} in {timeout_s} s"),
        )
        question = read_question(query, main_language=facts.main_language)
        vector, weight = None, 1.0
        if facts.embedding_signature is not None:
            embedder = self._embedder
            if embedder is None or embedder.signature != facts.embedding_signature:
                raise EmbeddingModelChanged(
                    f"project {project_id!r} was indexed with {facts.embedding_signature!r}, "
                    f"in use is {embedder.signature if embedder else None!r}"
                )
            vector = await _within(
                timeout_s,
                embedder.embed_query(query, timeout_s=timeout_s),
                EmbedderUnavailable(f"the question was not embedded in {timeout_s} s"),
            )
            weight = bm25_weight(question.language, embedder.languages)
        candidates = await _within(
            timeout_s,
            self._index.candidates(
                IndexQuery(
                    terms=question.terms(),
                    vector=vector,
                    path_prefix=where.get("path_prefix"),
                    depth=DEPTH,
                ),
                tenant=tenant,
                project_id=project_id,
                generation=generation,
                timeout_s=timeout_s,
            ),
            VectorStoreUnavailable(f"no answer from the passage index in {timeout_s} s"),
        )
        return _Found(
            question=question,
            candidates=candidates,
            lexical=vector is None,
            bm25_weight=weight,
        )


def _ranked(found: _Found) -> list[Ranked]:
    return rank_candidates(
        found.candidates,
        question=found.question.text,
        lexical=found.lexical,
        bm25_weight=found.bm25_weight,
    )


async def _within(timeout_s: float, answer: Awaitable[T], late: IbidError) -> T:
    """Await an answer, or fail as its own port would: an adapter may not keep its time-out."""
    try:
        async with asyncio.timeout(timeout_s):
            return await answer
    except TimeoutError:
        raise late from None
