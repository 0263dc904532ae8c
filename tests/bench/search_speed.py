"""How fast the embedded index is built and searched, on seeded corpora of a code base's shape.

Words follow Zipf's law and every third is an identifier of two; vectors lie in clusters, so that
both top lists are as crowded as real ones. Questions are ten words of one chunk. The embedder is
left out: its speed is measured elsewhere.
"""

import asyncio
import tempfile
import time
from array import array
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ibid.adapters.sqlite.index import SqlitePassageIndex
from ibid.domain.chunks_header import content_hash, header
from ibid.domain.passages import Chunk, Vector
from ibid.ports.index import IndexQuery
from ibid.retrieval.question import read_question
from ibid.retrieval.search import PassageSearch

WIDTH: Final = 384
VOCABULARY: Final = 40_000
WORDS_A_CHUNK: Final = 110
WORDS_A_LINE: Final = 6
CHUNKS_A_FILE: Final = 6
CLUSTERS: Final = 200
QUESTIONS: Final = 100
WORDS_A_QUESTION: Final = 10
BATCH: Final = 256
TENANT: Final = "bench"
PROJECT: Final = "synthetic"
SIGNATURE: Final = f"seeded/{WIDTH}"
TIMEOUT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Corpus:
    """Seeded chunks with their vectors, made batch by batch, and questions about them."""

    size: int
    seed: int = 7

    def batches(self) -> Iterator[tuple[list[Chunk], list[Vector]]]:
        """Give whole files at a time."""
        draw = np.random.default_rng(self.seed)
        words = _vocabulary(draw)
        identifiers = [f"{word}_{words[at * 7 % VOCABULARY]}" for at, word in enumerate(words)]
        odds = 1 / np.arange(1, VOCABULARY + 1) ** 1.05
        odds /= odds.sum()
        centres = draw.normal(size=(CLUSTERS, WIDTH))
        step = BATCH // CHUNKS_A_FILE * CHUNKS_A_FILE
        for start in range(0, self.size, step):
            numbers = range(start, min(start + step, self.size))
            picks = draw.choice(VOCABULARY, (len(numbers), WORDS_A_CHUNK), p=odds)
            joined = draw.random((len(numbers), WORDS_A_CHUNK)) < 1 / 3
            rows = centres[[number % CLUSTERS for number in numbers]]
            rows = rows + draw.normal(size=rows.shape) * 1.5
            yield (
                [
                    _chunk(
                        number,
                        _lines(
                            [
                                identifiers[at] if j else words[at]
                                for at, j in zip(pick, joins, strict=True)
                            ]
                        ),
                    )
                    for number, pick, joins in zip(
                        numbers, picks.tolist(), joined.tolist(), strict=True
                    )
                ],
                [_unit(row) for row in rows],
            )

    def questions(self) -> list[tuple[str, Vector]]:
        """Give questions that some chunk's words answer, with vectors near that chunk's."""
        draw = np.random.default_rng(self.seed + 1)
        chunks, vectors = next(self.batches())
        found = []
        for _ in range(QUESTIONS):
            at = int(draw.integers(len(chunks)))
            words = chunks[at].content.split()
            start = int(draw.integers(len(words) - WORDS_A_QUESTION))
            vector = np.asarray(vectors[at]) + draw.normal(size=WIDTH) * 0.03
            found.append((" ".join(words[start : start + WORDS_A_QUESTION]), _unit(vector)))
        return found


class GivenVector:
    """An embedder that takes no time."""

    signature = SIGNATURE
    languages = frozenset({"english"})

    def __init__(self) -> None:
        self.vector: Vector = array("f")

    async def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        return [self.vector for _ in texts]

    async def embed_query(self, text: str, *, timeout_s: float) -> Vector:
        del text, timeout_s
        return self.vector


def measure(sizes: Sequence[int] = (5_000, 50_000)) -> list[dict[str, Any]]:
    """Build and search a corpus of each size, print the figures and return them."""
    found = [asyncio.run(_measured(Corpus(size))) for size in sizes]
    for row in found:
        print("  ".join(f"{name} {value:,.1f}" for name, value in row.items()))
    return found


async def _measured(corpus: Corpus) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        index = SqlitePassageIndex(Path(folder))
        try:
            build_s, seal_s = await _build(index, corpus)
            file_bytes = sum(path.stat().st_size for path in Path(folder).rglob("*.ibid"))
            return {
                "chunks": corpus.size,
                "build_chunks_per_s": corpus.size / build_s,
                "seal_s": seal_s,
                "file_mb": file_bytes / 1e6,
                **await _searched(index, corpus),
            }
        finally:
            await index.close()


async def _build(index: SqlitePassageIndex, corpus: Corpus) -> tuple[float, float]:
    """Write the corpus; seconds in the writer as a whole, and in its sealing."""
    writer = await index.write(tenant=TENANT, project_id=PROJECT, generation=1)
    adding_s = 0.0
    for chunks, vectors in corpus.batches():
        start = time.perf_counter()
        await writer.add(chunks, vectors)
        adding_s += time.perf_counter() - start
    start = time.perf_counter()
    await writer.seal(
        embedding_signature=SIGNATURE,
        main_language="english",
        commit_sha=None,
        source_digest="seeded",
    )
    seal_s = time.perf_counter() - start
    return adding_s + seal_s, seal_s


async def _searched(index: SqlitePassageIndex, corpus: Corpus) -> dict[str, float]:
    embedder = GivenVector()
    search = PassageSearch(index=index, embedder=embedder)
    questions = corpus.questions()

    async def candidates(text: str, vector: Vector) -> object:
        terms = read_question(text, main_language="english").terms()
        query = IndexQuery(terms=terms, vector=vector)
        return await index.candidates(
            query, tenant=TENANT, project_id=PROJECT, generation=1, timeout_s=TIMEOUT_S
        )

    async def whole(text: str, vector: Vector) -> object:
        embedder.vector = vector
        return await search.search(
            text, tenant=TENANT, project_id=PROJECT, generation=1, timeout_s=TIMEOUT_S
        )

    start = time.perf_counter()
    await candidates(*questions[0])
    first_ms = (time.perf_counter() - start) * 1e3
    return {
        "first_ms": first_ms,  # opens the file and checks it whole
        **await _percentiles("candidates", candidates, questions),
        **await _percentiles("search", whole, questions),
    }


async def _percentiles(
    name: str,
    act: Callable[[str, Vector], Awaitable[object]],
    questions: Sequence[tuple[str, Vector]],
) -> dict[str, float]:
    times = []
    for text, vector in questions:
        start = time.perf_counter()
        await act(text, vector)
        times.append((time.perf_counter() - start) * 1e3)
    p50, p95 = np.percentile(times, [50, 95])
    return {f"{name}_p50_ms": float(p50), f"{name}_p95_ms": float(p95)}


def _vocabulary(draw: np.random.Generator) -> list[str]:
    syllables = ["".join(pair) for pair in product("bcdfghjklmnprstvz", "aeiou")]
    syllables = [str(each) for each in draw.permutation(syllables)]
    return [
        "".join(syllables[part % len(syllables)] for part in parts)
        for parts in draw.integers(0, len(syllables), (VOCABULARY, 3)).tolist()
    ]


def _lines(words: Sequence[str]) -> str:
    return "\n".join(
        " ".join(words[at : at + WORDS_A_LINE]) for at in range(0, len(words), WORDS_A_LINE)
    )


def _chunk(number: int, content: str) -> Chunk:
    file, at = divmod(number, CHUNKS_A_FILE)
    path, symbol = f"src/package_{file % 97}/module_{file}.py", f"Thing{file}.method_{at}"
    lines = content.count("\n") + 1
    return Chunk(
        file_path=path,
        start_line=1 + at * lines,
        end_line=(at + 1) * lines,
        language="python",
        symbol=symbol,
        chunk_index=at,
        content=content,
        content_hash=content_hash(header(path, symbol), content),
        commit_sha=None,
    )


def _unit(row: npt.NDArray[np.float64]) -> Vector:
    return array("f", (row / np.linalg.norm(row)).astype(np.float32).tobytes())


if __name__ == "__main__":
    measure()
