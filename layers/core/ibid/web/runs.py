"""Routes of runs: how one stands, what it showed and shows, and its cancellation."""

import json
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Header, Query, Request, Response

from ibid.domain.conversations import Run
from ibid.domain.errors import ValidationFailed
from ibid.domain.principals import Principal
from ibid.web.access import Caller, Given, OwnRun, RunId
from ibid.web.errors import documented
from ibid.web.event_registry import EVENT_MODELS
from ibid.web.paging import DEFAULT_LIMIT, Limit
from ibid.web.run_answers import Following, wants_stream
from ibid.web.run_bodies import CancelBody, RunBody, RunEventBody, RunEventsBody
from ibid.web.schema import event_stream_schema
from ibid.web.services import Services
from ibid.web.streaming import EVENT_STREAM, EventStream, run_frames
from ibid.web.surfaces import surface_of

router = APIRouter(tags=["runs"])

LAST_EVENT_ID = "Last-Event-ID"
_ID = "^(0|[1-9][0-9]{0,15})$"

_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": RunEventsBody,
        "description": "The events after the given one: a stream to its end, or a page of JSON.",
        "content": {EVENT_STREAM: event_stream_schema(*EVENT_MODELS.values())},
    },
    204: {"description": "A stream was asked for, and its terminator is known already."},
    **documented(404, 410, 422),
}


@router.get("/runs/{runId}", responses=documented(404, 422))
async def get_run(run: OwnRun) -> RunBody:
    """Return how one run stands."""
    return RunBody.of(run)


@router.post("/runs/{runId}/cancel", status_code=202, responses=documented(404, 413, 422))
async def cancel_run(
    run: OwnRun, caller: Caller, services: Given, body: CancelBody | None = None
) -> RunBody:
    """Stop a run, wherever it runs; one that waits for an answer expires.

    What was written is kept and marked. A run that has ended stays as it is.
    """
    del body
    return RunBody.of(await services.engine.cancel_run(run.id, principal=caller))


class _Part(NamedTuple):
    after: int
    limit: int


def _part(
    request: Request,
    header: Annotated[
        str | None,
        Header(
            alias=LAST_EVENT_ID,
            pattern=_ID,
            description="The last event that is known; 0 for none.",
        ),
    ] = None,
    cursor: Annotated[
        str | None,
        Query(pattern=_ID, description="The same for who can't send the header, which wins."),
    ] = None,
    limit: Limit = DEFAULT_LIMIT,
) -> _Part:
    if len(request.headers.getlist(LAST_EVENT_ID)) > 1:
        raise ValidationFailed(
            "The last event's id is malformed.", {LAST_EVENT_ID: "is one header"}
        )
    return _Part(int(header or cursor or 0), limit)


@router.get("/runs/{runId}/events", response_class=Response, responses=_EVENTS)
async def read_events(
    request: Request,
    run_id: RunId,
    caller: Caller,
    services: Given,
    part: Annotated[_Part, Depends(_part)],
) -> Response:
    """Tell what a run showed after an event, byte for byte as it was shown.

    As a stream (`Accept: text/event-stream`) it goes on with what the run shows, in whichever
    process, and ends with the terminator; leaving it never stops the run. Else it is one page of
    what is kept.
    """
    if wants_stream(request):
        return await _stream(services, run_id, caller, after=part.after)
    run = await services.runs.get(run_id, principal=caller)
    body = await _page(services, run, after=part.after, limit=part.limit)
    return Response(body.model_dump_json(), media_type="application/json")


async def _stream(services: Services, run_id: str, caller: Principal, *, after: int) -> Response:
    followed = await services.engine.follow(run_id, principal=caller, after=after)
    if followed.is_over:
        return Response(status_code=204)
    if after and surface_of(followed.run).is_cumulative:
        followed = await services.engine.follow(run_id, principal=caller)
    frames = run_frames(Following(followed), ping_s=services.ping_s, after=after)
    return EventStream(frames, headers={})


async def _page(services: Services, run: Run, *, after: int, limit: int) -> RunEventsBody:
    surface = surface_of(run)
    tell = surface.telling()
    items: list[RunEventBody] = []
    last, has_more = 0 if surface.is_cumulative else after, True
    while has_more and len(items) <= limit:
        kept = await services.runs.entries(run, after=last, limit=limit + 1)
        for entry in kept.entries:
            name, data = tell(entry, kept.run)
            if entry.id > after:
                items.append(RunEventBody(id=entry.id, event=name, data=json.loads(data)))
            last = entry.id
        run, has_more = kept.run, kept.has_more
    page = items[:limit]
    last = page[-1].id if page else after
    return RunEventsBody(
        items=tuple(page),
        next_cursor=str(last) if has_more or len(items) > limit else None,
        last_event_id=last,
        state=run.state,
    )
