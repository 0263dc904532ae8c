"""Ordinary values to arrange tests with."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from ibid.domain.answers import (
    Clarification,
    FinishReason,
    GroundingWarning,
    Intent,
    TurnInput,
    TurnResult,
)
from ibid.domain.conversations import Conversation, Message, Run, RunState, run_id
from ibid.domain.events import (
    CitationsFound,
    Done,
    Paused,
    Phase,
    StatusChanged,
    TokenDelta,
    TurnEvent,
)
from ibid.domain.passages import Citation
from ibid.domain.principals import Principal
from ibid.domain.projects import (
    Job,
    JobState,
    JobStatistics,
    Project,
    ProjectSettings,
    ProjectStatus,
    Role,
)
from ibid.ports.runs import PlaceLimits
from ibid.runs.turns import NewTurn, Proceed, Work

ANN = Principal(tenant="acme", subject="ann")
NOON = datetime(2026, 1, 2, 12, 0, 0, 1, tzinfo=UTC)
PLACES = PlaceLimits(tenant=1_000, subject=1_000)


def a_project(project_id: str = "p1", *, principal: Principal = ANN) -> Project:
    """A ready project that the principal owns."""
    return Project(
        tenant=principal.tenant,
        id=project_id,
        name="flask",
        members={principal.subject: Role.OWNER},
        status=ProjectStatus.READY,
        source=None,
        reply_language=None,
        settings=ProjectSettings(),
        active_generation=1,
        reindex_in_progress=False,
        embedding_signature=None,
        chunk_count=2,
        path_count=1,
        commit_sha=None,
        created_at=NOON,
    )


def a_job(job_id: str = "j1", *, project_id: str = "p1", tenant: str = ANN.tenant) -> Job:
    """A queued job."""
    return Job(
        tenant=tenant,
        id=job_id,
        project_id=project_id,
        state=JobState.QUEUED,
        phase="fetching",
        statistics=JobStatistics(),
        error=None,
        started_at=NOON,
        finished_at=None,
    )


def a_conversation(
    conversation_id: str = "c1", *, principal: Principal = ANN, project_id: str = "p1"
) -> Conversation:
    """A conversation without a title."""
    return Conversation(
        tenant=principal.tenant,
        subject=principal.subject,
        id=conversation_id,
        project_id=project_id,
        title=None,
        reply_language=None,
        created_at=NOON,
    )


def a_run(number: int = 1, *, conversation_id: str = "c1", principal: Principal = ANN) -> Run:
    """A running run of the owner `me`, the first of its turn."""
    name = run_id(conversation_id, number)
    return Run(
        tenant=principal.tenant,
        subject=principal.subject,
        id=name,
        number=number,
        turn_id=name,
        conversation_id=conversation_id,
        project_id="p1",
        message_id=f"answer of {name}",
        state=RunState.RUNNING,
        lease_owner="me",
        beat=0,
        created_at=NOON,
    )


def a_resumption(paused: Run, number: int) -> Run:
    """A running run that resumes a paused one."""
    principal = Principal(tenant=paused.tenant, subject=paused.subject)
    run = a_run(number, conversation_id=paused.conversation_id, principal=principal)
    return replace(run, resumes=paused.id, turn_id=paused.turn_id)


def a_question(run: Run, text: str = "Where is the app made?") -> Message:
    """The asker's message of a run."""
    return Message(
        id=f"question of {run.id}",
        conversation_id=run.conversation_id,
        run_id=run.id,
        role="user",
        content=text,
        created_at=run.created_at,
    )


def a_citation(index: int = 1, *, cited: bool | None = True) -> Citation:
    """A citation of a file with an odd name."""
    return Citation(
        index=index,
        file_path="src/é [1].py",
        start_line=3,
        end_line=9,
        language="python",
        symbol=None,
        commit_sha="0" * 40,
        score=0.123456789,
        url=None,
        cited=cited,
    )


def an_answer(run: Run, text: str = "In `create_app` [1].") -> Message:
    """The assistant's message of a run that ended well."""
    return Message(
        id=run.message_id,
        conversation_id=run.conversation_id,
        run_id=run.id,
        role="assistant",
        content=text,
        created_at=NOON,
        finish_reason=FinishReason.STOP,
        model="scripted",
        intent=Intent.CODEBASE_QUESTION,
        citations=(a_citation(),),
        cited_indexes=(1,),
        grounding_warnings=(GroundingWarning.WEAK_EVIDENCE,),
        retrieval_attempts=2,
        degraded=("grade",),
    )


def a_done(run: Run) -> Done:
    """The terminator of a run that ended well."""
    return Done(
        message_id=run.message_id,
        model="scripted",
        finish_reason=FinishReason.STOP,
        cited_indexes=(1, 2),
        grounding_warnings=(GroundingWarning.UNKNOWN_PATHS, GroundingWarning.WEAK_EVIDENCE),
        intent=Intent.CODEBASE_QUESTION,
        retrieval_attempts=2,
        citations=(a_citation(1), a_citation(2, cited=False)),
        degraded=("classify", "grade"),
    )


def a_pause(run: Run) -> Paused:
    """The terminator of a run that asks which of two is meant, until a day after noon."""
    return Paused(
        message_id=run.message_id,
        interrupt_id=f"interrupt of {run.id}",
        node="clarify",
        clarification=Clarification(question="Which one?", options=("this one", "that one")),
        expires_at=NOON + timedelta(days=1),
    )


def a_turn(
    *,
    principal: Principal = ANN,
    project: Project | None = None,
    conversation: Conversation | None = None,
    question: str = "Where is the app made?",
) -> NewTurn:
    """A turn of the sample conversation."""
    return NewTurn(
        principal=principal,
        conversation=conversation or a_conversation(principal=principal),
        project=project or a_project(principal=principal),
        question=question,
    )


def a_result(answer: str = "", *, citations: Sequence[Citation] = ()) -> TurnResult:
    """What a turn leaves that gave this answer."""
    return TurnResult(
        answer=answer,
        passages=(),
        citations=tuple(replace(citation, cited=True) for citation in citations),
        cited_indexes=tuple(citation.index for citation in citations),
        warnings=(),
        intent=Intent.CODEBASE_QUESTION,
        retrieval_attempts=1,
        degraded=(),
        model="scripted",
    )


def scripted_work(*tokens: str, pause: Callable[[], "asyncio.Future[None]"] | None = None) -> Work:
    """Work that shows a phase, citations and these tokens; it yields to the loop between them."""

    async def work(_: TurnInput, __: Proceed) -> AsyncIterator[TurnEvent | TurnResult]:
        found = a_citation(cited=None)
        yield StatusChanged(phase=Phase.RETRIEVING)
        await asyncio.sleep(0)
        yield CitationsFound(citations=(found,))
        for token in tokens:
            await asyncio.sleep(0)
            yield TokenDelta(text=token)
        if pause is not None:
            await pause()
        yield a_result("".join(tokens), citations=(found,))

    return work
