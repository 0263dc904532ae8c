"""Where the Lambda Web Adapter posts what is no HTTP request: batches of tickets from a queue.

The route is there only behind the adapter (`Services.queue_events`): else anyone could post to it.
"""

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

from fastapi import APIRouter, Request

from ibid.domain.conversations import Run
from ibid.domain.errors import IbidError
from ibid.domain.principals import Principal
from ibid.domain.projects import Project
from ibid.domain.tickets import RunTicket
from ibid.runs.turns import Work
from ibid.web.access import Given
from ibid.web.services import Services
from ibid.web.starting import ready_project

logger = logging.getLogger(__name__)

router = APIRouter()

CONTEXT_HEADER = "x-amzn-lambda-context"


class _Ticketed(NamedTuple):
    """One message of a batch."""

    message_id: str
    body: str


@router.post("/internal/events", include_in_schema=False)
async def take_events(request: Request, services: Given) -> dict[str, list[dict[str, str]]]:
    """Work on each run whose ticket came, to its end; anything else is ignored.

    The answer names the tickets that are to come again: those that a store, or a server that
    stops, kept from being taken up, and those that can't be read, for the queue to set aside.
    Lambda reads it only if the adapter's invoke mode is `buffered`.
    """
    batch = list(_tickets(await request.body()))
    deadline_s = _seconds_left(request, services)
    are_through = await asyncio.gather(*(_work_on(one, services, deadline_s) for one in batch))
    left = [one for one, is_through in zip(batch, are_through, strict=True) if not is_through]
    return {"batchItemFailures": [{"itemIdentifier": one.message_id} for one in left]}


async def _work_on(one: _Ticketed, services: Services, deadline_s: float | None) -> bool:
    """Do what a ticket says; False if it is to come again."""

    async def work_for(run: Run) -> tuple[Project, Work]:
        principal = Principal(tenant=run.tenant, subject=run.subject)
        project = await ready_project(services, principal, run.project_id)
        return project, services.work(project, graph=run.graph)

    try:
        ticket = RunTicket.from_json(one.body)
        live = await services.engine.adopt(ticket, work_for, deadline_s=deadline_s)
    except Exception as error:  # noqa: BLE001 - an edge: one record of a batch
        name = error.code if isinstance(error, IbidError) else type(error).__name__
        logger.warning("ticket_left", extra={"message_id": one.message_id, "error": name})
        return False
    if live is not None:
        await live.wait_ended()
    return True


def _tickets(body: bytes) -> Iterator[_Ticketed]:
    """Yield what SQS has brought; nothing for another event."""
    try:
        event: Any = json.loads(body)
    except (ValueError, RecursionError):
        return
    records = event.get("Records") if isinstance(event, dict) else None
    for record in records if isinstance(records, list) else ():
        match record:
            case {"eventSource": "aws:sqs", "messageId": str(message_id), "body": str(text)}:
                yield _Ticketed(message_id, text)
            case _:
                continue


def _seconds_left(request: Request, services: Services) -> float | None:
    """Return the seconds until the function is stopped; None where the adapter does not tell."""
    try:
        context: Any = json.loads(request.headers.get(CONTEXT_HEADER, ""))
        return float(context["deadline"]) / 1_000 - services.clock.now().timestamp()
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
