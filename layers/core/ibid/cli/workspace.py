"""What the commands do with an open runtime, as its local principal."""

import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import PurePath

from ibid.bootstrap.runtime import Runtime
from ibid.domain.answers import Style
from ibid.domain.conversations import Conversation
from ibid.domain.projects import Project, ProjectSettings, ProjectStatus, Role
from ibid.domain.readiness import check_ready
from ibid.domain.uploads import upload_key
from ibid.runs.live_run import LiveRun
from ibid.runs.turns import NewTurn


async def projects_named(runtime: Runtime, name: str) -> Sequence[Project]:
    """Return the principal's projects of this name, newest first."""
    principal = runtime.principal
    return await runtime.records.projects.named(
        name, tenant=principal.tenant, subject=principal.subject
    )


async def all_projects(runtime: Runtime) -> list[Project]:
    """Return all of the principal's projects, newest first."""
    found: list[Project] = []
    cursor = None
    while True:
        page = await runtime.records.projects.list_for(
            tenant=runtime.principal.tenant,
            subject=runtime.principal.subject,
            cursor=cursor,
            limit=200,
        )
        found.extend(page.items)
        cursor = page.next_cursor
        if cursor is None:
            return found


async def new_project(runtime: Runtime, name: str) -> Project:
    """Make a project that the principal owns."""
    project = Project(
        tenant=runtime.principal.tenant,
        id=uuid.uuid4().hex,
        name=name,
        members={runtime.principal.subject: Role.OWNER},
        status=ProjectStatus.EMPTY,
        source=None,
        reply_language=None,
        settings=ProjectSettings(),
        active_generation=None,
        reindex_in_progress=False,
        embedding_signature=None,
        chunk_count=0,
        path_count=0,
        commit_sha=None,
        created_at=runtime.services.clock.now(),
    )
    await runtime.records.projects.create(project)
    return project


async def keep_upload(
    runtime: Runtime,
    project: Project,
    path: PurePath,
    pieces: AsyncIterator[bytes],
    *,
    max_bytes: int,
) -> str:
    """Keep an archive as one of the project's uploads, and return its id.

    Raises:
        ValidationFailed: It is larger than `max_bytes`.
    """
    upload_id = uuid.uuid4().hex
    key = upload_key(
        tenant=project.tenant,
        project_id=project.id,
        upload_id=upload_id,
        file_name=path.name,
    )
    await runtime.objects.put(key, pieces, max_bytes=max_bytes)
    return upload_id


async def new_conversation(runtime: Runtime, project: Project) -> Conversation:
    """Start a conversation about a project."""
    conversation = Conversation(
        tenant=runtime.principal.tenant,
        subject=runtime.principal.subject,
        id=uuid.uuid4().hex,
        project_id=project.id,
        title=None,
        reply_language=None,
        created_at=runtime.services.clock.now(),
    )
    await runtime.records.conversations.create(conversation)
    return conversation


async def ask(
    runtime: Runtime,
    project: Project,
    question: str,
    *,
    path_prefix: str | None,
    reply_language: str | None,
) -> LiveRun:
    """Ask a question in a new conversation.

    Raises:
        ProjectNotReady: The project has no generation yet.
        EmbeddingModelChanged: Its vectors come from another model than the one in use.
    """
    check_ready(project, embedding_signature=runtime.services.embedding_signature())
    turn = NewTurn(
        principal=runtime.principal,
        conversation=await new_conversation(runtime, project),
        project=project,
        question=question,
        style=Style(),
        path_prefix=path_prefix,
        reply_language=reply_language,
    )
    return await runtime.engine.start(turn, runtime.services.work(project))
