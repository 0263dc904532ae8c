"""One project on fakes, whose calls can be made to fail one at a time."""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ibid.domain.errors import (
    EmbedderUnavailable,
    IbidError,
    StoreUnavailable,
    VectorStoreUnavailable,
)
from ibid.domain.passages import Chunk
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
)
from ibid.indexing.pipeline import ProjectIndexer
from ibid.indexing.sources import SourceOpener
from tests.fakes.clock import FakeClock
from tests.fakes.embedder import HashingEmbedder
from tests.fakes.index import FakePassageIndex
from tests.fakes.objects import FakeObjects
from tests.fakes.records import FakeRecords

TENANT = "acme"
PROJECT = "prj"
OWNER = "me"


@dataclass
class Faults:
    """Counts calls; does `act` at the chosen one, before or after the real call."""

    calls: int = 0
    at: int | None = None
    after: bool = False
    act: Callable[[IbidError], None] | None = None
    names: list[str] = field(default_factory=list)

    def proxy(self, inner: object, error: IbidError) -> Any:  # noqa: ANN401 - what is wrapped
        return _Proxy(inner, self, error)

    def strike(self, error: IbidError) -> None:
        if self.act is None:
            raise error
        self.act(error)


class _Proxy:
    def __init__(self, inner: object, faults: Faults, error: IbidError) -> None:
        self._inner = inner
        self._faults = faults
        self._error = error

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what is wrapped
        found = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*args: object, **keywords: object) -> object:
            faults = self._faults
            number, faults.calls = faults.calls, faults.calls + 1
            faults.names.append(name)
            if number == faults.at and not faults.after:
                faults.strike(self._error)
                await asyncio.sleep(0)
            result = await found(*args, **keywords)
            if number == faults.at and faults.after:
                faults.strike(self._error)
                await asyncio.sleep(0)
            return faults.proxy(result, self._error) if name == "write" else result

        return call


@dataclass
class World:
    """A project, its source folder and all stores."""

    folder: Path
    embedder: HashingEmbedder | None = field(default_factory=HashingEmbedder)
    records: FakeRecords = field(default_factory=FakeRecords)
    index: FakePassageIndex = field(default_factory=FakePassageIndex)
    objects: FakeObjects = field(default_factory=FakeObjects)
    faults: Faults = field(default_factory=Faults)
    beat_s: float = 5.0
    sources: SourceOpener | None = None
    runs: int = 0

    async def create(self, source: Source | None = None) -> None:
        await self.records.projects.create(
            Project(
                tenant=TENANT,
                id=PROJECT,
                name="x",
                members={"ann": Role.OWNER},
                status=ProjectStatus.EMPTY,
                source=source or FolderSource(path=str(self.folder)),
                reply_language=None,
                settings=ProjectSettings(),
                active_generation=None,
                reindex_in_progress=False,
                embedding_signature=None,
                chunk_count=0,
                path_count=0,
                commit_sha=None,
                created_at=FakeClock().now(),
            )
        )

    def write(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            target = self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)

    async def begin(self) -> Job:
        self.runs += 1
        job = Job(
            tenant=TENANT,
            id=f"job_{self.runs}",
            project_id=PROJECT,
            state=JobState.QUEUED,
            phase="queued",
            statistics=JobStatistics(),
            error=None,
            started_at=FakeClock().now(),
            finished_at=None,
        )
        assert await self.records.jobs.begin(job, owner=OWNER) is None
        return job

    def indexer(self) -> ProjectIndexer:
        wrap = self.faults.proxy
        store = StoreUnavailable("the store is away")
        vectors = VectorStoreUnavailable("the index is away")
        return ProjectIndexer(
            projects=wrap(self.records.projects, store),
            jobs=wrap(self.records.jobs, store),
            index=wrap(self.index, vectors),
            vectors=wrap(self.index, vectors),
            embedder=None
            if self.embedder is None
            else wrap(self.embedder, EmbedderUnavailable("the model is away")),
            objects=self.objects,
            clock=FakeClock(),
            sources=self.sources,
            beat_s=self.beat_s,
        )

    async def run(self, *, force: bool = False) -> Job:
        job = await self.begin()
        await self.indexer().run(job, owner=OWNER, force=force)
        return await self.records.jobs.get(job.id, tenant=TENANT)

    async def project(self) -> Project:
        return await self.records.projects.get(PROJECT, tenant=TENANT)

    async def chunks(self) -> Sequence[Chunk]:
        """Read the active generation."""
        project = await self.project()
        assert project.active_generation is not None
        page = await self.index.scroll(
            tenant=TENANT,
            project_id=PROJECT,
            generation=project.active_generation,
            path_prefix="",
            cursor=None,
            limit=1_000,
        )
        return page.items

    async def generations(self) -> Sequence[int]:
        return await self.index.generations(tenant=TENANT, project_id=PROJECT)

    def heal(self) -> None:
        self.faults.at = None


def counts(job: Job) -> JobStatistics:
    """Return what a job counted, without what it skipped."""
    return replace(job.statistics, skipped={})
