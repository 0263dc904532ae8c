"""The route that takes ratings of the Ask surface's answers."""

from fastapi import APIRouter

from ibid.domain.conversations import Run
from ibid.domain.errors import FeedbackTargetNotFound
from ibid.domain.events import Done
from ibid.domain.principals import Principal
from ibid.ports.feedback import Feedback
from ibid.web.access import Caller, Given
from ibid.web.ask_bodies import FeedbackBody, RatedBody
from ibid.web.error_bodies import SnakeErrorBody
from ibid.web.errors import documented
from ibid.web.services import Services

router = APIRouter(tags=["ask"])

_RUNS_LOOKED_AT = 20


@router.post("/feedback", responses=documented(404, 413, 422, body=SnakeErrorBody))
async def rate_answer(body: FeedbackBody, caller: Caller, services: Given) -> RatedBody:
    """Rate the last answer of a thread; a later rating takes the place of an earlier one."""
    run = await _last_answered(services, caller, body.thread_id)
    feedback = Feedback(
        tenant=caller.tenant,
        subject=caller.subject,
        conversation_id=run.conversation_id,
        run_id=run.id,
        rating=body.rating,
        comment=body.comment,
        created_at=services.clock.now(),
    )
    await services.feedback.put(feedback)
    return RatedBody.of(feedback)


async def _last_answered(services: Services, caller: Principal, thread_id: str) -> Run:
    """Return the newest run of a thread that has an answer.

    Raises:
        ConversationNotFound: The caller has no such thread.
        FeedbackTargetNotFound: None of its last runs has one.
    """
    page = await services.runs.list_for(
        thread_id, principal=caller, cursor=None, limit=_RUNS_LOOKED_AT
    )
    for run in page.items:
        if isinstance(run.terminator, Done):
            return run
    raise FeedbackTargetNotFound(f"thread {thread_id!r} has no answer yet")
