"""One indexing job, from its source to the flip of the active generation and the job's end."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from ibid.domain.errors import (
    GenerationDamaged,
    GenerationGone,
    IbidError,
    LeaseLost,
    SourceRejected,
    StoreUnavailable,
)
from ibid.domain.projects import Job, JobError, JobState, Project
from ibid.indexing.build import Build
from ibid.indexing.corpus import Corpus, SourceDigest
from ibid.indexing.ending import to_the_end
from ibid.indexing.generations import Generations
from ibid.indexing.progress import BEAT_S, JobProgress
from ibid.indexing.sources import SourceOpener
from ibid.ports.clock import Clock
from ibid.ports.embedder import Embedder
from ibid.ports.index import GenerationFacts, PassageIndex, VectorCache
from ibid.ports.objects import ObjectStore
from ibid.ports.projects import JobStore, ProjectStore

FILES_A_STEP = 200
END_ATTEMPTS = 3

logger = logging.getLogger(__name__)


class ProjectIndexer:
    """Runs indexing jobs; one object serves any number of them at once.

    Args:
        projects: Where the source is named and the pointer to the active generation is.
        jobs: Where jobs tell how they go on, and end.
        index: Takes the generations.
        vectors: Knows the vectors of earlier ones.
        embedder: None makes lexical generations only.
        objects: Where uploads are.
        clock: For the job's end.
        sources: Brings a source to disk; the default takes any public git host.
        beat_s: Longest time between two beats of a job, in seconds.
    """

    def __init__(
        self,
        *,
        projects: ProjectStore,
        jobs: JobStore,
        index: PassageIndex,
        vectors: VectorCache,
        embedder: Embedder | None,
        objects: ObjectStore,
        clock: Clock,
        sources: SourceOpener | None = None,
        beat_s: float = BEAT_S,
    ) -> None:
        self._projects = projects
        self._jobs = jobs
        self._index = index
        self._vectors = vectors
        self._embedder = embedder
        self._sources = sources or SourceOpener(objects)
        self._clock = clock
        self._beat_s = beat_s

    async def run(self, job: Job, *, owner: str, force: bool = False) -> None:
        """Run a job to its end, which is recorded whatever happens.

        The active generation serves until the new one is whole, and goes on serving if anything
        fails. A project's first index flips twice: to a lexical generation, then to one with
        vectors. Nothing is written, embedded or flipped if nothing has changed.

        Args:
            job: Begun, its lease held by `owner`.
            owner: Of the lease. Once it is lost, the job stops and leaves its end to the other.
            force: Build a generation even if nothing has changed.

        Raises:
            CancelledError: As it came, once the job has ended as failed (`JOB_CANCELLED`).
            StoreUnavailable: The end could not be recorded.
        """
        progress = JobProgress(self._jobs, job, owner=owner, beat_s=self._beat_s)
        error: JobError | None = None
        try:
            await _while_reporting(progress, self._index_project(job, progress, force=force))
            progress.enter("done")
            await progress.report()
        except LeaseLost:
            logger.warning("job lease lost", extra={"job_id": job.id})
            return
        except asyncio.CancelledError:
            cancelled = JobError(code="JOB_CANCELLED", message="The job was cancelled.")
            await to_the_end(self._end(job, owner, progress, cancelled))
            raise
        except IbidError as failure:
            error = JobError(code=failure.code, message=str(failure))
        except Exception as failure:  # noqa: BLE001 - an edge: the failure becomes the job's end
            logger.error("job failed", extra={"job_id": job.id, "error": type(failure).__name__})
            error = JobError(
                code=IbidError.code, message=f"It failed with {type(failure).__name__}."
            )
        await to_the_end(self._end(job, owner, progress, error))

    async def _end(
        self, job: Job, owner: str, progress: JobProgress, error: JobError | None
    ) -> None:
        for attempt in range(1, END_ATTEMPTS + 1):
            try:
                await self._jobs.end(
                    job.id,
                    tenant=job.tenant,
                    owner=owner,
                    state=JobState.SUCCEEDED if error is None else JobState.FAILED,
                    statistics=progress.statistics,
                    error=error,
                    at=self._clock.now(),
                )
            except LeaseLost:
                logger.warning("job lease lost", extra={"job_id": job.id})
                return
            except StoreUnavailable:
                if attempt == END_ATTEMPTS:
                    raise
            else:
                return

    async def _index_project(self, job: Job, progress: JobProgress, *, force: bool) -> None:
        project = await self._projects.get(job.project_id, tenant=job.tenant)
        if project.source is None:
            raise SourceRejected(f"Project {project.id!r} has no source")
        progress.enter("fetching")
        async with self._sources.opened(
            project.source, tenant=project.tenant, project_id=project.id
        ) as fetched:
            corpus = Corpus(fetched)
            digest = await self._survey(corpus, progress)
            before = await self._facts(project, job.id)
            if before is not None and not force and before.source_digest == digest:
                progress.count(unchanged=before.path_count, chunks=before.chunk_count)
                return
            build = Build(
                project=project,
                before=before,
                corpus=corpus,
                progress=progress,
                generations=Generations(self._index, self._projects, job),
                index=self._index,
                vectors=self._vectors,
                embedder=self._embedder,
            )
            await build.run()

    async def _survey(self, corpus: Corpus, progress: JobProgress) -> str:
        """Look at every file; return the digest that a generation of them would have."""
        progress.enter("scanning")
        digest = SourceDigest()
        files = await asyncio.to_thread(corpus.find)
        for start in range(0, len(files), FILES_A_STEP):
            some = files[start : start + FILES_A_STEP]
            await asyncio.to_thread(corpus.look_at, some, digest)
            progress.count(scanned=start + len(some))
        skipped = {str(reason): count for reason, count in sorted(corpus.survey.skipped.items())}
        progress.count(scanned=len(files), skipped=skipped)
        return digest.with_embedder(self._signature)

    @property
    def _signature(self) -> str | None:
        return None if self._embedder is None else self._embedder.signature

    async def _facts(self, project: Project, job_id: str) -> GenerationFacts | None:
        """Read what is known of the active generation; nothing is if it is gone or damaged."""
        if project.active_generation is None:
            return None
        try:
            return await self._index.facts(
                tenant=project.tenant,
                project_id=project.id,
                generation=project.active_generation,
            )
        except GenerationGone:
            return None
        except GenerationDamaged:
            logger.warning("generation damaged", extra={"job_id": job_id})
            return None


async def _while_reporting(progress: JobProgress, work: Coroutine[Any, Any, None]) -> None:
    """Await the work while the job beats; when the beat fails, cancel the work."""
    working = asyncio.create_task(work)
    reporting = asyncio.create_task(progress.keep_reporting())
    try:
        await asyncio.wait({working, reporting}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            await reporting  # raises: it ends by failing only
        await working
    finally:
        working.cancel()
        reporting.cancel()
        await asyncio.gather(working, reporting, return_exceptions=True)
