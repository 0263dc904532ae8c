"""Chunks get their vectors: the known ones from the cache, the others from the embedder.

Three stages run at once, parted by short queues, so that the embedder, by far the slowest, never
waits for the cutting before it or the writing after it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from ibid.domain.chunks_header import embedded_text
from ibid.domain.errors import EmbedderUnavailable
from ibid.domain.passages import Chunk, Vector
from ibid.ports.embedder import Embedder
from ibid.ports.index import GenerationWriter, VectorCache

BATCH = 64
GROUP = 512
_AHEAD = 2

T = TypeVar("T")
Known = Mapping[str, Vector]


class KnownVectors:
    """A project's vectors of one signature, by content hash."""

    def __init__(self, cache: VectorCache, *, tenant: str, project_id: str, signature: str) -> None:
        self._cache = cache
        self._tenant = tenant
        self._project_id = project_id
        self._signature = signature

    async def among(self, content_hashes: Sequence[str]) -> Known:
        """Return those of the given hashes that are known."""
        return await self._cache.get(
            content_hashes,
            tenant=self._tenant,
            project_id=self._project_id,
            signature=self._signature,
        )

    async def count_unknown(self, content_hashes: Sequence[str]) -> int:
        """Count the chunks that will have to be embedded."""
        unknown = 0
        for start in range(0, len(content_hashes), GROUP):
            some = content_hashes[start : start + GROUP]
            known = await self.among(some)
            unknown += sum(content_hash not in known for content_hash in some)
        return unknown


async def grouped(
    files: Iterator[Sequence[Chunk]], *, size: int = GROUP
) -> AsyncIterator[list[Chunk]]:
    """Cut files in threads, and give whole files' chunks in groups of at least `size`."""

    def next_group() -> list[Chunk]:
        group: list[Chunk] = []
        for chunks in files:
            group.extend(chunks)
            if len(group) >= size:
                break
        return group

    while group := await asyncio.to_thread(next_group):
        yield group


async def write_with_vectors(
    groups: AsyncIterator[list[Chunk]],
    *,
    known: KnownVectors,
    embedder: Embedder,
    writer: GenerationWriter,
    embedded: Callable[[int], None],
) -> None:
    """Write every chunk with its vector.

    Args:
        groups: Whole files' chunks, each group embedded as one.
        known: Vectors that need not be made.
        embedder: Makes the others.
        writer: Takes all.
        embedded: Told the number of chunks after each batch that was embedded.
    """
    cut: asyncio.Queue[tuple[list[Chunk], Known] | None] = asyncio.Queue(_AHEAD)
    made: asyncio.Queue[tuple[list[Chunk], list[Vector]] | None] = asyncio.Queue(_AHEAD)

    async def look_up() -> None:
        async for group in groups:
            hashes = [chunk.content_hash for chunk in group]
            await cut.put((group, await known.among(hashes)))
        await cut.put(None)

    async def embed() -> None:
        while (group := await cut.get()) is not None:
            chunks, vectors = group
            await made.put((chunks, await _vectors(chunks, vectors, embedder, embedded)))
        await made.put(None)

    async def write() -> None:
        while (group := await made.get()) is not None:
            await writer.add(*group)

    await _all_or_none(look_up(), embed(), write())


async def _vectors(
    chunks: Sequence[Chunk], known: Known, embedder: Embedder, embedded: Callable[[int], None]
) -> list[Vector]:
    """Make what is not known, texts of like length together: a batch is as slow as its longest."""
    unknown = {
        chunk.content_hash: embedded_text(chunk.file_path, chunk.symbol, chunk.content)
        for chunk in chunks
        if chunk.content_hash not in known
    }
    vectors = dict(known)
    by_length = iter(sorted(unknown.items(), key=lambda item: len(item[1])))
    while batch := list(islice(by_length, BATCH)):
        made = await embedder.embed_passages([text for _, text in batch])
        if len(made) != len(batch):
            raise EmbedderUnavailable(f"{len(made)} vectors for {len(batch)} texts")
        vectors.update(
            (content_hash, vector) for (content_hash, _), vector in zip(batch, made, strict=True)
        )
        embedded(len(batch))
    return [vectors[chunk.content_hash] for chunk in chunks]


async def _all_or_none(*stages: Coroutine[Any, Any, None]) -> None:
    """Await all stages; when one fails, cancel and await the others, then raise its error."""
    tasks = [asyncio.create_task(stage) for stage in stages]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
