"""Chunks and generations for tests of retrieval."""

from collections.abc import Mapping, Sequence

from ibid.domain.chunks_header import content_hash, embedded_text, header
from ibid.domain.passages import Chunk
from ibid.ports.embedder import Embedder
from ibid.ports.index import Candidate, PassageIndex
from ibid.retrieval.ranking import Ranked


def chunk(
    path: str = "a.py",
    content: str = "x = 1",
    *,
    start: int = 1,
    index: int = 0,
    symbol: str = "",
    language: str = "python",
) -> Chunk:
    return Chunk(
        file_path=path,
        start_line=start,
        end_line=start + content.count("\n"),
        language=language,
        symbol=symbol,
        chunk_index=index,
        content=content,
        content_hash=content_hash(header(path, symbol), content),
        commit_sha="c0ffee",
    )


def candidate(
    of: Chunk | None = None,
    *,
    bm25: float = 0.0,
    cosine: float = 0.0,
    document_bm25: float = 0.0,
    document_cosine: float = 0.0,
    file_chunks: int = 1,
) -> Candidate:
    return Candidate(
        chunk=of or chunk(),
        bm25=bm25,
        document_bm25=document_bm25,
        cosine=cosine,
        document_cosine=document_cosine,
        file_chunks=file_chunks,
    )


def ranked(of: Chunk, score: float = 1.0, *, cosine: float = 0.0) -> Ranked:
    return Ranked(candidate=candidate(of, cosine=cosine), score=score)


async def write(
    index: PassageIndex,
    files: Mapping[str, Sequence[str]],
    *,
    embedder: Embedder | None = None,
    generation: int = 1,
    main_language: str = "english",
) -> None:
    """Seal a generation of project `p` whose files have these contents, one after the other."""
    writer = await index.write(tenant="t", project_id="p", generation=generation)
    for path, contents in files.items():
        chunks = []
        start = 1
        for number, content in enumerate(contents):
            chunks.append(chunk(path, content, start=start, index=number))
            start = chunks[-1].end_line + 1
        texts = [embedded_text(each.file_path, each.symbol, each.content) for each in chunks]
        await writer.add(chunks, await embedder.embed_passages(texts) if embedder else None)
    await writer.seal(
        embedding_signature=embedder.signature if embedder else None,
        main_language=main_language,
        commit_sha="c0ffee",
        source_digest="d",
    )
