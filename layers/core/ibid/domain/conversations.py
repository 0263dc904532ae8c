"""Conversations, their messages, and the runs that write them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from ibid.domain.answers import FinishReason, GroundingWarning, Intent
from ibid.domain.events import Terminator
from ibid.domain.passages import Citation


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A thread bound to one tenant, subject and project; no `title` until the first question."""

    tenant: str
    subject: str
    id: str
    project_id: str
    title: str | None
    reply_language: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation; the fields below `created_at` are the assistant's only.

    Attributes:
        run_id: The run that wrote it, or that the question started.
        content: The question, or the answer exactly as it was streamed (perhaps empty).
    """

    id: str
    conversation_id: str
    run_id: str
    role: Literal["user", "assistant"]
    content: str
    created_at: datetime
    finish_reason: FinishReason | None = None
    error_code: str | None = None
    model: str | None = None
    intent: Intent | None = None
    citations: Sequence[Citation] = ()
    cited_indexes: Sequence[int] = ()
    grounding_warnings: Sequence[GroundingWarning] = ()
    retrieval_attempts: int = 0
    degraded: Sequence[str] = ()


class RunState(StrEnum):
    """`queued`, `running`, and the ends."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"


LIVE_STATES = frozenset({RunState.QUEUED, RunState.RUNNING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of a graph for a turn.

    Attributes:
        lease_owner: The process that runs it: a random id made at its start.
        beat: Raised by the owner while it lives; never a time.
        message_id: Of the assistant message, minted before the run begins.
        last_event_id: The terminator's id once it has ended, else 0.
        terminator: Kept with the end, None before it.
    """

    tenant: str
    subject: str
    id: str
    conversation_id: str
    project_id: str
    message_id: str
    state: RunState
    lease_owner: str
    beat: int
    created_at: datetime
    ended_at: datetime | None = None
    last_event_id: int = 0
    terminator: Terminator | None = None
