"""What every request that starts a run has in common: the project asked, the key it came with."""

import re
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ibid.domain.conversations import Run
from ibid.domain.principals import Principal
from ibid.domain.projects import Project, Role
from ibid.domain.readiness import check_ready
from ibid.ports.idempotency import StoredAnswer
from ibid.runs.engine import LiveRun
from ibid.web.access import member_project
from ibid.web.claims import Claim, RunPlan
from ibid.web.services import Services

STARTED_HEADERS: dict[str, Any] = {
    "Ibid-Run-Id": {"description": "The run that was started.", "schema": {"type": "string"}},
    "Location": {"description": "Where the run is read.", "schema": {"type": "string"}},
}
"""What every answer that started a run carries, as OpenAPI describes it."""


async def ready_project(services: Services, principal: Principal, project_id: str) -> Project:
    """Return a project of the principal's that can be asked.

    Raises:
        ProjectNotFound: It is gone, or the principal is no member, or no longer.
        ProjectNotReady: Nothing of it can be searched yet.
        EmbeddingModelChanged: Its vectors are another model's.
    """
    project = await member_project(services, principal, project_id, role=Role.VIEWER)
    check_ready(project, embedding_signature=services.embedding_signature())
    return project


def relative(prefix: str | None) -> str | None:
    """Write a prefix as indexed paths begin: without a leading `/` or `./`."""
    return re.sub(r"\A(?:\.?/)+", "", prefix or "") or None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKey:
    """What the run of a request is told of the request's key.

    Attributes:
        idempotency: The id of the key's record; None without a key.
        message_id: Of the answer: what tells the run that this request begins from any other.
        planned: Puts on record which run is about to begin; None without a key.
    """

    idempotency: str | None
    message_id: str
    planned: Callable[[str], Awaitable[None]] | None


def run_key(claim: Claim | None) -> RunKey:
    """Make what a run is told of its request's key."""
    message_id = uuid.uuid4().hex
    if claim is None:
        return RunKey(idempotency=None, message_id=message_id, planned=None)

    async def planned(run_id: str) -> None:
        await claim.plan(str(RunPlan(run_id, message_id)))

    return RunKey(idempotency=claim.record_id, message_id=message_id, planned=planned)


R = TypeVar("R", bound=LiveRun | Run)


async def begun(run: R, claim: Claim | None, *, status: int = 200) -> R:
    """Put on record that the run is the answer to its request's key, and return it."""
    if claim is not None:
        await claim.answer(StoredAnswer(status=status, run_id=run.id))
    return run
