"""Routes of the Ask surface (snake_case): ask a dataset, answer what is asked back, rate."""

import uuid
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from ibid.domain.conversations import Conversation, parse_run_id, run_id
from ibid.domain.errors import (
    ConversationNotFound,
    EmbeddingModelChanged,
    IbidError,
    ProjectNotReady,
    ValidationFailed,
)
from ibid.domain.principals import Principal
from ibid.domain.projects import Project
from ibid.domain.readiness import check_ready
from ibid.runs.engine import LiveRun, NewResumption, NewTurn
from ibid.web.access import Caller, Given
from ibid.web.ask_bodies import AskBody, DatasetBody, DatasetsBody, ResumeBody
from ibid.web.ask_events import ASK_EVENTS, AnswerEnvelope, AskErrorEvent
from ibid.web.claims import Claim, Held, RunPlan
from ibid.web.error_bodies import SnakeErrorBody
from ibid.web.errors import documented
from ibid.web.paging import DEFAULT_LIMIT, Cursor, Limit
from ibid.web.pauses import answerable_pause, question_of
from ibid.web.run_answers import run_answer
from ibid.web.schema import event_stream_schema
from ibid.web.services import Services
from ibid.web.starting import STARTED_HEADERS, RunKey, begun, ready_project, run_key
from ibid.web.streaming import EVENT_STREAM

router = APIRouter(tags=["ask"])

GRAPH = "ask"


def _answers(*refusals: int) -> dict[int | str, dict[str, Any]]:
    return {
        200: {
            "model": AnswerEnvelope | AskErrorEvent,
            "description": "The envelope, or what went wrong after the start; or their stream.",
            "headers": STARTED_HEADERS,
            "content": {EVENT_STREAM: event_stream_schema(ASK_EVENTS)},
        },
        **documented(*refusals, body=SnakeErrorBody),
    }


@router.get("/datasets", responses=documented(422, body=SnakeErrorBody))
async def list_datasets(
    caller: Caller, services: Given, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> DatasetsBody:
    """List the caller's projects that can be asked now, newest first."""
    page = await services.projects.list_for(
        tenant=caller.tenant, subject=caller.subject, cursor=cursor, limit=limit
    )
    ready = [project for project in page.items if _is_ready(project, services)]
    return DatasetsBody(items=tuple(map(DatasetBody.of, ready)), next_cursor=page.next_cursor)


def _is_ready(project: Project, services: Services) -> bool:
    try:
        check_ready(project, embedding_signature=services.embedding_signature())
    except (ProjectNotReady, EmbeddingModelChanged):
        return False
    return True


async def _asking_run(body: AskBody, caller: Caller, services: Given, claim: Held) -> LiveRun:
    project = await ready_project(services, caller, body.dataset_id)
    key = run_key(claim)
    if body.thread_id is None:
        conversation = await _new_thread(services, caller, project, claim, key)
    else:
        conversation = await services.conversations.get(body.thread_id, principal=caller)
    if conversation.project_id != project.id:
        raise ValidationFailed(
            "The thread is about another dataset.", {"dataset_id": "is not the thread's"}
        )
    turn = NewTurn(
        principal=caller,
        conversation=conversation,
        project=project,
        question=body.question,
        on_disconnect=body.on_disconnect,
        strategy=body.multitask_strategy,
        graph=GRAPH,
        idempotency=key.idempotency,
        message_id=key.message_id,
        planned=key.planned,
    )
    try:
        run = await services.engine.start(turn, services.work(project, graph=GRAPH))
    except IbidError:
        if body.thread_id is None:  # else a thread would be left that nobody knows of
            with suppress(IbidError):
                await services.conversations.delete(conversation.id, principal=caller)
        raise
    return await begun(run, claim)


async def _new_thread(
    services: Services, caller: Principal, project: Project, claim: Claim | None, key: RunKey
) -> Conversation:
    """Begin a thread; under a key the one that an earlier request planned, if it did.

    What is planned is its first run, so that a request that died is found out by either.
    """
    plan = RunPlan.read(claim.planned) if claim is not None else None
    planned = None if plan is None else parse_run_id(plan.run_id)
    if planned is not None:
        try:
            return await services.conversations.get(planned[0], principal=caller)
        except ConversationNotFound:
            pass
    conversation = Conversation(
        tenant=caller.tenant,
        subject=caller.subject,
        id=uuid.uuid4().hex if planned is None else planned[0],
        project_id=project.id,
        title=None,
        reply_language=None,
        created_at=services.clock.now(),
    )
    if key.planned is not None:
        await key.planned(run_id(conversation.id, 1))
    await services.conversations.create(conversation, idempotency=key.idempotency)
    return conversation


@router.post("/ask", responses=_answers(404, 409, 413, 422))
async def ask_dataset(
    request: Request, run: Annotated[LiveRun, Depends(_asking_run)], services: Given
) -> Response:
    """Answer a question about a dataset, or ask back: then the run is over, and the turn waits."""
    return await run_answer(run, request, ping_s=services.ping_s)


async def _resuming_run(body: ResumeBody, caller: Caller, services: Given, claim: Held) -> LiveRun:
    conversation = await services.conversations.get(body.thread_id, principal=caller)
    project = await ready_project(services, caller, conversation.project_id)
    paused = await answerable_pause(services, caller, conversation, body.interrupt_id)
    key = run_key(claim)
    resumption = NewResumption(
        principal=caller,
        conversation=conversation,
        project=project,
        paused=paused,
        question=await question_of(services, caller, paused),
        answer=body.message,
        on_disconnect=body.on_disconnect,
        idempotency=key.idempotency,
        message_id=key.message_id,
        planned=key.planned,
    )
    run = await services.engine.resume(resumption, services.work(project, graph=paused.graph))
    return await begun(run, claim)


@router.post("/resume", responses=_answers(404, 409, 410, 413, 422))
async def resume_thread(
    request: Request, run: Annotated[LiveRun, Depends(_resuming_run)], services: Given
) -> Response:
    """Answer what a thread asks back: its turn goes on where it stopped, as another run."""
    return await run_answer(run, request, ping_s=services.ping_s)
