"""Chunks, vectors and generations for tests of passage indexes."""

import math
from array import array
from collections.abc import Mapping, Sequence

from ibid.domain.chunks_header import content_hash, header
from ibid.domain.passages import Chunk, Vector
from ibid.ports.index import Candidates, GenerationFacts, IndexQuery, PassageIndex

TENANT, PROJECT = "acme", "docs"
SIGNATURE = "model/3"


def chunk(path: str, at: int = 0, content: str = "text", symbol: str = "") -> Chunk:
    return Chunk(
        file_path=path,
        start_line=1 + 10 * at,
        end_line=10 + 10 * at,
        language="python",
        symbol=symbol,
        chunk_index=at,
        content=content,
        content_hash=content_hash(header(path, symbol), content),
        commit_sha="c0ffee",
    )


def unit(*values: float) -> Vector:
    length = math.sqrt(sum(value * value for value in values))
    return array("f", [value / length for value in values])


async def fill(
    index: PassageIndex,
    chunks: Sequence[Chunk],
    vectors: Sequence[Vector] | None = None,
    *,
    tenant: str = TENANT,
    project_id: str = PROJECT,
    generation: int = 1,
    signature: str = SIGNATURE,
) -> GenerationFacts:
    writer = await index.write(tenant=tenant, project_id=project_id, generation=generation)
    files = dict.fromkeys(each.file_path for each in chunks)
    for path in files:
        of_file = [number for number, each in enumerate(chunks) if each.file_path == path]
        await writer.add(
            [chunks[number] for number in of_file],
            None if vectors is None else [vectors[number] for number in of_file],
        )
    return await writer.seal(
        embedding_signature=None if vectors is None else signature,
        main_language="english",
        commit_sha="c0ffee",
        source_digest="digest",
    )


async def find(
    index: PassageIndex,
    terms: Mapping[str, float],
    *,
    vector: Vector | None = None,
    path_prefix: str | None = None,
    depth: int = 100,
    tenant: str = TENANT,
    project_id: str = PROJECT,
    generation: int = 1,
) -> Candidates:
    query = IndexQuery(terms=terms, vector=vector, path_prefix=path_prefix, depth=depth)
    return await index.candidates(
        query, tenant=tenant, project_id=project_id, generation=generation, timeout_s=30
    )
