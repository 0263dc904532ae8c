"""Runs and their journals as they are sent (design.md §5.0)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self, assert_never

from pydantic import Field

from ibid.domain.answers import FinishReason
from ibid.domain.conversations import Run, RunState
from ibid.domain.events import Done, Failed, Paused, Terminator
from ibid.web.wire import Asked, Wire, is_absent


class RunStartedBody(Wire):
    """The run that works in the background."""

    run_id: str


class CancelBody(Asked):
    """Nothing needs to be said to cancel a run."""


class RunBody(Wire):
    """One run; from `endedAt` on, null is what it has not or not yet.

    A paused run has `interruptId` and `expiresAt`, and once it was answered `resumedBy`: who
    followed it goes on there. `lastEventId` is its terminator's id once it has ended, before that
    the last id that is kept, 0 where none is.
    """

    run_id: str
    state: RunState
    graph: str
    conversation_id: str
    project_id: str
    turn_id: str
    message_id: str
    created_at: datetime
    last_event_id: int
    cancel_requested: bool
    ended_at: datetime | None
    finish_reason: FinishReason | None
    code: str | None
    kept_through_id: int | None = Field(default=None, exclude_if=is_absent)
    interrupt_id: str | None
    expires_at: datetime | None
    resumes: str | None
    resumed_by: str | None

    @classmethod
    def of(cls, run: Run) -> Self:
        """Translate one run."""
        end = run.terminator
        failed = end if isinstance(end, Failed) else None
        paused = end if isinstance(end, Paused) else None
        return cls(
            run_id=run.id,
            state=run.state,
            graph=run.graph,
            conversation_id=run.conversation_id,
            project_id=run.project_id,
            turn_id=run.turn_id,
            message_id=run.message_id,
            created_at=run.created_at,
            last_event_id=run.last_event_id,
            cancel_requested=run.cancel_requested,
            ended_at=run.ended_at,
            finish_reason=_finish_reason(end),
            code=None if failed is None else failed.code,
            kept_through_id=None if failed is None else failed.kept_through_id,
            interrupt_id=None if paused is None else paused.interrupt_id,
            expires_at=None if paused is None else paused.expires_at,
            resumes=run.resumes,
            resumed_by=run.resumed_by,
        )


def _finish_reason(end: Terminator | None) -> FinishReason | None:
    match end:
        case Paused():
            return FinishReason.PAUSED
        case Done() | Failed():
            return end.finish_reason
        case None:
            return None
        case _:
            assert_never(end)


class RunEventBody(Wire):
    """One event of a run: what a frame of its stream holds."""

    id: int = Field(ge=1)
    event: str
    data: Mapping[str, Any]


class RunEventsBody(Wire):
    """A page of a run's events as its own surface names them.

    `nextCursor` is null where no more is kept now. While `state` is queued or running more will
    come: ask again with `lastEventId` as the cursor, or as `Last-Event-ID`.
    """

    items: tuple[RunEventBody, ...]
    next_cursor: str | None
    last_event_id: int = Field(ge=0)
    state: RunState
