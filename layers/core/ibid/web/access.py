"""Who is asking, and what they may touch; a stranger to a thing gets the 404 of one that isn't."""

import re
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Path, Request

from ibid.domain.conversations import Conversation, Run
from ibid.domain.errors import (
    InsufficientRole,
    JobNotFound,
    NotFound,
    ProjectNotFound,
    ValidationFailed,
)
from ibid.domain.principals import Principal
from ibid.domain.projects import Job, Project, Role
from ibid.web.services import Services

DEV_PRINCIPAL_HEADER = "Ibid-Dev-Principal"
_DEV_PRINCIPAL = re.compile(r"(?P<tenant>[!-.0-~]{1,128})/(?P<subject>[!-.0-~]{1,128})")
_RANK = {Role.VIEWER: 0, Role.EDITOR: 1, Role.OWNER: 2}


def services_of(request: Request) -> Services:
    """Return what the application was made with."""
    services: Services = request.app.state.services
    return services


Given = Annotated[Services, Depends(services_of)]


def principal_of(request: Request, services: Given) -> Principal:
    """Return who is asking.

    Raises:
        ValidationFailed: The development header is on and not `tenant/subject`.
    """
    named = request.headers.getlist(DEV_PRINCIPAL_HEADER) if services.dev_principals else []
    if not named:
        return services.principal
    match = _DEV_PRINCIPAL.fullmatch(named[0])
    if match is None or len(named) > 1:
        raise ValidationFailed(
            "The development principal is malformed.",
            {DEV_PRINCIPAL_HEADER: "is one header, tenant/subject, 1 to 128 ASCII signs each"},
        )
    return Principal(tenant=match["tenant"], subject=match["subject"])


Caller = Annotated[Principal, Depends(principal_of)]


ProjectId = Annotated[str, Path(alias="projectId")]


async def member_project(
    services: Services, principal: Principal, project_id: str, *, role: Role
) -> Project:
    """Return a project of which the principal is a member with at least the role.

    Raises:
        ProjectNotFound: There is none, or the principal is no member.
        InsufficientRole: The principal's role is a lesser one.
    """
    project = await services.projects.get(project_id, tenant=principal.tenant)
    held = project.members.get(principal.subject)
    if held is None:
        raise ProjectNotFound(f"project {project_id!r} is not the caller's")
    if _RANK[held] < _RANK[role]:
        raise InsufficientRole(f"This needs the role {role.value}; the caller is {held.value}.")
    return project


def project_for(role: Role) -> Callable[..., Awaitable[Project]]:
    """Make the dependency that admits members with at least the role to the path's project."""

    async def admitted(project_id: ProjectId, principal: Caller, services: Given) -> Project:
        return await member_project(services, principal, project_id, role=role)

    return admitted


ViewedProject = Annotated[Project, Depends(project_for(Role.VIEWER))]
EditedProject = Annotated[Project, Depends(project_for(Role.EDITOR))]
OwnedProject = Annotated[Project, Depends(project_for(Role.OWNER))]


async def _viewed_job(
    job_id: Annotated[str, Path(alias="jobId")], principal: Caller, services: Given
) -> Job:
    job = await services.jobs.get(job_id, tenant=principal.tenant)
    try:
        await member_project(services, principal, job.project_id, role=Role.VIEWER)
    except NotFound:
        raise JobNotFound(f"job {job_id!r} is not the caller's") from None
    return job


async def _own_conversation(
    conversation_id: Annotated[str, Path(alias="conversationId")],
    principal: Caller,
    services: Given,
) -> Conversation:
    return await services.conversations.get(conversation_id, principal=principal)


RunId = Annotated[str, Path(alias="runId")]


async def _own_run(run_id: RunId, principal: Caller, services: Given) -> Run:
    return await services.runs.get(run_id, principal=principal)


ViewedJob = Annotated[Job, Depends(_viewed_job)]
OwnConversation = Annotated[Conversation, Depends(_own_conversation)]
OwnRun = Annotated[Run, Depends(_own_run)]
