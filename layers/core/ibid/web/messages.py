"""The route that answers a question: an event stream, or one JSON body of the same events."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from ibid.domain.projects import Project, Role
from ibid.domain.readiness import check_ready
from ibid.runs.engine import LiveRun, NewTurn
from ibid.web.access import Caller, Given, OwnConversation, member_project
from ibid.web.answering import whole_answer
from ibid.web.conversation_bodies import AnswerBody, QuestionBody
from ibid.web.errors import documented
from ibid.web.message_events import MESSAGE_EVENTS
from ibid.web.schema import event_stream_schema
from ibid.web.streaming import EventStream, message_frames

router = APIRouter(tags=["conversations"])

EVENT_STREAM = "text/event-stream"
CLIENT_GONE = 499
_STARTED = {
    "Ibid-Run-Id": {"description": "The run that was started.", "schema": {"type": "string"}},
    "Location": {"description": "Where the run is read.", "schema": {"type": "string"}},
}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": AnswerBody,
        "description": "The answer; what went wrong after the start is in it, or in the stream.",
        "headers": _STARTED,
        "content": {EVENT_STREAM: event_stream_schema(MESSAGE_EVENTS)},
    },
    **documented(404, 409, 413, 422),
}


def _relative(prefix: str | None) -> str | None:
    """Write a prefix as indexed paths begin: without a leading `/` or `./`."""
    return re.sub(r"\A(?:\.?/)+", "", prefix or "") or None


async def ready_project(conversation: OwnConversation, caller: Caller, services: Given) -> Project:
    """Return the conversation's project if a turn can be answered from it.

    Raises:
        ProjectNotFound: It is gone, or the caller is no member any more.
        ProjectNotReady: Nothing of it can be searched yet.
        EmbeddingModelChanged: Its vectors are another model's.
    """
    project = await member_project(services, caller, conversation.project_id, role=Role.VIEWER)
    check_ready(project, embedding_signature=services.embedding_signature())
    return project


async def started_run(
    body: QuestionBody,
    conversation: OwnConversation,
    project: Annotated[Project, Depends(ready_project)],
    caller: Caller,
    services: Given,
) -> LiveRun:
    """Start the run; whatever a status code can refuse has been refused by then."""
    turn = NewTurn(
        principal=caller,
        conversation=conversation,
        project=project,
        question=body.question,
        style=body.style.style(),
        path_prefix=_relative(body.path_prefix),
        on_disconnect=body.on_disconnect,
    )
    return await services.engine.start(turn, services.work(project))


@router.post("/conversations/{conversationId}/messages", responses=_RESPONSES)
async def ask(
    request: Request, run: Annotated[LiveRun, Depends(started_run)], services: Given
) -> Response:
    """Answer a question: streamed for `Accept: text/event-stream`, else as one JSON body."""
    headers = {"Ibid-Run-Id": run.id, "Location": f"/runs/{run.id}"}
    if request.headers.get("accept") == EVENT_STREAM:
        return EventStream(message_frames(run, ping_s=services.ping_s), headers=headers)
    answer = await whole_answer(run, request, ping_s=services.ping_s)
    if answer is None:
        return Response(status_code=CLIENT_GONE, headers=headers)
    return Response(answer.model_dump_json(), media_type="application/json", headers=headers)
