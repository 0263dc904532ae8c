"""A passage index in memory: the recipe's formulas word for word, nothing made faster."""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ibid.domain.analysis import analyse, pairs
from ibid.domain.chunks_header import bm25_header
from ibid.domain.errors import GenerationGone, ValidationFailed
from ibid.domain.pages import Page
from ibid.domain.passages import Chunk, Vector
from ibid.ports.index import (
    Candidate,
    Candidates,
    GenerationFacts,
    IndexQuery,
    PathList,
)

K1 = 1.2
B = 0.75
TOP = 10

Key = tuple[str, str, int]


class Bm25:
    """Lucene's BM25 over bags of terms; `lengths` count single words only."""

    def __init__(self, bags: Sequence[Mapping[str, int]], lengths: Sequence[int]) -> None:
        self.bags = bags
        self.lengths = lengths
        self.mean_length = sum(lengths) / len(lengths) if sum(lengths) else 1.0
        self.frequency = Counter(term for bag in bags for term in bag)

    def scores(self, terms: Mapping[str, float]) -> list[float]:
        count = len(self.bags)
        known = [
            (term, weight * math.log(1 + (count - df + 0.5) / (df + 0.5)))
            for term, weight in terms.items()
            if (df := self.frequency.get(term, 0))
        ]
        return [
            math.fsum(
                weight * bag[term] / (bag[term] + K1 * (1 - B + B * length / self.mean_length))
                for term, weight in known
                if term in bag
            )
            for bag, length in zip(self.bags, self.lengths, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Sealed:
    """A generation that can be read: chunks by path, then index."""

    chunks: Sequence[Chunk]
    vectors: Sequence[Vector] | None
    facts: GenerationFacts
    files: Mapping[str, Sequence[int]]
    by_chunk: Bm25
    by_file: Bm25
    file_vectors: Mapping[str, Vector]


@dataclass(slots=True)
class FakePassageIndex:
    """Implements `PassageIndex` and `VectorCache`."""

    sealed: dict[Key, Sealed] = field(default_factory=dict)
    open: dict[Key, "FakeWriter"] = field(default_factory=dict)

    async def candidates(
        self,
        query: IndexQuery,
        *,
        tenant: str,
        project_id: str,
        generation: int,
        timeout_s: float,
    ) -> Candidates:
        del timeout_s  # memory answers at once
        at = self._read(tenant, project_id, generation)
        singles = {term: weight for term, weight in query.terms.items() if " " not in term}
        by_chunk = at.by_chunk.scores(query.terms)
        by_file = dict(zip(at.files, at.by_file.scores(singles), strict=True))
        vector = query.vector
        cosines = (
            [dot(vector, each) for each in at.vectors]
            if vector is not None and at.vectors is not None
            else None
        )
        allowed = [
            number
            for number, chunk in enumerate(at.chunks)
            if query.path_prefix is None or chunk.file_path.startswith(query.path_prefix)
        ]
        lexical = sorted(
            (number for number in allowed if by_chunk[number] > 0),
            key=lambda number: (-by_chunk[number], number),
        )
        union = dict.fromkeys(lexical[: query.depth])
        if cosines is not None:
            near = sorted(allowed, key=lambda number: (-cosines[number], number))
            union |= dict.fromkeys(near[: query.depth])
        return Candidates(
            items=[
                Candidate(
                    chunk=(chunk := at.chunks[number]),
                    bm25=by_chunk[number],
                    document_bm25=by_file[chunk.file_path],
                    cosine=cosines[number] if cosines is not None else 0.0,
                    document_cosine=dot(vector, at.file_vectors[chunk.file_path])
                    if vector is not None and at.file_vectors
                    else 0.0,
                    file_chunks=len(at.files[chunk.file_path]),
                )
                for number in union
            ],
            top_bm25=[by_chunk[number] for number in lexical[:TOP]],
            document_frequency={term: at.by_chunk.frequency[term] for term in singles},
            chunk_count=len(at.chunks),
        )

    async def facts(self, *, tenant: str, project_id: str, generation: int) -> GenerationFacts:
        return self._read(tenant, project_id, generation).facts

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
        chunks = [
            chunk
            for chunk in self._read(tenant, project_id, generation).chunks
            if chunk.file_path.startswith(path_prefix)
        ]
        if cursor is not None and not (cursor.isascii() and cursor.isdigit()):
            raise ValidationFailed("cursor is not one of this list's", {"cursor": "unknown"})
        start = int(cursor or 0)
        end = start + limit
        return Page(items=chunks[start:end], next_cursor=str(end) if end < len(chunks) else None)

    async def paths(
        self, *, tenant: str, project_id: str, generation: int, prefix: str, limit: int
    ) -> PathList:
        files = self._read(tenant, project_id, generation).files
        paths = [path for path in files if path.startswith(prefix)]
        return PathList(paths=paths[:limit], truncated=len(paths) > limit)

    async def write(self, *, tenant: str, project_id: str, generation: int) -> "FakeWriter":
        writer = FakeWriter(self, (tenant, project_id, generation))
        self.open[writer.key] = writer
        return writer

    async def generations(self, *, tenant: str, project_id: str) -> Sequence[int]:
        return sorted(
            {key[2] for key in (*self.sealed, *self.open) if key[:2] == (tenant, project_id)}
        )

    async def delete(self, *, tenant: str, project_id: str, generation: int) -> None:
        key = (tenant, project_id, generation)
        self.sealed.pop(key, None)
        self.open.pop(key, None)

    async def delete_project(self, *, tenant: str, project_id: str) -> None:
        for generation in await self.generations(tenant=tenant, project_id=project_id):
            await self.delete(tenant=tenant, project_id=project_id, generation=generation)

    async def get(
        self, content_hashes: Sequence[str], *, tenant: str, project_id: str, signature: str
    ) -> Mapping[str, Vector]:
        wanted = set(content_hashes)
        return {
            chunk.content_hash: vector
            for key, at in sorted(self.sealed.items())
            if key[:2] == (tenant, project_id)
            and at.vectors is not None
            and at.facts.embedding_signature == signature
            for chunk, vector in zip(at.chunks, at.vectors, strict=True)
            if chunk.content_hash in wanted
        }

    def _read(self, tenant: str, project_id: str, generation: int) -> Sealed:
        at = self.sealed.get((tenant, project_id, generation))
        if at is None:
            raise GenerationGone(f"generation {generation} of project {project_id!r} is gone")
        return at


class FakeWriter:
    """Implements `GenerationWriter`."""

    def __init__(self, index: FakePassageIndex, key: Key) -> None:
        self.key = key
        self._index = index
        self._rows: list[tuple[Chunk, Vector | None]] = []

    async def add(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None) -> None:
        self._rows += zip(
            chunks, vectors if vectors is not None else [None] * len(chunks), strict=True
        )

    async def seal(
        self,
        *,
        embedding_signature: str | None,
        main_language: str,
        commit_sha: str | None,
        source_digest: str,
    ) -> GenerationFacts:
        rows = sorted(self._rows, key=lambda row: (row[0].file_path, row[0].chunk_index))
        chunks = [chunk for chunk, _ in rows]
        vectors = [vector for _, vector in rows if vector is not None]
        files: dict[str, list[int]] = defaultdict(list)
        for number, chunk in enumerate(chunks):
            files[chunk.file_path].append(number)
        facts = GenerationFacts(
            embedding_signature=embedding_signature,
            main_language=main_language,
            chunk_count=len(chunks),
            path_count=len(files),
            commit_sha=commit_sha,
            source_digest=source_digest,
        )
        texts = [analyse(chunk.content, language=main_language) for chunk in chunks]
        headers = [
            analyse(bm25_header(chunk.file_path, chunk.symbol), language=main_language)
            for chunk in chunks
        ]
        words = [[*head, *text] for head, text in zip(headers, texts, strict=True)]
        of_files = [
            [word for number in numbers for word in texts[number]] for numbers in files.values()
        ]
        self._index.sealed[self.key] = Sealed(
            chunks=chunks,
            vectors=vectors if embedding_signature is not None else None,
            facts=facts,
            files=files,
            by_chunk=Bm25(
                [
                    Counter([*single, *pairs(text)])
                    for single, text in zip(words, texts, strict=True)
                ],
                [len(each) for each in words],
            ),
            by_file=Bm25([Counter(each) for each in of_files], [len(each) for each in of_files]),
            file_vectors={
                path: mean_of(vectors[number] for number in numbers)
                for path, numbers in files.items()
            }
            if embedding_signature is not None
            else {},
        )
        self._index.open.pop(self.key, None)
        return facts

    async def abort(self) -> None:
        if self._index.open.get(self.key) is self:
            del self._index.open[self.key]


def dot(one: Vector, other: Vector) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def mean_of(vectors: Iterable[Vector]) -> Vector:
    """Sum, then normalise: the direction of the mean; zeros where the vectors cancel out."""
    sums = [math.fsum(column) for column in zip(*vectors, strict=True)]
    length = math.sqrt(math.fsum(value * value for value in sums))
    return array("f", [value / length if length else 0.0 for value in sums])
