"""Builds a project's next generation, or on its first index the next two."""

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field

from ibid.domain.errors import IbidError
from ibid.domain.languages import most_spoken
from ibid.domain.projects import Project
from ibid.indexing.changes import (
    Changes,
    FileMark,
    compare,
    hashes_of,
    marks_of_generation,
)
from ibid.indexing.corpus import Corpus, SourceDigest
from ibid.indexing.generations import Draft, Generations
from ibid.indexing.progress import JobProgress
from ibid.indexing.vectors import KnownVectors, grouped, write_with_vectors
from ibid.ports.embedder import Embedder
from ibid.ports.index import GenerationFacts, PassageIndex, VectorCache

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Reading:
    """What one cutting of the whole source gave."""

    digest: SourceDigest = field(default_factory=SourceDigest)
    fallbacks: Counter[str] = field(default_factory=Counter)
    marks: dict[str, FileMark] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Build:
    """One job's building.

    Attributes:
        project: As it was when the job began.
        before: Of its active generation, None if there is none.
        corpus: Surveyed.
        progress: Told of phases and counts.
        generations: The project's.
        index: Read for what the generation before held.
        vectors: Knows what need not be embedded.
        embedder: None builds a lexical generation only.
    """

    project: Project
    before: GenerationFacts | None
    corpus: Corpus
    progress: JobProgress
    generations: Generations
    index: PassageIndex
    vectors: VectorCache
    embedder: Embedder | None
    _language: str = "english"

    async def run(self) -> None:
        """Build, flip, and delete what is not kept for rollback."""
        self._language = await asyncio.to_thread(most_spoken, self.corpus.survey.samples)
        reading = _Reading()
        old_marks = await marks_of_generation(
            self.index,
            tenant=self.project.tenant,
            project_id=self.project.id,
            generation=None if self.before is None else self.project.active_generation,
        )
        flipped: Draft | None = None
        if self.before is None or self.embedder is None:
            flipped = await self._build_lexical(reading)
        else:
            await self._read(reading, None)
        changes = compare(old_marks, reading.marks)
        self._tell(changes, reading)
        if self.embedder is not None:
            flipped = await self._build_with_vectors(reading, self.embedder)
        if flipped is not None and flipped.facts is not None:
            self.progress.count(chunks=flipped.facts.chunk_count)
            await self._clean_up(flipped, flipped.facts, changes)

    def _tell(self, changes: Changes, reading: _Reading) -> None:
        self.progress.count(
            new=changes.new,
            modified=changes.modified,
            deleted=changes.deleted,
            unchanged=changes.unchanged,
            failed=reading.fallbacks.total(),
        )
        if reading.fallbacks:
            logger.info("files cut into plain windows", extra={"files": dict(reading.fallbacks)})

    async def _read(self, reading: _Reading, draft: Draft | None) -> None:
        """Cut every file, and write the chunks without vectors if there is a draft."""
        count = 0
        async for group in grouped(self.corpus.chunks(reading.digest, reading.fallbacks)):
            by_path: dict[str, list[tuple[int, str]]] = {}
            for chunk in group:
                mark = (chunk.start_line, chunk.content_hash)
                by_path.setdefault(chunk.file_path, []).append(mark)
            reading.marks.update((path, tuple(mark)) for path, mark in by_path.items())
            count += len(group)
            if draft is not None:
                await draft.writer.add(group, None)
            self.progress.count(chunks=count)

    async def _build_lexical(self, reading: _Reading) -> Draft:
        self.progress.enter("lexical")
        async with self.generations.drafting(await self._next_number()) as draft:
            await self._read(reading, draft)
            await self._flip(draft, reading, None)
            return draft

    async def _build_with_vectors(self, planned: _Reading, embedder: Embedder) -> Draft:
        known = KnownVectors(
            self.vectors,
            tenant=self.project.tenant,
            project_id=self.project.id,
            signature=embedder.signature,
        )
        to_embed = await known.count_unknown(hashes_of(planned.marks))
        self.progress.enter("embedding", chunks_to_embed=to_embed)
        reading = _Reading()
        async with self.generations.drafting(await self._next_number()) as draft:
            await write_with_vectors(
                grouped(self.corpus.chunks(reading.digest, reading.fallbacks)),
                known=known,
                embedder=embedder,
                writer=draft.writer,
                embedded=self._count_embedded,
            )
            await self._flip(draft, reading, embedder.signature)
            return draft

    async def _next_number(self) -> int:
        return await self.generations.next_number(self.project.active_generation)

    def _count_embedded(self, chunks: int) -> None:
        self.progress.count(chunks_embedded=self.progress.statistics.chunks_embedded + chunks)

    async def _flip(self, draft: Draft, reading: _Reading, signature: str | None) -> None:
        await self.generations.flip(
            draft,
            embedding_signature=signature,
            main_language=self._language,
            commit_sha=self.corpus.survey.commit_sha,
            source_digest=reading.digest.with_embedder(signature),
        )

    async def _clean_up(self, flipped: Draft, facts: GenerationFacts, changes: Changes) -> None:
        """Keep one generation for rollback, unless it is of less use or holds a deleted file."""
        rollback = self.project.active_generation if self.before is not None else None
        if self.before is not None and self.before.embedding_signature is None:
            rollback = rollback if facts.embedding_signature is None else None
        if not changes.deleted:
            try:
                await self.generations.keep_only(flipped.number, rollback)
            except IbidError as error:  # the next job's clean-up finds them
                logger.warning("generations not deleted", extra={"code": error.code})
            return
        await self.generations.keep_only(flipped.number)
