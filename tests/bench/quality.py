"""Retrieval figures of the measured data, through the product's own index and search.

Passages are measured at `PassageSearch.rank`: the order that `search` shows, before its floor,
merging and budget. Files are measured twice: in the order in which they first appear among the
ranked passages, and as `rank_files` orders them.
"""

import asyncio
import gzip
import hashlib
import json
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Self

from ibid.adapters.sqlite.index import SqlitePassageIndex
from ibid.domain.chunks_header import content_hash, embedded_text, header
from ibid.domain.languages import most_spoken
from ibid.domain.passages import Chunk, Vector
from ibid.indexing.chunking import chunk_file
from ibid.indexing.documents import Document, document_of, read_bytes
from ibid.indexing.walk import walk
from ibid.ports.embedder import Embedder
from ibid.retrieval.search import PassageSearch, Where
from tests.bench.metrics import hit, ndcg, recall, reciprocal_rank
from tests.bench.vector_folder import FolderCachedEmbedder

DEPTH: Final = 100
BATCH: Final = 256
HERE: Final[Where] = {"tenant": "t", "project_id": "p", "generation": 1, "timeout_s": 30.0}

SETS: Final[Mapping[str, Mapping[str, float]]] = {
    "scifact": {"BM25": 0.686, "MiniLM": 0.645, "RRF": 0.718, "min-max": 0.728, "floor": 0.735},
    "anthropic-codebase": {
        "BM25": 0.708,
        "MiniLM": 0.583,
        "RRF": 0.700,
        "min-max": 0.720,
        "floor": 0.738,
    },
    "cosqa-dev": {"BM25": 0.387, "floor": 0.560},
    "xquad-en": {"BM25": 0.969, "MiniLM": 0.942, "RRF": 0.973, "min-max": 0.980, "floor": 0.977},
    "xquad-es": {"BM25": 0.953, "MiniLM": 0.602, "RRF": 0.811, "min-max": 0.924, "floor": 0.965},
}
"""Baselines of the data's README, and the least that is asked of this project."""

REPOSITORIES: Final[Mapping[str, Mapping[str, tuple[float, float, float]]]] = {
    "flask": {"BM25 windows": (0.542, 0.896, 0.674), "floor": (0.77, 0.97, 0.87)},
    "requests": {"BM25 windows": (0.596, 0.936, 0.750), "floor": (0.83, 0.97, 0.90)},
}
"""hit@1, hit@5, MRR: the data's README, and the least that is asked of this project."""

_DIGITS_AS_LETTERS: Final = str.maketrans("0123456789", "ghijklmnop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question and the ids that answer it, with their gains."""

    text: str
    relevant: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Chunks by file, each with the id that judgements know it by, and the questions.

    Attributes:
        has_titles: The files' names tell something, so they are embedded with the text.
    """

    name: str
    files: Mapping[str, Sequence[Chunk]]
    ids: Mapping[tuple[str, int], str]
    queries: Sequence[Query]
    has_titles: bool


def measure_sets(
    shared: Path, *, embedder: Embedder | None, vectors: Path, names: Iterable[str] = SETS
) -> list[dict[str, Any]]:
    """Measure nDCG@10 and recall@10 on the BEIR-form sets.

    Args:
        shared: The folder that holds `data`.
        embedder: None measures BM25 alone.
        vectors: A folder that keeps vectors from run to run.
        names: Of `SETS`.

    Returns:
        A row a set: `set`, `queries`, `chunks`, `ndcg@10`, `recall@10`, and the `baselines`.
    """
    return asyncio.run(_measure_sets(shared, embedder, vectors, names))


def measure_files(
    shared: Path, *, embedder: Embedder | None, vectors: Path, names: Iterable[str] = REPOSITORIES
) -> list[dict[str, Any]]:
    """Measure hit@1, hit@5 and MRR by file on the SWE-QA repositories, cut by the own chunker.

    Arguments are those of `measure_sets`.

    Returns:
        Two rows a repository, `by` passages and files: `repository`, `by`, `queries`, `chunks`,
        `hit@1`, `hit@5`, `mrr`, and the `baselines`.
    """
    return asyncio.run(_measure_files(shared, embedder, vectors, names))


async def _measure_sets(
    shared: Path, embedder: Embedder | None, vectors: Path, names: Iterable[str]
) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        corpus = load_set(shared, name)
        async with _Indexed(corpus.files, embedder, vectors, titles=corpus.has_titles) as indexed:
            scores = []
            for query in corpus.queries:
                ranked = await indexed.passages(query.text)
                ids = [corpus.ids[chunk.file_path, chunk.chunk_index] for chunk in ranked]
                scores.append((ndcg(ids, query.relevant), recall(ids, query.relevant)))
            gains, recalls = zip(*scores, strict=True)
            rows.append(
                {
                    "set": name,
                    "queries": len(corpus.queries),
                    "chunks": indexed.chunks,
                    "ndcg@10": fmean(gains),
                    "recall@10": fmean(recalls),
                    "baselines": dict(SETS[name]),
                }
            )
    return rows


async def _measure_files(
    shared: Path, embedder: Embedder | None, vectors: Path, names: Iterable[str]
) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            files, queries = load_repository(shared, name, Path(folder))
        async with _Indexed(files, embedder, vectors, titles=True) as indexed:
            orders: dict[str, list[tuple[Sequence[str], Query]]] = defaultdict(list)
            for query in queries:
                passages = await indexed.passages(query.text)
                paths = list(dict.fromkeys(chunk.file_path for chunk in passages))
                orders["passages"].append((paths, query))
                orders["files"].append((await indexed.files(query.text), query))
            rows += [
                {
                    "repository": name,
                    "by": by,
                    "queries": len(queries),
                    "chunks": indexed.chunks,
                    "hit@1": fmean(hit(paths, query.relevant, depth=1) for paths, query in order),
                    "hit@5": fmean(hit(paths, query.relevant, depth=5) for paths, query in order),
                    "mrr": fmean(reciprocal_rank(paths, query.relevant) for paths, query in order),
                    "baselines": dict(REPOSITORIES[name]),
                }
                for by, order in orders.items()
            ]
    return rows


def load_set(shared: Path, name: str) -> Corpus:
    """Read a set: a document's title is its file, its paragraphs or pieces are the chunks.

    Where there are no titles the ids group the pieces (`anthropic-codebase`), or each is a file of
    its own; names that say nothing are spelt in letters that no question holds.
    """
    folder = shared / "data" / name
    gains: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
        query_id, corpus_id, gain = line.split("\t")
        if int(gain) > 0:
            gains[query_id][corpus_id] = int(gain)
    files: dict[str, list[Chunk]] = defaultdict(list)
    ids: dict[tuple[str, int], str] = {}
    has_titles = False
    for row in _lines(folder / "corpus.jsonl.gz"):
        title = (row.get("title") or "").replace("_", " ")
        has_titles = has_titles or bool(title)
        path = title if name.startswith("xquad") else _file_of(row["_id"], title, name)
        if path in files and not name.startswith(("xquad", "anthropic")):
            path = f"{path} {_opaque(row['_id'])}"
        chunk = _chunk(path, files[path], row["text"], code=not title)
        files[path].append(chunk)
        ids[path, chunk.chunk_index] = row["_id"]
    queries = [
        Query(text=row["text"], relevant=gains[row["_id"]])
        for row in _lines(folder / "queries.jsonl.gz")
        if row["_id"] in gains
    ]
    return Corpus(name=name, files=files, ids=ids, queries=queries, has_titles=has_titles)


def load_repository(
    shared: Path, name: str, folder: Path
) -> tuple[dict[str, Sequence[Chunk]], list[Query]]:
    """Unpack a repository, cut it as indexing does, and read the questions that name files."""
    data = shared / "data" / "swe-qa"
    [archive] = data.glob(f"{name}.source.*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    files: dict[str, Sequence[Chunk]] = {}
    for found in walk(folder).files:
        read = read_bytes(folder, found)
        document = None if read is None else document_of(found.path, read, None)
        if isinstance(document, Document):
            chunks = chunk_file(document.path, document.text, commit_sha=None).chunks
            if chunks:
                files[document.path] = chunks
    queries = [
        Query(text=row["text"], relevant=dict.fromkeys(row["gold_files"], 1))
        for row in _lines(data / f"{name}.queries.jsonl.gz")
        if row["gold_files"]
    ]
    return files, queries


class _Indexed:
    """One corpus in an index of its own, for as long as the context lasts."""

    def __init__(
        self,
        files: Mapping[str, Sequence[Chunk]],
        embedder: Embedder | None,
        vectors: Path,
        *,
        titles: bool,
    ) -> None:
        self._files = files
        self._embedder = FolderCachedEmbedder(embedder, vectors) if embedder else None
        self._titles = titles
        self._folder = tempfile.TemporaryDirectory()
        self._index = SqlitePassageIndex(Path(self._folder.name))
        self._search = PassageSearch(index=self._index, embedder=self._embedder)
        self.chunks = sum(map(len, files.values()))

    async def __aenter__(self) -> Self:
        vectors = await self._vectors()
        writer = await self._index.write(
            tenant=HERE["tenant"], project_id=HERE["project_id"], generation=HERE["generation"]
        )
        at = 0
        for chunks in self._files.values():
            await writer.add(chunks, vectors[at : at + len(chunks)] if vectors else None)
            at += len(chunks)
        await writer.seal(
            embedding_signature=self._embedder.signature if self._embedder else None,
            main_language=most_spoken(
                chunk.content for chunks in self._files.values() for chunk in chunks
            ),
            commit_sha=None,
            source_digest="bench",
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._embedder is not None:
            self._embedder.save()
        await self._index.close()
        self._folder.cleanup()

    async def passages(self, question: str) -> list[Chunk]:
        ranked = await self._search.rank(question, limit=DEPTH, **HERE)
        return [each.candidate.chunk for each in ranked]

    async def files(self, question: str) -> list[str]:
        ranked = await self._search.rank_files(question, limit=DEPTH, **HERE)
        return [each.file_path for each in ranked]

    async def _vectors(self) -> list[Vector]:
        if self._embedder is None:
            return []
        texts = [
            embedded_text(chunk.file_path, chunk.symbol, chunk.content)
            if self._titles
            else chunk.content
            for chunks in self._files.values()
            for chunk in chunks
        ]
        vectors: list[Vector] = []
        for at in range(0, len(texts), BATCH):
            vectors += await self._embedder.embed_passages(texts[at : at + BATCH])
            self._embedder.save()  # a long run that is stopped goes on where it was
        return vectors


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _file_of(row_id: str, title: str, name: str) -> str:
    if title:
        return title
    return _opaque(row_id.rsplit("_", 1)[0] if name.startswith("anthropic") else row_id)


def _opaque(row_id: str) -> str:
    return hashlib.sha256(row_id.encode()).hexdigest()[:16].translate(_DIGITS_AS_LETTERS)


def _chunk(path: str, before: Sequence[Chunk], text: str, *, code: bool) -> Chunk:
    start = before[-1].end_line + 1 if before else 1
    return Chunk(
        file_path=path,
        start_line=start,
        end_line=start + text.count("\n"),
        language="code" if code else "text",
        symbol="",
        chunk_index=len(before),
        content=text,
        content_hash=content_hash(header(path, ""), text),
        commit_sha=None,
    )
