"""The answer that a run is: its event stream, or one JSON body of the same events."""

import asyncio
from collections.abc import AsyncGenerator, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from ibid.domain.conversations import Run
from ibid.domain.events import Entry
from ibid.domain.principals import Principal
from ibid.runs.following import Followed
from ibid.web.run_bodies import RunStartedBody
from ibid.web.services import Services
from ibid.web.streaming import EVENT_STREAM, EventStream, Readable, run_frames
from ibid.web.surfaces import surface_of

CLIENT_GONE = 499


def started_headers(run_id: str) -> Mapping[str, str]:
    """Return what every answer carries that started a run."""
    return {"Ibid-Run-Id": run_id, "Location": f"/runs/{run_id}"}


def wants_stream(request: Request) -> bool:
    """Say if the client asks for an event stream: by exactly that media type."""
    return request.headers.getlist("accept") == [EVENT_STREAM]


async def run_answer(reading: Readable, request: Request, *, ping_s: float) -> Response:
    """Answer with a run, streamed or whole as the request asks.

    Args:
        reading: From the run's first event.
        request: Its client may leave: the run learns of it, either way.
        ping_s: Seconds of silence after which a stream sends a comment.
    """
    headers = started_headers(reading.run.id)
    if wants_stream(request):
        return EventStream(run_frames(reading, ping_s=ping_s), headers=headers)
    body = await _whole_unless_gone(reading, request.receive, ping_s=ping_s)
    if body is None:
        return Response(status_code=CLIENT_GONE, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


class Following:
    """A run that is followed, as what can be read; leaving it never stops the run."""

    def __init__(self, followed: Followed) -> None:
        self._followed = followed

    @property
    def run(self) -> Run:
        """The run as it is known; as it is kept with its end, once the terminator was given."""
        return self._followed.ended or self._followed.run

    def events(self, ping_s: float) -> AsyncGenerator[Entry | None, None]:
        """Read the events in order, None after each `ping_s` seconds of silence."""
        return self._followed.events(ping_s)


async def followed_answer(
    run_id: str, request: Request, services: Services, *, principal: Principal
) -> Response:
    """Answer with a run that was started before, from its first event.

    Raises:
        RunNotFound: It was deleted.
        JournalExpired: Its events are not kept any more.
    """
    followed = await services.engine.follow(run_id, principal=principal)
    return await run_answer(Following(followed), request, ping_s=services.ping_s)


def begun_answer(run_id: str) -> Response:
    """Answer with a run that works in the background."""
    body = RunStartedBody(run_id=run_id)
    return Response(
        body.model_dump_json(),
        status_code=202,
        media_type="application/json",
        headers=dict(started_headers(run_id)),
    )


async def _whole_unless_gone(reading: Readable, receive: Receive, *, ping_s: float) -> str | None:
    waiting = asyncio.create_task(_whole(reading, ping_s=ping_s))
    leaving = asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return waiting.result() if waiting.done() else None
    finally:
        waiting.cancel()
        leaving.cancel()
        await asyncio.gather(waiting, leaving, return_exceptions=True)


async def _whole(reading: Readable, *, ping_s: float) -> str | None:
    whole = surface_of(reading.run).whole()
    events = reading.events(ping_s)
    try:
        async for entry in events:
            if entry is not None:
                whole.add(entry, reading.run)
    finally:
        await events.aclose()
    return whole.body


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
