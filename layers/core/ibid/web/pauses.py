"""Which pause an answer is for, and whether it can be answered still."""

from collections.abc import Sequence

from ibid.domain.conversations import Conversation, Run, RunState
from ibid.domain.errors import InterruptStale, NothingPending, PauseExpired, PauseResolved
from ibid.domain.events import Paused
from ibid.domain.principals import Principal
from ibid.web.services import Services

RUNS_LOOKED_AT = 50
"""Newest runs of a thread among which the pause is looked for that an answer names."""

_MESSAGES_LOOKED_AT = (20, 200)
_MAY_BE_TRIED_AGAIN = frozenset({RunState.FAILED, RunState.CANCELLED, RunState.TIMED_OUT})


async def answerable_pause(
    services: Services,
    principal: Principal,
    conversation: Conversation,
    interrupt_id: str | None,
) -> Run:
    """Return the paused run that an answer is for; which answer counts is the store's to decide.

    A pause whose answer was taken by a run that then failed, was cancelled or timed out can be
    answered once more: the store takes the same answer only.

    Args:
        services: Of the application.
        principal: Whose thread it is.
        conversation: The thread.
        interrupt_id: Names the pause; None means the one that is pending.

    Raises:
        NothingPending: The thread waits for nothing.
        InterruptStale: It waits for another answer, or the id is none of this thread's.
        PauseResolved: It was answered already; the error names the run that goes on.
        PauseExpired: Its time is over, or its run was cancelled.
        GraphChanged: The graph that is deployed now has no such node as the one that waits.
    """
    page = await services.runs.list_for(
        conversation.id, principal=principal, cursor=None, limit=RUNS_LOOKED_AT
    )
    paused = _meant(page.items, interrupt_id)
    end = paused.terminator
    if paused.state is RunState.EXPIRED or not isinstance(end, Paused):
        raise PauseExpired("Nobody answered in time; ask again.")
    if paused.resumed_by is not None:
        going_on = await services.runs.get(paused.resumed_by, principal=principal)
        if going_on.state not in _MAY_BE_TRIED_AGAIN or going_on.id != page.items[0].id:
            raise PauseResolved(
                "The pause has been answered.", run_id=going_on.id, state=going_on.state
            )
    elif end.expires_at <= services.clock.now():
        await services.runs.expire(paused)
        raise PauseExpired("Nobody answered in time; ask again.")
    await services.check_pause(paused)
    return paused


async def question_of(services: Services, principal: Principal, paused: Run) -> str:
    """Return the question of a paused turn, with the answers to its earlier pauses.

    Raises:
        NothingPending: It is not among the thread's messages any more.
    """
    for limit in _MESSAGES_LOOKED_AT:
        messages = await services.conversations.latest_messages(
            paused.conversation_id, principal=principal, limit=limit
        )
        for message in messages:
            if message.role == "user" and message.run_id == paused.id:
                return message.content
    raise NothingPending("The question that waits is too far back; ask again.")


def _meant(newest_first: Sequence[Run], interrupt_id: str | None) -> Run:
    pauses = [run for run in newest_first if isinstance(run.terminator, Paused)]
    if not pauses:
        raise NothingPending("The thread waits for no answer.")
    if interrupt_id is not None:
        for run in pauses:
            if isinstance(run.terminator, Paused) and run.terminator.interrupt_id == interrupt_id:
                return run
        raise InterruptStale("The thread waits for no answer to this.")
    for run in pauses:
        if run.state is RunState.PAUSED and run.resumed_by is None:
            return run
    # what the last turn waited for has an outcome that is worth telling
    if pauses[0].turn_id == newest_first[0].turn_id:
        return pauses[0]
    raise NothingPending("The thread waits for no answer.")
