"""How fast a source is indexed: everything but the embedder, and the embedder kept busy or not."""

import asyncio
import os
import sys
import tempfile
import time
from array import array
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ibid.adapters.folder_objects import FolderObjects
from ibid.adapters.sqlite.index import SqlitePassageIndex
from ibid.adapters.sqlite.records import SqliteRecords
from ibid.adapters.system_clock import SystemClock
from ibid.domain.passages import Vector
from ibid.domain.projects import (
    FolderSource,
    Job,
    JobState,
    JobStatistics,
    Project,
    ProjectSettings,
    ProjectStatus,
    Role,
    Source,
    UploadSource,
)
from ibid.domain.uploads import upload_key
from ibid.indexing.pipeline import ProjectIndexer
from ibid.ports.embedder import Embedder
from tests.bench.embed_speed import count_tokens
from tests.bench.embed_speed import measure as measure_bare

TENANT: Final = "bench"
PROJECT: Final = "source"
OWNER: Final = "bench"
WIDTH: Final = 384
MAX_BYTES: Final = 1 << 30


@dataclass(slots=True)
class InstantEmbedder:
    """Costs nothing, so that what is left is everything else."""

    signature: str = "instant"
    languages: frozenset[str] = frozenset({"english"})

    async def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        return [_unit(len(text)) for text in texts]

    async def embed_query(self, text: str, *, timeout_s: float) -> Vector:
        del timeout_s
        return _unit(len(text))


def _unit(seed: int) -> Vector:
    values = array("f", bytes(4 * WIDTH))
    values[seed % WIDTH] = 1.0
    return values


class RecordingEmbedder:
    """Another embedder, with every passage text kept."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.texts: list[str] = []

    @property
    def signature(self) -> str:
        return self._inner.signature

    @property
    def languages(self) -> frozenset[str]:
        return self._inner.languages

    async def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        self.texts.extend(texts)
        return await self._inner.embed_passages(texts)

    async def embed_query(self, text: str, *, timeout_s: float) -> Vector:
        return await self._inner.embed_query(text, timeout_s=timeout_s)


@dataclass(slots=True)
class Bench:
    """One project on a data folder of its own."""

    records: SqliteRecords
    index: SqlitePassageIndex
    indexer: ProjectIndexer
    jobs: int = 0

    async def run(self) -> tuple[float, JobStatistics]:
        """Index once; return the seconds it took, and what it counted."""
        self.jobs += 1
        job = Job(
            tenant=TENANT,
            id=f"job_{self.jobs}",
            project_id=PROJECT,
            state=JobState.QUEUED,
            phase="queued",
            statistics=JobStatistics(),
            error=None,
            started_at=SystemClock().now(),
            finished_at=None,
        )
        if await self.records.jobs.begin(job, owner=OWNER) is not None:
            raise RuntimeError("another job is live")
        begun = time.perf_counter()
        await self.indexer.run(job, owner=OWNER)
        seconds = time.perf_counter() - begun
        ended = await self.records.jobs.get(job.id, tenant=TENANT)
        if ended.state is not JobState.SUCCEEDED:
            raise RuntimeError(f"the job failed: {ended.error}")
        return seconds, ended.statistics


@asynccontextmanager
async def opened(source: Path, embedder: Embedder | None) -> AsyncIterator[Bench]:
    """Make a project of a folder or an archive, on stores in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        data, clock = Path(folder), SystemClock()
        records = await SqliteRecords.open(data / "records")
        index = SqlitePassageIndex(data / "generations")
        objects = FolderObjects(data / "objects")
        await records.projects.create(
            Project(
                tenant=TENANT,
                id=PROJECT,
                name="bench",
                members={OWNER: Role.OWNER},
                status=ProjectStatus.EMPTY,
                source=await _source(source, objects),
                reply_language=None,
                settings=ProjectSettings(),
                active_generation=None,
                reindex_in_progress=False,
                embedding_signature=None,
                chunk_count=0,
                path_count=0,
                commit_sha=None,
                created_at=clock.now(),
            )
        )
        indexer = ProjectIndexer(
            projects=records.projects,
            jobs=records.jobs,
            index=index,
            vectors=index,
            embedder=embedder,
            objects=objects,
            clock=clock,
        )
        try:
            yield Bench(records, index, indexer)
        finally:
            await index.close()
            await records.close()


async def _source(source: Path, objects: FolderObjects) -> Source:
    if source.is_dir():
        return FolderSource(path=str(source))

    async def content() -> AsyncIterator[bytes]:
        yield source.read_bytes()

    key = upload_key(tenant=TENANT, project_id=PROJECT, upload_id="up", file_name=source.name)
    await objects.put(key, content(), max_bytes=MAX_BYTES)
    return UploadSource(upload_id="up", file_name=source.name)


async def measure(
    source: Path,
    embedder: Embedder | None,
    bare_rate: Callable[[Sequence[str]], float] | None = None,
) -> dict[str, float]:
    """Index a folder or an archive several times over.

    Args:
        source: The folder, or the `.zip`, `.tar`, `.tar.gz` or `.tgz`.
        embedder: The real one; None leaves out all that needs it.
        bare_rate: Tokens a second of the bare embedder on the texts given, measured after the
            run; None leaves out the ratio.

    Returns:
        `chunks`, `files`; `lexical_s`, the whole lexical index; `rest_s` and
        `rest_chunks_per_s`, a first index without what the embedder costs, both generations
        of it; `unchanged_share`, an index of nothing new as a share of the first. With an
        embedder: `run_s`, `run_tokens_per_s`, `run_chunks_per_s`, `unchanged_run_share`, and,
        with a bare rate, `bare_tokens_per_s` and `of_bare`.
    """
    async with opened(source, None) as bench:
        lexical_s, counts = await bench.run()
        again_s, _ = await bench.run()
    async with opened(source, InstantEmbedder()) as bench:
        rest_s, _ = await bench.run()
    figures = {
        "chunks": float(counts.chunks),
        "files": float(counts.new),
        "lexical_s": lexical_s,
        "rest_s": rest_s,
        "rest_chunks_per_s": counts.chunks / rest_s,
        "unchanged_share": again_s / lexical_s,
    }
    if embedder is None:
        return figures
    await embedder.embed_passages(["warm"])
    recording = RecordingEmbedder(embedder)
    async with opened(source, recording) as bench:
        run_s, _ = await bench.run()
        texts = list(recording.texts)
        again_s, _ = await bench.run()
        if len(recording.texts) > len(texts):
            raise RuntimeError("something was embedded though nothing had changed")
    tokens = count_tokens(texts)
    figures |= {
        "run_s": run_s,
        "run_tokens_per_s": tokens / run_s,
        "run_chunks_per_s": counts.chunks / run_s,
        "unchanged_run_share": again_s / run_s,
    }
    if bare_rate is not None:
        bare = bare_rate(texts)
        figures |= {"bare_tokens_per_s": bare, "of_bare": tokens / run_s / bare}
    return figures


def main() -> None:
    """Measure the source named on the command line; a second argument is the models' cache."""
    source = Path(sys.argv[1]).resolve()
    embedder: Embedder | None = None
    bare: Callable[[Sequence[str]], float] | None = None
    if len(sys.argv) > 2:
        from ibid.adapters.embedders.minilm import open_minilm  # noqa: PLC0415 - only if wanted

        cache = Path(sys.argv[2])
        embedder = open_minilm(cache)

        def bare(texts: Sequence[str]) -> float:
            return measure_bare(texts, cache=cache)["tokens_per_s"]

    figures = asyncio.run(measure(source, embedder, bare))
    print(f"{source.name}, {os.cpu_count()} cores")
    for name, value in figures.items():
        print(f"{name:20} {value:12.3f}")


if __name__ == "__main__":
    main()
