"""The whole web application on fakes, and a client a principal.

app = FakeApp(work=scripted_turn("It is ", "here [1]."))
async with app.client(ANN) as ann: ...
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import httpx

from ibid.domain.answers import (
    Clarification,
    GroundingWarning,
    Intent,
    TurnInput,
    TurnPause,
    TurnResult,
)
from ibid.domain.conversations import Conversation, Message, Run, run_id
from ibid.domain.errors import RunNotFound
from ibid.domain.events import CitationsFound, Phase, StatusChanged, TokenDelta, TurnEvent
from ibid.domain.passages import Chunk, Citation
from ibid.domain.principals import Principal
from ibid.domain.projects import (
    Job,
    JobState,
    JobStatistics,
    Project,
    ProjectSettings,
    ProjectStatus,
    Role,
    Source,
)
from ibid.ports.clock import Clock
from ibid.runs.deletion import Deletion
from ibid.runs.engine import RunEngine, RunLimits
from ibid.runs.turns import Proceed, Work
from ibid.web.app import make_app
from ibid.web.services import Services
from tests.fakes.clock import FakeClock
from tests.fakes.index import FakePassageIndex
from tests.fakes.objects import FakeObjects
from tests.fakes.records import FakeRecords, Records
from tests.fakes.rows import Rows

ANN = Principal(tenant="acme", subject="ann")
BOB = Principal(tenant="acme", subject="bob")
EVE = Principal(tenant="rival", subject="ann")
SIGNATURE = "fake:embedder:3"

Step = TurnEvent | TurnPause | BaseException | Callable[[], Awaitable[object]]


def citation(
    index: int = 1, *, file_path: str = "src/cart.py", cited: bool | None = None
) -> Citation:
    return Citation(
        index=index,
        file_path=file_path,
        start_line=3,
        end_line=9,
        language="python",
        symbol="Cart.total",
        commit_sha="85c5d93cbd04",
        score=0.75,
        url=None,
        cited=cited,
    )


def scripted_work(*steps: Step, citations: Sequence[Citation] = ()) -> Work:
    """Make a turn that shows these events, awaits these calls, or fails so."""

    async def work(
        turn: TurnInput, _: Proceed
    ) -> AsyncIterator[TurnEvent | TurnResult | TurnPause]:
        text = ""
        for step in steps:
            if isinstance(step, BaseException):
                raise step
            if isinstance(step, TurnPause):
                yield step
                return
            if isinstance(step, StatusChanged | CitationsFound | TokenDelta):
                text += step.text if isinstance(step, TokenDelta) else ""
                yield step
            else:
                await step()
        yield TurnResult(
            answer=text,
            passages=(),
            citations=citations,
            cited_indexes=[one.index for one in citations if one.cited],
            warnings=() if citations else (GroundingWarning.NO_CONTEXT,),
            intent=Intent.CODEBASE_QUESTION,
            retrieval_attempts=1,
            degraded=("grade",) if turn.path_prefix else (),
            model="scripted",
        )

    return work


def scripted_turn(*pieces: str) -> Work:
    """Make a whole turn that says these pieces about one citation."""
    return scripted_work(
        StatusChanged(phase=Phase.RETRIEVING),
        CitationsFound(citations=[citation()]),
        *(TokenDelta(text=piece) for piece in pieces),
        citations=[citation(cited=True)],
    )


def pausing_work(
    work: Work,
    *,
    question: str = "Which cart?",
    options: Sequence[str] = ("the shop's", "the API's"),
    interrupt_id: str = "interrupt-1",
) -> Work:
    """Make a turn that asks back, and once it was answered does the work."""
    pause = TurnPause(
        interrupt_id=interrupt_id,
        node="clarify",
        clarification=Clarification(question=question, options=tuple(options)),
    )
    asking = scripted_work(StatusChanged(phase=Phase.RETRIEVING), pause)

    def either(
        turn: TurnInput, proceed: Proceed
    ) -> AsyncIterator[TurnEvent | TurnResult | TurnPause]:
        return (asking if turn.resumption is None else work)(turn, proceed)

    return either


class NoCheckpoints:
    """Implements CheckpointThreads, and notes which were deleted."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def adelete_thread(self, thread_id: str) -> None:
        self.deleted.append(thread_id)


class FakeApp:
    """The application, its fakes, and what to fill them with.

    Another one on the `records` of the first is another process on the same store.
    """

    def __init__(
        self,
        work: Work | None = None,
        change: Callable[[Services], Services] = lambda services: services,
        *,
        records: Records | None = None,
        limits: RunLimits | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.records: Records = records or FakeRecords()
        # what stands in a fake store, for a test that looks behind it
        self.rows = self.records.rows if isinstance(self.records, FakeRecords) else Rows()
        self.index = FakePassageIndex()
        self.objects = FakeObjects()
        self.clock = FakeClock()  # stands, unless a real one was given
        self.checkpoints = NoCheckpoints()
        self.checked: list[Run] = []
        self.work = work or scripted_turn("It is ", "here [1].")
        self.works: dict[str, Work] = {}  # of graphs that do something else
        self.indexed: list[tuple[str, Source | None, bool]] = []
        self.engine = RunEngine(
            conversations=self.records.conversations,
            runs=self.records.runs,
            clock=clock or self.clock,
            limits=limits or RunLimits(),
            owner=uuid.uuid4().hex,
        )
        services = Services(
            projects=self.records.projects,
            jobs=self.records.jobs,
            conversations=self.records.conversations,
            runs=self.records.runs,
            idempotency=self.records.idempotency,
            feedback=self.records.feedback,
            objects=self.objects,
            index=self.index,
            engine=self.engine,
            deletion=Deletion(
                engine=self.engine,
                projects=self.records.projects,
                conversations=self.records.conversations,
                runs=self.records.runs,
                checkpoints=self.checkpoints,
            ),
            work=self.make_work,
            check_pause=self.check_pause,
            embedding_signature=lambda: SIGNATURE,
            start_index=self.start_index,
            clock=clock or self.clock,
            version="0.0.0",
            dev_principals=True,
        )
        self.services = change(services)
        self.app = make_app(self.services)

    def client(
        self, principal: Principal | None = ANN, *, headers: Mapping[str, str] | None = None
    ) -> httpx.AsyncClient:
        """Make a client that is the principal; None is whoever the application takes it for."""
        who = {}
        if principal is not None:
            who["Ibid-Dev-Principal"] = f"{principal.tenant}/{principal.subject}"
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app, raise_app_exceptions=True),
            base_url="http://ibid.test",
            headers={**who, **(headers or {})},
        )

    def make_work(self, project: Project, *, graph: str = "messages") -> Work:
        """Make what answers the turns of both graphs about any project."""
        del project
        return self.works.get(graph, self.work)

    async def check_pause(self, paused: Run) -> None:
        """Stand in for the look into a paused turn's checkpoint: it can always go on."""
        self.checked.append(paused)

    async def start_index(
        self,
        project: Project,
        *,
        source: Source | None,
        force: bool,
        job_id: str | None = None,
    ) -> tuple[str, bool]:
        """Stand in for the indexing of a project: a job is begun, and never ends."""
        await self.services.projects.get(project.id, tenant=project.tenant)
        job = self.job(project)
        job = replace(job, id=job_id or job.id)
        holder = await self.services.jobs.begin(job, owner="indexer")
        if holder is not None:
            return holder.id, False
        self.indexed.append((project.id, source, force))
        return job.id, True

    async def put(self, key: str, content: bytes) -> None:
        """Keep an object."""

        async def once() -> AsyncIterator[bytes]:
            yield content

        await self.objects.put(key, once(), max_bytes=len(content))

    def job(self, project: Project) -> Job:
        return Job(
            tenant=project.tenant,
            id=uuid.uuid4().hex,
            project_id=project.id,
            state=JobState.QUEUED,
            phase="fetching",
            statistics=JobStatistics(scanned=2, skipped={"binary": 1}),
            error=None,
            started_at=self.clock.now(),
            finished_at=None,
        )

    async def project(
        self,
        owner: Principal = ANN,
        *,
        ready: bool = True,
        signature: str | None = SIGNATURE,
        members: Mapping[str, Role] | None = None,
        source: Source | None = None,
        reply_language: str | None = None,
    ) -> Project:
        """Keep a project of the owner's."""
        project = Project(
            tenant=owner.tenant,
            id=uuid.uuid4().hex,
            name="shop",
            members={owner.subject: Role.OWNER, **(members or {})},
            status=ProjectStatus.READY if ready else ProjectStatus.EMPTY,
            source=source,
            reply_language=reply_language,
            settings=ProjectSettings(),
            active_generation=1 if ready else None,
            reindex_in_progress=False,
            embedding_signature=signature if ready else None,
            chunk_count=12 if ready else 0,
            path_count=3 if ready else 0,
            commit_sha="85c5d93cbd04" if ready else None,
            created_at=self.clock.now(),
        )
        await self.services.projects.create(project)
        if ready:
            await self.write_generation(project, paths=["README.md", "src/cart.py", "src/tax.py"])
        return project

    async def write_generation(self, project: Project, *, paths: Sequence[str]) -> None:
        """Seal the project's first generation, of one line a file."""
        writer = await self.index.write(tenant=project.tenant, project_id=project.id, generation=1)
        for path in paths:
            chunk = Chunk(
                file_path=path,
                start_line=1,
                end_line=1,
                language="text",
                symbol="",
                chunk_index=0,
                content=path,
                content_hash=path,
                commit_sha=None,
            )
            await writer.add([chunk], None)
        await writer.seal(
            embedding_signature=None,
            main_language="english",
            commit_sha=None,
            source_digest="digest",
        )

    async def make_ready(self, project: Project) -> None:
        """Give a project its first generation."""
        job = self.job(project)
        await self.records.jobs.begin(job, owner="indexer")
        await self.records.projects.activate(
            project.id,
            tenant=project.tenant,
            generation=1,
            job_id=job.id,
            embedding_signature=None,
            chunk_count=1,
            path_count=1,
            commit_sha=None,
        )

    async def begun(self, conversation: Conversation, *, runs: int = 1) -> Run:
        """Return the conversation's newest run once there are so many."""
        owner = Principal(tenant=conversation.tenant, subject=conversation.subject)
        async with asyncio.timeout(5):
            while True:
                now = await self.records.conversations.get(conversation.id, principal=owner)
                if now.runs_begun >= runs:
                    newest = run_id(now.id, now.runs_begun)
                    with suppress(RunNotFound):  # a stand-in may show half a transaction
                        return await self.records.runs.get(newest, principal=owner)
                await asyncio.sleep(0)

    async def kept(self, conversation: Conversation, *, messages: int) -> Sequence[Message]:
        """Return the conversation's messages once there are so many."""
        owner = Principal(tenant=conversation.tenant, subject=conversation.subject)
        async with asyncio.timeout(60):
            while True:
                page = await self.records.conversations.messages(
                    conversation.id, principal=owner, cursor=None, limit=10
                )
                if len(page.items) >= messages:
                    return page.items
                await asyncio.sleep(0)

    async def conversation(
        self, owner: Principal = ANN, project: Project | None = None
    ) -> Conversation:
        """Keep a conversation of the owner's about the project, or about a new one."""
        about = project or await self.project(owner)
        conversation = Conversation(
            tenant=owner.tenant,
            subject=owner.subject,
            id=uuid.uuid4().hex,
            project_id=about.id,
            title=None,
            reply_language=None,
            created_at=self.clock.now(),
        )
        await self.services.conversations.create(conversation)
        return conversation
