"""The one place that makes terminators."""

import asyncio
from datetime import datetime
from enum import Enum
from typing import assert_never

from ibid.domain.answers import FinishReason, TurnPause, TurnResult
from ibid.domain.errors import IbidError, LeaseLost, RunLost, RunTimedOut, ShuttingDown
from ibid.domain.events import Done, Failed, Paused, Terminator


class Stop(Enum):
    """Why a run ends that neither finished nor failed: code, message, finish reason."""

    CANCELLED = "RUN_CANCELLED", "The run was cancelled.", FinishReason.CANCELLED
    DISCONNECTED = (
        "CLIENT_DISCONNECTED",
        "The client left before the answer was whole.",
        FinishReason.DISCONNECTED,
    )
    TIMED_OUT = RunTimedOut.code, "The run reached its time limit.", FinishReason.TIMEOUT
    SHUTTING_DOWN = ShuttingDown.code, "The server is stopping.", FinishReason.ERROR
    LEASE_LOST = LeaseLost.code, "Another process ended the run.", FinishReason.ERROR
    PROCESS_DIED = RunLost.code, "The process that ran it died.", FinishReason.ERROR
    NOT_TAKEN = (
        RunLost.code,
        "No process took the run from its queue in time.",
        FinishReason.ERROR,
    )
    DELETED = "CONVERSATION_NOT_FOUND", "The conversation was deleted.", FinishReason.CANCELLED


Ending = TurnResult | TurnPause | Stop | BaseException


def terminator(
    ending: Ending, *, message_id: str | None, expires_at: datetime | None = None
) -> Terminator:
    """Make the one event that ends a run.

    Args:
        ending: What the turn left, why it was stopped, or what it raised. The text of an
            IbidError is shown, that of any other error never.
        message_id: Of the assistant message that is kept with it; None if none is.
        expires_at: Of a pause, which can't be without.
    """
    match ending:
        case TurnPause():
            if expires_at is None:
                raise ValueError("a pause expires")
            return Paused(
                message_id=message_id,
                interrupt_id=ending.interrupt_id,
                node=ending.node,
                clarification=ending.clarification,
                expires_at=expires_at,
            )
        case TurnResult():
            return Done(
                message_id=message_id,
                model=ending.model,
                finish_reason=FinishReason.STOP,
                cited_indexes=tuple(ending.cited_indexes),
                grounding_warnings=tuple(ending.warnings),
                intent=ending.intent,
                retrieval_attempts=ending.retrieval_attempts,
                citations=tuple(ending.citations),
                degraded=tuple(ending.degraded),
                clarification=ending.clarification,
                assumptions=tuple(ending.assumptions),
                suggestions=tuple(ending.suggestions),
            )
        case Stop():
            code, message, finish_reason = ending.value
        case asyncio.CancelledError():
            code, message, finish_reason = Stop.CANCELLED.value
        case RunTimedOut():
            code, message, finish_reason = Stop.TIMED_OUT.value
        case IbidError():
            code, message, finish_reason = ending.code, str(ending), FinishReason.ERROR
        case BaseException():
            code, message, finish_reason = (
                IbidError.code,
                "The run failed for a reason that the server's log names.",
                FinishReason.ERROR,
            )
        case _:
            assert_never(ending)
    return Failed(message_id=message_id, code=code, message=message, finish_reason=finish_reason)


def lost(*, message_id: str, kept_through_id: int, was_taken: bool = True) -> Failed:
    """Make the terminator of a run whose process died.

    Args:
        message_id: Of the assistant message that is kept with it.
        kept_through_id: The last event id that was kept, 0 if none was.
        was_taken: False for a run that waited in a queue to the last.
    """
    why = Stop.PROCESS_DIED if was_taken else Stop.NOT_TAKEN
    code, message, finish_reason = why.value
    return Failed(
        message_id=message_id,
        code=code,
        message=message,
        finish_reason=finish_reason,
        kept_through_id=kept_through_id,
    )
