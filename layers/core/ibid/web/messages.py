"""The routes that answer a question: as an event stream or JSON, or by a run in the background."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from ibid.domain.conversations import Run
from ibid.domain.projects import Project
from ibid.runs.engine import LiveRun, NewTurn
from ibid.web.access import Caller, Given, OwnConversation
from ibid.web.claims import Held
from ibid.web.conversation_bodies import AnswerBody, QuestionBody
from ibid.web.errors import documented
from ibid.web.message_events import MESSAGE_EVENTS
from ibid.web.run_answers import begun_answer, run_answer
from ibid.web.run_bodies import RunStartedBody
from ibid.web.schema import event_stream_schema
from ibid.web.starting import STARTED_HEADERS, begun, ready_project, relative, run_key
from ibid.web.streaming import EVENT_STREAM

router = APIRouter(tags=["conversations"])

_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "model": AnswerBody,
        "description": "The answer; what went wrong after the start is in it, or in the stream.",
        "headers": STARTED_HEADERS,
        "content": {EVENT_STREAM: event_stream_schema(MESSAGE_EVENTS)},
    },
    **documented(404, 409, 413, 422),
}
_BEGUN: dict[int | str, dict[str, Any]] = {
    202: {
        "model": RunStartedBody,
        "description": "The run works in the background; its events tell how far it is.",
        "headers": STARTED_HEADERS,
    },
    **documented(404, 409, 413, 422),
}


async def _asked_project(conversation: OwnConversation, caller: Caller, services: Given) -> Project:
    return await ready_project(services, caller, conversation.project_id)


async def new_turn(
    body: QuestionBody,
    conversation: OwnConversation,
    project: Annotated[Project, Depends(_asked_project)],
    caller: Caller,
    claim: Held,
) -> NewTurn:
    """Make the turn; whatever a status code can refuse but a busy thread has been refused then."""
    key = run_key(claim)
    return NewTurn(
        principal=caller,
        conversation=conversation,
        project=project,
        question=body.question,
        style=body.style.style(),
        path_prefix=relative(body.path_prefix),
        on_disconnect=body.on_disconnect,
        strategy=body.multitask_strategy,
        idempotency=key.idempotency,
        message_id=key.message_id,
        planned=key.planned,
    )


Turn = Annotated[NewTurn, Depends(new_turn)]


async def _started_run(turn: Turn, services: Given, claim: Held) -> LiveRun:
    run = await services.engine.start(turn, services.work(turn.project))
    return await begun(run, claim)


@router.post("/conversations/{conversationId}/messages", responses=_ANSWER)
async def ask(
    request: Request, run: Annotated[LiveRun, Depends(_started_run)], services: Given
) -> Response:
    """Answer a question: streamed for `Accept: text/event-stream`, else as one JSON body."""
    return await run_answer(run, request, ping_s=services.ping_s)


@router.post(
    "/conversations/{conversationId}/runs",
    status_code=202,
    response_class=Response,
    responses=_BEGUN,
)
async def begin_run(turn: Turn, services: Given, claim: Held) -> Response:
    """Answer a question in the background: nobody need read it, so `onDisconnect` says nothing."""
    unattended = replace(turn, attended=False, on_disconnect="continue")
    run: LiveRun | Run
    if services.queue is None:
        run = await services.engine.start(unattended, services.work(turn.project))
    else:
        run = await services.engine.enqueue(unattended, services.queue)
    return begun_answer((await begun(run, claim, status=202)).id)
