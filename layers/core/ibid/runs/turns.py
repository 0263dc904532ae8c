"""What a run is started with."""

from dataclasses import dataclass, field
from typing import Literal

from ibid.domain.answers import Style
from ibid.domain.conversations import Conversation
from ibid.domain.principals import Principal
from ibid.domain.projects import Project

OnDisconnect = Literal["stop", "continue"]


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
    """

    principal: Principal
    conversation: Conversation
    project: Project
    question: str
    style: Style = field(default_factory=Style)
    path_prefix: str | None = None
    reply_language: str | None = None
    on_disconnect: OnDisconnect = "stop"
