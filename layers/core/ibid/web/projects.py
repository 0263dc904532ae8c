"""Routes of projects: create, read, change, delete, index, list paths."""

from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Query

from ibid.domain.errors import (
    GenerationGone,
    JobNotFound,
    ProjectNotFound,
    ProjectNotReady,
    ValidationFailed,
)
from ibid.domain.projects import Project, ProjectSettings, ProjectStatus, Role, Source
from ibid.domain.uploads import upload_prefix
from ibid.ports.index import PathList
from ibid.web.access import Caller, EditedProject, Given, OwnedProject, ViewedProject
from ibid.web.errors import documented
from ibid.web.minting import Minted
from ibid.web.paging import DEFAULT_LIMIT, Cursor, Limit, PageBody
from ibid.web.project_bodies import (
    IndexedPathsBody,
    IndexRequestBody,
    JobBody,
    JobStartedBody,
    NewProjectBody,
    ProjectBody,
    ProjectChangesBody,
    SourceBody,
)
from ibid.web.services import Services
from ibid.web.sources import checked_source

router = APIRouter(tags=["projects"])


@router.post("/projects", status_code=201, responses=documented(404, 413, 422))
async def create_project(
    body: NewProjectBody, caller: Caller, services: Given, minted: Minted
) -> ProjectBody:
    """Create a project, owned by the caller; nothing is indexed yet."""
    project_id = minted.value
    if minted.is_planned:
        with suppress(ProjectNotFound):
            return ProjectBody.of(await services.projects.get(project_id, tenant=caller.tenant))
    settings = ProjectSettings()
    project = Project(
        tenant=caller.tenant,
        id=project_id,
        name=body.name,
        members={caller.subject: Role.OWNER},
        status=ProjectStatus.EMPTY,
        source=await _source(body.source, services, tenant=caller.tenant, project_id=project_id),
        reply_language=body.reply_language,
        settings=settings if body.settings is None else body.settings.over(settings),
        active_generation=None,
        reindex_in_progress=False,
        embedding_signature=None,
        chunk_count=0,
        path_count=0,
        commit_sha=None,
        created_at=services.clock.now(),
    )
    await services.projects.create(project)
    return ProjectBody.of(project)


@router.get("/projects", responses=documented(422))
async def list_projects(
    caller: Caller, services: Given, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> PageBody[ProjectBody]:
    """List the projects of which the caller is a member, newest first."""
    page = await services.projects.list_for(
        tenant=caller.tenant, subject=caller.subject, cursor=cursor, limit=limit
    )
    return PageBody[ProjectBody].of(page, ProjectBody.of)


@router.get("/projects/{projectId}", responses=documented(404, 422))
async def get_project(project: ViewedProject) -> ProjectBody:
    """Return one project."""
    return ProjectBody.of(project)


@router.patch("/projects/{projectId}", responses=documented(403, 404, 413, 422))
async def change_project(
    body: ProjectChangesBody, project: OwnedProject, services: Given
) -> ProjectBody:
    """Change a project's name, source, language or settings; nothing is indexed."""
    changed = await services.projects.update(
        project.id,
        tenant=project.tenant,
        name=body.name,
        source=await _source(body.source, services, tenant=project.tenant, project_id=project.id),
        reply_language=body.reply_language,
        settings=None if body.settings is None else body.settings.over(project.settings),
    )
    return ProjectBody.of(changed)


@router.delete("/projects/{projectId}", status_code=204, responses=documented(403, 404, 422))
async def delete_project(project: OwnedProject, services: Given) -> None:
    """Cancel a project's runs, then delete all that is its: index, uploads, conversations."""
    owned = {"tenant": project.tenant, "project_id": project.id}
    await services.engine.cancel(**owned)
    await services.index.delete_project(**owned)
    await services.objects.delete_prefix(upload_prefix(**owned))
    # Last, so that a deletion that failed half-way can be asked for again.
    await services.deletion.project(project)
    # Once more, for what a job that was under way has sealed meanwhile.
    await services.index.delete_project(**owned)


@router.post(
    "/projects/{projectId}/index", status_code=202, responses=documented(403, 404, 413, 422)
)
async def index_project(
    project: EditedProject,
    services: Given,
    minted: Minted,
    body: IndexRequestBody | None = None,
) -> JobStartedBody:
    """Begin to index in the background; a job that is under way is answered instead."""
    if minted.is_planned:
        with suppress(JobNotFound):
            job = await services.jobs.get(minted.value, tenant=project.tenant)
            return JobStartedBody(job_id=job.id, enqueued=True)
    wanted = IndexRequestBody() if body is None else body
    source = await _source(wanted.source, services, tenant=project.tenant, project_id=project.id)
    if source is None and project.source is None:
        raise ValidationFailed("There is nothing to index.", {"source": "the project has none"})
    job_id, enqueued = await services.start_index(
        project, source=source, force=wanted.force, job_id=minted.value
    )
    return JobStartedBody(job_id=job_id, enqueued=enqueued)


@router.get("/projects/{projectId}/jobs", responses=documented(404, 422))
async def list_jobs(
    project: ViewedProject,
    services: Given,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> PageBody[JobBody]:
    """List a project's indexing jobs, newest first."""
    page = await services.jobs.list_for(
        project.id, tenant=project.tenant, cursor=cursor, limit=limit
    )
    return PageBody[JobBody].of(page, JobBody.of)


@router.get("/projects/{projectId}/indexed-paths", responses=documented(404, 409, 422))
async def list_indexed_paths(
    project: ViewedProject,
    services: Given,
    prefix: Annotated[str, Query(max_length=1_000)] = "",
    limit: Annotated[int, Query(ge=1, le=1_000)] = 200,
) -> IndexedPathsBody:
    """List the paths of the active generation that start with the prefix."""
    try:
        found = await _paths(project, services, prefix=prefix, limit=limit)
    except GenerationGone:  # another one was made active after the project was read
        now = await services.projects.get(project.id, tenant=project.tenant)
        found = await _paths(now, services, prefix=prefix, limit=limit)
    return IndexedPathsBody(paths=tuple(found.paths), truncated=found.truncated)


async def _paths(project: Project, services: Services, *, prefix: str, limit: int) -> PathList:
    if project.active_generation is None:
        raise ProjectNotReady("The project has no generation yet; index it first.")
    return await services.index.paths(
        tenant=project.tenant,
        project_id=project.id,
        generation=project.active_generation,
        prefix=prefix,
        limit=limit,
    )


async def _source(
    body: SourceBody | None, services: Services, *, tenant: str, project_id: str
) -> Source | None:
    if body is None:
        return None
    return await checked_source(
        body,
        tenant=tenant,
        project_id=project_id,
        folders=services.folders,
        objects=services.objects,
    )
