"""Joins the ports to their adapters.

`open_runtime` opens all that one process needs on one data folder, in the event loop that will use
it, and closes it in the reverse order.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from secrets import token_hex

from fastapi import FastAPI

from ibid.adapters.folder_objects import FolderObjects
from ibid.adapters.sqlite.index import SqlitePassageIndex
from ibid.adapters.system_clock import SystemClock
from ibid.bootstrap.answering import Answering
from ibid.bootstrap.models import open_embedder, open_model
from ibid.bootstrap.queues import open_run_queue
from ibid.bootstrap.stores import Records, open_stores
from ibid.domain.errors import Misconfigured, Unavailable
from ibid.domain.principals import Principal
from ibid.indexing.background import IndexJobs
from ibid.indexing.pipeline import ProjectIndexer
from ibid.ports.models import ChatModel
from ibid.retrieval.search import PassageSearch
from ibid.runs.deletion import Deletion
from ibid.runs.engine import RunEngine
from ibid.runs.leases import JobWatch
from ibid.runs.limits import RunLimits
from ibid.runs.sweep import Sweep
from ibid.settings import Settings
from ibid.web.app import make_app
from ibid.web.claimant import KeyLimits
from ibid.web.services import Services

logger = logging.getLogger(__name__)

DRAIN_S = 5.0
SWEEP_S = 300.0
LOCAL = Principal(tenant="local", subject="local")


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What one process has open.

    Attributes:
        app: The whole HTTP surface.
        principal: Who everybody is on this machine.
        records: Projects, jobs, conversations and runs.
        objects: Uploads.
        engine: Starts runs, and ends them when the process stops.
        index_jobs: Starts indexing jobs in this process.
        services: What the app was made with.
    """

    app: FastAPI
    principal: Principal
    records: Records
    objects: FolderObjects
    engine: RunEngine
    index_jobs: IndexJobs
    services: Services


@asynccontextmanager
async def open_runtime(
    settings: Settings, *, model: ChatModel | None = None, keep_watch: bool = False
) -> AsyncIterator[Runtime]:
    """Open the stores, the models and the application.

    Args:
        settings: Which adapters, and where.
        model: Answers in place of the one that the settings name: for tests and benches.
        keep_watch: Also end the runs and jobs of processes that died, while open.

    Raises:
        Misconfigured: A setting, or a file of a newer version, stops the start.
        Unavailable: A model or a store that must be asked at the start did not answer.
    """
    async with AsyncExitStack() as stack:
        clock = SystemClock()
        owner = token_hex(16)
        try:
            settings.data.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Misconfigured(f"IBID_DATA: {settings.data}: {error.strerror}") from None
        stores = await open_stores(settings, stack)
        records = stores.records
        queue = open_run_queue(settings, stack)
        objects = FolderObjects(settings.data / "objects")
        index = SqlitePassageIndex(settings.data / "generations")
        stack.push_async_callback(index.close)
        embedder = await open_embedder(settings, stack)

        def signature() -> str | None:
            return None if embedder is None else embedder.signature

        limits = _limits(settings)
        answering = Answering(
            search=PassageSearch(index=index, embedder=embedder),
            model=model or open_model(settings, stack),
            saver=stores.saver,
            projects=records.projects,
            signature=signature,
            lease_wait_s=limits.term_s + 2 * limits.beat_s,
        )
        engine = RunEngine(
            conversations=records.conversations,
            runs=records.runs,
            clock=clock,
            limits=limits,
            owner=owner,
        )
        # before the stores close: what a left run has shown is kept
        stack.push_async_callback(engine.drain, DRAIN_S)
        indexer = ProjectIndexer(
            projects=records.projects,
            jobs=records.jobs,
            index=index,
            vectors=index,
            embedder=embedder,
            objects=objects,
            clock=clock,
            beat_s=settings.beat_s,
        )
        index_jobs = IndexJobs(
            projects=records.projects,
            jobs=records.jobs,
            run_job=lambda job, force: indexer.run(job, owner=owner, force=force),
            clock=clock,
            owner=owner,
        )
        stack.push_async_callback(index_jobs.close)
        if keep_watch:
            sweep = Sweep(
                runs=records.runs, idempotency=records.idempotency, clock=clock, limits=limits
            )
            watches = [
                engine.watch(),
                JobWatch(records.jobs, clock, limits).watch(),
                sweep.watch(SWEEP_S),
            ]
            if stores.tidy is not None:
                watches.append(_tidying(stores.tidy))
            for watching in watches:
                stack.push_async_callback(_cancelled, asyncio.create_task(watching))
        services = Services(
            projects=records.projects,
            jobs=records.jobs,
            conversations=records.conversations,
            runs=records.runs,
            idempotency=records.idempotency,
            feedback=records.feedback,
            objects=objects,
            index=index,
            engine=engine,
            deletion=Deletion(
                engine=engine,
                projects=records.projects,
                conversations=records.conversations,
                runs=records.runs,
                checkpoints=stores.saver,
            ),
            work=answering.work,
            check_pause=answering.check_pause,
            embedding_signature=signature,
            start_index=index_jobs.start,
            clock=clock,
            version=version("ibid-server"),
            hosts=settings.served_hosts,
            folders=tuple(folder.resolve() for folder in settings.folders),
            dev_principals=settings.dev_principals,
            principal=LOCAL,
            ping_s=settings.ping_s,
            queue=queue,
            queue_events=settings.queue_events,
            key_limits=KeyLimits(
                beat_s=settings.beat_s,
                term_s=settings.lease_term_s,
                wait_s=settings.lease_term_s + 2 * settings.beat_s,
            ),
        )
        yield Runtime(
            app=make_app(services),
            principal=LOCAL,
            records=records,
            objects=objects,
            engine=engine,
            index_jobs=index_jobs,
            services=services,
        )


async def _tidying(tidy: Callable[[], Awaitable[object]]) -> None:
    """Tidy the checkpoints now and then; a store that is away is tried again later."""
    while True:
        try:
            await tidy()
        except Unavailable as error:
            logger.warning("checkpoint_sweep_failed", extra={"error": error.code})
        await asyncio.sleep(SWEEP_S)


async def _cancelled(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _limits(settings: Settings) -> RunLimits:
    return RunLimits(
        process=settings.max_runs,
        tenant=settings.max_runs_per_tenant,
        subject=settings.max_runs_per_subject,
        run_timeout_s=settings.run_timeout_s,
        beat_s=settings.beat_s,
        term_s=settings.lease_term_s,
        pause_s=settings.clarification_s,
    )
