"""Conversations, their messages and questions as they are sent and taken (design.md §5.0)."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints

from ibid.domain.answers import FinishReason, GroundingWarning, Intent, Style
from ibid.domain.conversations import Conversation, Message
from ibid.runs.turns import OnDisconnect, Strategy
from ibid.web.message_events import CitationBody
from ibid.web.wire import Asked, ReplyLanguage, Title, WellFormed, Wire, is_absent

Identifier = Annotated[str, StringConstraints(min_length=1, max_length=200), WellFormed]
Question = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4_000), WellFormed
]


class NewConversationBody(Asked):
    """A conversation to begin; without a title it takes the first question's."""

    project_id: Identifier
    title: Title | None = None
    reply_language: ReplyLanguage | None = None


class ConversationChangesBody(Asked):
    """What to change of a conversation."""

    title: Title


class ConversationBody(Wire):
    """A conversation; the title is null until the first question."""

    id: str
    project_id: str
    title: str | None
    created_at: datetime

    @classmethod
    def of(cls, conversation: Conversation) -> Self:
        """Translate one conversation."""
        return cls(
            id=conversation.id,
            project_id=conversation.project_id,
            title=conversation.title,
            created_at=conversation.created_at,
        )


class MessageBody(Wire):
    """A kept message; an answer carries what its terminator carried, and a failed one `code`.

    From `finishReason` on, the fields are an answer's; a question's are null, 0 or empty.
    """

    message_id: str
    run_id: str
    role: Literal["user", "assistant"]
    content: str
    created_at: datetime
    finish_reason: FinishReason | None
    code: str | None = Field(default=None, exclude_if=is_absent)
    model: str | None
    intent: Intent | None
    citations: tuple[CitationBody, ...]
    cited_indexes: tuple[int, ...]
    grounding_warnings: tuple[GroundingWarning, ...]
    retrieval_attempts: int
    degraded: tuple[str, ...]

    @classmethod
    def of(cls, message: Message) -> Self:
        """Translate one message."""
        return cls(
            message_id=message.id,
            run_id=message.run_id,
            role=message.role,
            content=message.content,
            created_at=message.created_at,
            finish_reason=message.finish_reason,
            code=message.error_code,
            model=message.model,
            intent=message.intent,
            citations=tuple(CitationBody.of(citation) for citation in message.citations),
            cited_indexes=tuple(message.cited_indexes),
            grounding_warnings=tuple(message.grounding_warnings),
            retrieval_attempts=message.retrieval_attempts,
            degraded=tuple(message.degraded),
        )


class StyleBody(Asked):
    """How the asker likes to read; a dial that is left out leaves the answer as it is."""

    detail: Literal["brief", "thorough"] | None = None
    familiarity: Literal["new", "expert"] | None = None
    format: Literal["prose", "bullets"] | None = None

    def style(self) -> Style:
        """Return the dials."""
        return Style(detail=self.detail, familiarity=self.familiarity, format=self.format)


class QuestionBody(Asked):
    """A question to answer.

    `pathPrefix` keeps the search to files whose path starts with it. `multitaskStrategy` says what
    to do where a run of the conversation is under way: refuse, wait for its end, or cancel it
    first. `onDisconnect` says what becomes of the run if the client leaves before the end.
    """

    question: Question
    style: StyleBody = StyleBody()
    path_prefix: Annotated[str, StringConstraints(max_length=1_000), WellFormed] | None = None
    multitask_strategy: Strategy = "reject"
    on_disconnect: OnDisconnect = "stop"


class AnswerBody(Wire):
    """A whole answer, made of the events that a stream would have shown.

    `code` and `message` are there only if the run did not end by `stop`: then `content` is what
    had been written, `citations` what the first retrieval found, `model` and `intent` are null;
    `keptThroughId` is there only if the process died that had shown it to somebody else.
    """

    run_id: str
    message_id: str | None
    content: str
    finish_reason: FinishReason
    code: str | None = Field(default=None, exclude_if=is_absent)
    message: str | None = Field(default=None, exclude_if=is_absent)
    kept_through_id: int | None = Field(default=None, exclude_if=is_absent)
    model: str | None
    citations: tuple[CitationBody, ...]
    cited_indexes: tuple[int, ...]
    grounding_warnings: tuple[GroundingWarning, ...]
    intent: Intent | None
    retrieval_attempts: int
    degraded: tuple[str, ...]
