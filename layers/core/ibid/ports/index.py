"""The passage index: many generations of many projects, of which a search sees exactly one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ibid.domain.pages import Page
from ibid.domain.passages import Chunk, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexQuery:
    """One analysed question.

    Attributes:
        terms: Weight by analysed word; adjacent pairs (two words and a space) weigh less.
        vector: The question's, or None for a lexical search.
        path_prefix: Only files whose path starts with it; None means all.
        depth: Length of each of the two lists whose union is returned, 1 to 1,000.
    """

    terms: Mapping[str, float]
    vector: Vector | None
    path_prefix: str | None = None
    depth: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A member of the union of both lists, with both scores whichever list it came from.

    Attributes:
        bm25: Lucene's BM25 of the chunk (k1 1.2, b 0.75) over header, text and pairs; 0 if no
            term matches.
        document_bm25: The same of its whole file, over single words.
        cosine: With the query's vector, -1 to 1; 0 where either has none.
        document_cosine: With the normalised mean of its file's vectors; 0 where there is none.
        file_chunks: Chunks of its file, at least 1.
    """

    chunk: Chunk
    bm25: float
    document_bm25: float
    cosine: float
    document_cosine: float
    file_chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """What one search gives to the fusion.

    Attributes:
        items: In no order; empty if nothing matches and there are no vectors.
        top_bm25: The ten best BM25 scores of the whole search, best first; fewer if fewer match.
        document_frequency: For each single-word term of the query: chunks that hold it.
        chunk_count: Chunks of the generation.
    """

    items: Sequence[Candidate]
    top_bm25: Sequence[float]
    document_frequency: Mapping[str, int]
    chunk_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationFacts:
    """What is known of a sealed generation.

    Attributes:
        embedding_signature: None if it is lexical.
        main_language: Snowball's name of the language it was analysed in, such as `english`.
        source_digest: Of all that decides the chunks (files, chunker version, embedder).
    """

    embedding_signature: str | None
    main_language: str
    chunk_count: int
    path_count: int
    commit_sha: str | None
    source_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PathList:
    """Paths in order; `truncated` says that there are more."""

    paths: Sequence[str]
    truncated: bool


class PassageIndex(Protocol):
    """Every tenant's chunks. Nobody else's chunk is ever found, by any argument.

    Reads of a generation that is not sealed, or deleted, raise GenerationGone. Every method may
    raise VectorStoreUnavailable: no answer within the time-out, or a faulty one. Where a read can
    tell that it is this generation which is damaged, that is a GenerationDamaged.
    """

    async def candidates(
        self,
        query: IndexQuery,
        *,
        tenant: str,
        project_id: str,
        generation: int,
        timeout_s: float,
    ) -> Candidates:
        """Find the union of the `depth` best by BM25 and the `depth` best by cosine."""

    async def facts(self, *, tenant: str, project_id: str, generation: int) -> GenerationFacts:
        """Return what is known of one sealed generation."""

    async def scroll(
        self,
        *,
        tenant: str,
        project_id: str,
        generation: int,
        path_prefix: str,
        cursor: str | None,
        limit: int,
    ) -> Page[Chunk]:
        """List the chunks of the files whose path starts with the prefix, by path, then index.

        An empty prefix means all; `limit` is 1 to 1,000.

        Raises:
            ValidationFailed: The cursor is not one of this list's.
        """

    async def paths(
        self, *, tenant: str, project_id: str, generation: int, prefix: str, limit: int
    ) -> PathList:
        """List the indexed paths that start with the prefix, in code point order; limit from 1."""

    async def write(self, *, tenant: str, project_id: str, generation: int) -> "GenerationWriter":
        """Open a generation for writing; what an unsealed one of that number held is dropped."""

    async def generations(self, *, tenant: str, project_id: str) -> Sequence[int]:
        """Return the numbers of all generations, sealed or not, rising."""

    async def delete(self, *, tenant: str, project_id: str, generation: int) -> None:
        """Remove one generation; repeatable."""

    async def delete_project(self, *, tenant: str, project_id: str) -> None:
        """Remove every generation of a project; repeatable."""


class GenerationWriter(Protocol):
    """One generation in the making; invisible to every read until it is sealed."""

    async def add(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None) -> None:
        """Add chunks, a file's all in one call and in order of `chunk_index`.

        `vectors` is as long as `chunks`, or None in a lexical generation; never mixed.
        """

    async def seal(
        self,
        *,
        embedding_signature: str | None,
        main_language: str,
        commit_sha: str | None,
        source_digest: str,
    ) -> GenerationFacts:
        """Make it whole, immutable and readable; durable once this returns."""

    async def abort(self) -> None:
        """Drop all of it; repeatable, and harmless after `seal`."""


class VectorCache(Protocol):
    """Vectors by content hash, so that what did not change is not embedded again."""

    async def get(
        self, content_hashes: Sequence[str], *, tenant: str, project_id: str, signature: str
    ) -> Mapping[str, Vector]:
        """Return the known ones of at most 10,000; the sealed generations are the cache.

        A damaged generation knows none.
        """
