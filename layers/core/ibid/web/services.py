"""All that the web application is given; bootstrap fills it, tests fill it with fakes."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ibid.domain.conversations import Run
from ibid.domain.principals import Principal
from ibid.domain.projects import Project, Source
from ibid.ports.clock import Clock
from ibid.ports.conversations import ConversationStore
from ibid.ports.feedback import FeedbackStore
from ibid.ports.idempotency import IdempotencyStore
from ibid.ports.index import PassageIndex
from ibid.ports.objects import ObjectStore
from ibid.ports.projects import JobStore, ProjectStore
from ibid.ports.queue import RunQueue
from ibid.ports.runs import RunStore
from ibid.runs.deletion import Deletion
from ibid.runs.engine import RunEngine
from ibid.runs.turns import Work
from ibid.web.claimant import KeyLimits

MEBIBYTE = 1024 * 1024


class StartIndex(Protocol):
    """Begins the indexing of a project in the background."""

    async def __call__(
        self,
        project: Project,
        *,
        source: Source | None,
        force: bool,
        job_id: str | None = None,
    ) -> tuple[str, bool]:
        """Begin a job unless one is live, and return at once.

        Args:
            project: As it is kept now.
            source: Replaces the project's once the job has begun; None keeps it. Already checked:
                a folder is an existing one that HTTP callers may name, an upload is whole.
            force: Build a generation even if nothing has changed.
            job_id: Of the job, if it is begun; never used before. None mints one.

        Returns:
            The job's id and True, or the live job's id and False, and then nothing is changed.

        Raises:
            ProjectNotFound: It was deleted meanwhile.
        """


class MakeWork(Protocol):
    """Makes what answers the turns of one graph about one project."""

    def __call__(self, project: Project, *, graph: str = "messages") -> Work:
        """Make it; `graph` is `messages` or `ask`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebLimits:
    """What one request may cost.

    Attributes:
        max_body_bytes: Of every body but an upload's form.
        max_upload_bytes: Of one uploaded file.
        upload_expires_s: Seconds for which an upload's form is taken.
    """

    max_body_bytes: int = MEBIBYTE
    max_upload_bytes: int = 512 * MEBIBYTE
    upload_expires_s: int = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The application's collaborators.

    Attributes:
        idempotency: What became of requests with an Idempotency-Key.
        deletion: Removes a conversation, or a project's conversations, with all that hangs on them.
        work: Makes what answers a turn.
        check_pause: Looks whether a paused run's checkpoint can go on: it returns if so, and
            raises GraphChanged, NothingPending or PauseExpired if not.
        embedding_signature: Names the vector space of the embedder in use; None without one.
        version: Of the distribution, shown by `/healthz`.
        hosts: Names that a request's `Host` may have, the port left out; empty means any.
        folders: Absolute folders below which an HTTP caller may name a source.
        dev_principals: Let the header `Ibid-Dev-Principal: tenant/subject` choose who one is.
        principal: Who everybody is where that header is absent or off.
        ping_s: Seconds of silence after which a stream sends a comment, above 0, at most 15.
        queue: Where background runs wait for a worker; None works on them in this process.
        queue_events: The Lambda Web Adapter is in front, and nobody else reaches the server: what
            it posts to `/internal/events` is a queue's.
        lifespan: Entered at the application's start, left at its end; None for nothing.
    """

    projects: ProjectStore
    jobs: JobStore
    conversations: ConversationStore
    runs: RunStore
    idempotency: IdempotencyStore
    feedback: FeedbackStore
    objects: ObjectStore
    index: PassageIndex
    engine: RunEngine
    deletion: Deletion
    work: MakeWork
    check_pause: Callable[[Run], Awaitable[None]]
    embedding_signature: Callable[[], str | None]
    start_index: StartIndex
    clock: Clock
    version: str
    hosts: Collection[str] = ()
    folders: Sequence[Path] = ()
    dev_principals: bool = False
    principal: Principal = field(default_factory=lambda: Principal(tenant="local", subject="local"))
    ping_s: float = 15.0
    limits: WebLimits = field(default_factory=WebLimits)
    key_limits: KeyLimits = field(default_factory=KeyLimits)
    queue: RunQueue | None = None
    queue_events: bool = False
    lifespan: Callable[[], AbstractAsyncContextManager[None]] | None = None
