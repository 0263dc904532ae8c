"""What the commands do with an open runtime, as its local principal."""

from collections.abc import AsyncIterator
from pathlib import PurePath
from secrets import token_hex

from ibid.bootstrap import Runtime
from ibid.domain.answers import Style
from ibid.domain.conversations import Conversation
from ibid.domain.projects import Project, ProjectSettings, ProjectStatus, Role
from ibid.domain.readiness import check_ready
from ibid.domain.uploads import upload_key
from ibid.runs.live_run import LiveRun
from ibid.runs.turns import NewTurn


async def project_named(runtime: Runtime, name: str) -> Project:
    """Return the principal's newest project of this name, made if there is none."""
    tenant, subject = runtime.principal.tenant, runtime.principal.subject
    projects = runtime.records.projects
    found = await projects.find_by_name(name, tenant=tenant, subject=subject)
    if found is not None:
        return found
    project = Project(
        tenant=tenant,
        id=f"prj_{token_hex(12)}",
        name=name,
        members={subject: Role.OWNER},
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
    await projects.create(project)
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
    upload_id = f"upl_{token_hex(12)}"
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
        id=f"cnv_{token_hex(12)}",
        project_id=project.id,
        title=None,
        reply_language=None,
        created_at=runtime.services.clock.now(),
    )
    await runtime.records.conversations.create(conversation)
    return conversation


async def ask(
    runtime: Runtime, project: Project, question: str, *, path_prefix: str | None
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
    )
    return await runtime.engine.start(turn, runtime.services.work(project))
