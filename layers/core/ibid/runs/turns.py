"""What a run is started with."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from ibid.domain.answers import Style, TurnInput, TurnPause, TurnResult
from ibid.domain.conversations import Conversation, Run
from ibid.domain.events import TurnEvent
from ibid.domain.principals import Principal
from ibid.domain.projects import Project

OnDisconnect = Literal["stop", "continue"]
Strategy = Literal["reject", "enqueue", "interrupt"]

Proceed = Callable[[], Awaitable[None]]
"""Awaited before each model call: it returns if the run may go on, else it is cancelled."""

Work = Callable[[TurnInput, Proceed], AsyncIterator[TurnEvent | TurnResult | TurnPause]]
"""What answers one turn: its events, then its result or its pause, last and once; a failure is
raised. Closing the iterator stops all that works for it, and waits for it."""

WorkFor = Callable[[Run], Awaitable[tuple[Project, Work]]]
"""What a run's project is now, and what answers its turn. It raises what a status code would have
refused (Refused) where the turn can't be worked on any more, or Unavailable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTurn:
    """One question, admitted: whoever asks may, and the project can be searched.

    Attributes:
        conversation: The principal's, as it is now.
        project: The conversation's, as it is now.
        question: 1 to 4,000 characters.
        path_prefix: Only files whose path starts with it; None means all.
        reply_language: None takes the conversation's, else the project's, else English.
        on_disconnect: What becomes of the run when its reader leaves.
        graph: The graph's name, which is also the surface.
        strategy: What to do where a run of the conversation is live: refuse, wait for its end, or
            cancel it first.
        attended: False for a background run: nobody need read it.
        idempotency: The id of the idempotency record that the run answers.
        message_id: Of the answer: what is planned is told by it from a run of the same id that
            somebody else began. None mints one.
        planned: Told the run's id before it begins, so that who comes after a crash finds it;
            again with another one if that was taken.
        deadline_s: Seconds from now until the process may be stopped: the run times out a margin
            before. None for none.
    """

    principal: Principal
    conversation: Conversation
    project: Project
    question: str
    style: Style = field(default_factory=Style)
    path_prefix: str | None = None
    reply_language: str | None = None
    on_disconnect: OnDisconnect = "stop"
    graph: str = "messages"
    strategy: Strategy = "reject"
    attended: bool = True
    idempotency: str | None = None
    message_id: str | None = None
    planned: Callable[[str], Awaitable[None]] | None = None
    deadline_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewResumption:
    """An answer to a pause, admitted: the asker may, and the pause was pending when looked at.

    Attributes:
        paused: The run that waits.
        question: The turn's, as the asker's message of the paused run holds it.
        answer: The asker's words, 1 to 4,000 characters.
    """

    principal: Principal
    conversation: Conversation
    project: Project
    paused: Run
    question: str
    answer: str
    on_disconnect: OnDisconnect = "stop"
    attended: bool = True
    idempotency: str | None = None
    message_id: str | None = None
    planned: Callable[[str], Awaitable[None]] | None = None
    deadline_s: float | None = None
