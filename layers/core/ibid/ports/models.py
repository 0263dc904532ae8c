"""Language models, and what works by rules in their place."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ibid.domain.answers import HistoryTurn, Style
from ibid.domain.passages import Passage

Task = Literal["classify", "grade", "answer", "answer_from_history"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message of a rendered prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call: the rendered prompt, and the same facts for a model that works by rules.

    A language model reads `messages` only; the extractive answerer reads the rest only.

    Attributes:
        messages: Already within the model's context.
        question: The asker's words.
        passages: In the order of their numbers, from 1.
        gap: What the passages lack, by the last grading; empty if nothing.
        schema: JSON Schema of an object that the reply must be; None for text.
        max_output_tokens: At least 1.
        timeout_s: Seconds for the whole call, above 0.
    """

    task: Task
    messages: Sequence[ChatMessage]
    question: str
    passages: Sequence[Passage] = ()
    history: Sequence[HistoryTurn] = ()
    gap: str = ""
    reply_language: str = "en"
    style: Style = field(default_factory=Style)
    schema: Mapping[str, Any] | None = None
    temperature: float = 0.1
    max_output_tokens: int = 1_000
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of the reply, never empty."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyEnd:
    """The last item of every stream that ended as the model meant it.

    Attributes:
        input_tokens: As the provider counts; None where it does not tell.
        output_tokens: Likewise.
    """

    input_tokens: int | None
    output_tokens: int | None


class ChatModel(Protocol):
    """One model that answers, streamed or as an object of a schema.

    A call may raise:
        ModelUnavailable: No answer in time, an error of the provider's that may pass (429, 5xx,
            transport), or a stream that broke off. 429 and 5xx before the first piece are tried
            again within the time-out first.
        ModelRefused: The model or a filter declined.
        AnswerTruncated: The output limit was reached; the pieces before stay valid.
        AnswerEmpty: The reply ended without text.
        ModelFaulty: The reply breaks its wire format or its schema, or the provider rejected the
            request for good (4xx).
    """

    @property
    def name(self) -> str:
        """Name the model as answers show it, such as `extractive` or `openai:llama3.2`."""

    async def context_tokens(self) -> int:
        """Return the whole context in tokens: set, asked of the server once, or a safe guess."""

    def count_tokens(self, text: str) -> int:
        """Count a text's tokens, exactly or too high, never too low."""

    def stream(self, request: ModelRequest) -> AsyncIterator[TextDelta | ReplyEnd]:
        """Answer piece by piece; the last item is a ReplyEnd, else the iterator raises."""

    async def decide(self, request: ModelRequest) -> Mapping[str, Any]:
        """Answer with one object that `request.schema` accepts."""
