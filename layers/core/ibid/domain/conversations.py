"""Conversations, their messages, and the runs that write them."""

import re
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
    """A thread bound to one tenant, subject and project; no `title` until the first question.

    Attributes:
        runs_begun: The number of its newest run, 0 before the first.
    """

    tenant: str
    subject: str
    id: str
    project_id: str
    title: str | None
    reply_language: str | None
    created_at: datetime
    runs_begun: int = 0


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
    """Where a run stands; the transitions are drawn in `ibid.runs.states`."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    EXPIRED = "expired"


LIVE_STATES = frozenset({RunState.QUEUED, RunState.RUNNING})

IN_QUEUE = "queue/"
"""How the owner of a run begins that waits in a queue until a process adopts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of a graph for a turn, or for the turn's resumption.

    Attributes:
        id: `run_id(conversation_id, number)`.
        number: Rises by one within the conversation, from 1; the fencing token of its thread.
        graph: The graph's name, which is also the surface whose events its journal is shown in.
        turn_id: The id of the turn's first run, kept by every resumption; the checkpoint thread.
        lease_owner: The process that runs it: a random id made at its start. One that begins with
            `IN_QUEUE` is nobody's.
        beat: How often the journal was written; while the owner lives it moves, and it is never
            a time.
        message_id: Of the assistant message, minted before the run begins.
        cancel_requested: Somebody asked to stop it; the owner sees it with its next write.
        last_event_id: The terminator's id once it has ended, else the last id that is kept.
        terminator: Kept with the end, None before it.
        resumes: The paused run that it resumes.
        resumed_by: The run that resumes it, once one does.
        decision: What a resumed run was answered; None before, and for all other runs.
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
    number: int = 1
    graph: str = "messages"
    turn_id: str = ""
    cancel_requested: bool = False
    ended_at: datetime | None = None
    last_event_id: int = 0
    terminator: Terminator | None = None
    resumes: str | None = None
    resumed_by: str | None = None
    decision: str | None = None

    @property
    def is_in_queue(self) -> bool:
        """Whether it waits for a process to adopt it: nobody beats for it."""
        return self.state is RunState.QUEUED and self.lease_owner.startswith(IN_QUEUE)


_NUMBER = re.compile(r"(?P<conversation>.+)-(?P<number>[1-9][0-9]{0,15})", re.DOTALL)


def run_id(conversation_id: str, number: int) -> str:
    """Return the id of a conversation's run: whoever has it finds the run without an index."""
    return f"{conversation_id}-{number}"


def parse_run_id(text: str) -> tuple[str, int] | None:
    """Return conversation id and number of a run's id; None for what is no such id."""
    match = _NUMBER.fullmatch(text)
    return None if match is None else (match["conversation"], int(match["number"]))
