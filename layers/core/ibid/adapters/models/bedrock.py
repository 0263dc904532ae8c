"""Any model of Amazon Bedrock, through the Converse API."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config

from ibid.adapters.models.attempts import (
    Attempts,
    TryAgain,
    decide_with_attempts,
    stream_with_attempts,
)
from ibid.adapters.models.bedrock_failures import CAUGHT, failure
from ibid.adapters.models.bedrock_stream import EventPump
from ibid.adapters.models.schema_check import accepts
from ibid.adapters.models.token_bound import token_bound
from ibid.domain.errors import (
    AnswerEmpty,
    AnswerTruncated,
    ModelFaulty,
    ModelRefused,
    ModelUnavailable,
)
from ibid.ports.models import ModelRequest, ReplyEnd, TextDelta

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient

SAFE_GUESS: Final = 8_000
"""Tokens; no model that Converse serves takes fewer, but for the first Titan and Llama 2."""

_CONTEXTS: Final[Sequence[tuple[str, int]]] = (
    ("anthropic.claude", 100_000),
    ("amazon.nova", 128_000),
    ("meta.llama3-1", 128_000),
    ("meta.llama3-2", 128_000),
    ("meta.llama3-3", 128_000),
    ("meta.llama4", 128_000),
    ("mistral.mistral-large", 32_000),
    ("openai.gpt-oss", 128_000),
)
_TOOL: Final = "decide"
_REFUSED: Final = frozenset({"guardrail_intervened", "content_filtered"})
_CUT: Final = frozenset({"max_tokens", "model_context_window_exceeded"})
_WHOLE: Final = frozenset({"end_turn", "stop_sequence", "tool_use"})


class BedrockModel:
    """One model, by its id or inference profile; credentials are found as boto3 finds them.

    Worker threads make the blocking calls, one a step of a stream. A cancelled stream frees its
    thread at once; a cancelled call that Bedrock has not begun to answer, within
    `read_timeout_s`.

    Args:
        model_id: Such as `anthropic.claude-…` or an inference profile's ARN.
        region: None leaves it to boto3's own settings.
        endpoint_url: In place of the region's own.
        context_tokens: The model's context; None takes what is known of its family.
        workers: Most calls that wait for Bedrock at the same time; more wait for a thread.
        read_timeout_s: Longest silence of Bedrock's.
        first_delay_s: About what is waited before the first retry.
    """

    def __init__(
        self,
        model_id: str,
        *,
        region: str | None,
        endpoint_url: str | None = None,
        context_tokens: int | None = None,
        workers: int = 64,
        read_timeout_s: float = 60.0,
        first_delay_s: float = 0.5,
    ) -> None:
        self._model_id = model_id
        self._region = region
        self._endpoint_url = endpoint_url
        self._context = context_tokens
        self._read_timeout_s = read_timeout_s
        self._first_delay_s = first_delay_s
        self._workers = ThreadPoolExecutor(workers, thread_name_prefix="bedrock")
        self._lock = threading.Lock()
        self._made: BedrockRuntimeClient | None = None

    @property
    def name(self) -> str:
        """`bedrock:` and the model's id."""
        return f"bedrock:{self._model_id}"

    async def context_tokens(self) -> int:
        """Return what was set, or is known of the family, else 8,000: Bedrock never tells."""
        if self._context is not None:
            return self._context
        known = (size for family, size in _CONTEXTS if family in self._model_id)
        return next(known, SAFE_GUESS)

    def count_tokens(self, text: str) -> int:
        """Count without the model's tokenizer, at about twice what it would."""
        return token_bound(text)

    async def aclose(self) -> None:
        """Close the connections and the worker threads; the model is of no use afterwards."""
        self._workers.shutdown(wait=False, cancel_futures=True)
        if self._made is not None:
            self._made.close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[TextDelta | ReplyEnd]:
        """Answer piece by piece; what a reasoning model thinks aloud is left out."""
        attempts = Attempts(request.timeout_s, first_delay_s=self._first_delay_s)
        async for item in stream_with_attempts(lambda: self._once(request, attempts), attempts):
            yield item

    async def decide(self, request: ModelRequest) -> Mapping[str, Any]:
        """Answer with the arguments of a tool that the model is forced to call."""
        attempts = Attempts(request.timeout_s, first_delay_s=self._first_delay_s)
        return await decide_with_attempts(lambda: self._forced(request, attempts), attempts)

    def _client(self) -> "BedrockRuntimeClient":
        """Make the client on first use, on a worker thread: it reads files, for a third of a s."""
        with self._lock:
            if self._made is None:
                config = Config(
                    read_timeout=self._read_timeout_s,
                    connect_timeout=10,
                    max_pool_connections=64,
                    # Ours alone: boto3's would pay for a slow first byte twice, silently
                    retries={"mode": "standard", "total_max_attempts": 1},
                )
                self._made = boto3.session.Session().client(
                    "bedrock-runtime",
                    region_name=self._region,
                    endpoint_url=self._endpoint_url,
                    config=config,
                )
            return self._made

    async def _once(
        self, request: ModelRequest, attempts: Attempts
    ) -> AsyncGenerator[TextDelta | ReplyEnd, None]:
        """Make one attempt at a stream."""
        pump = await self._open(request, attempts)
        try:
            reason: str | None = None
            usage: Mapping[str, Any] = {}
            has_text = False
            while True:
                try:
                    event = await attempts.within(pump.next_event())
                except CAUGHT as error:
                    raise failure(error, self.name) from error
                if event is None:
                    break
                text = self._text(event)
                if text:
                    has_text = has_text or not text.isspace()
                    yield TextDelta(text=text)
                reason = event.get("messageStop", {}).get("stopReason") or reason
                usage = event.get("metadata", {}).get("usage") or usage
            yield self._ended(reason, usage, has_text=has_text)
        finally:
            pump.close()

    def _text(self, event: Mapping[str, Any]) -> str:
        """Read an event's text, empty if it has none; boto3 lets one that is no JSON through.

        Raises:
            ModelFaulty: It is no event.
        """
        if "contentBlockDelta" not in event:
            return ""
        delta = event["contentBlockDelta"].get("delta")
        if not delta:
            raise ModelFaulty(f"{self.name} streamed what is no event")
        text: str = delta.get("text", "")
        return text

    async def _open(self, request: ModelRequest, attempts: Attempts) -> EventPump:
        opening: Future[Any] = self._workers.submit(
            lambda: self._client().converse_stream(**self._body(request))
        )
        try:
            response = await attempts.within(asyncio.wrap_future(opening))
        except CAUGHT as error:
            raise failure(error, self.name) from error
        except BaseException:
            opening.add_done_callback(_close_late)
            raise
        return EventPump(response["stream"], self._workers)

    async def _forced(self, request: ModelRequest, attempts: Attempts) -> Mapping[str, Any]:
        """Make one attempt at a decision."""
        schema = dict(request.schema or {})
        body = self._body(request) | {
            "toolConfig": {
                "tools": [
                    {
                        "toolSpec": {
                            "name": _TOOL,
                            "description": "Give the decision that was asked for.",
                            "inputSchema": {"json": schema},
                        }
                    }
                ],
                "toolChoice": {"tool": {"name": _TOOL}},
            }
        }
        calling: Future[Any] = self._workers.submit(lambda: self._client().converse(**body))
        try:
            reply = await attempts.within(asyncio.wrap_future(calling))
        except CAUGHT as error:
            raise failure(error, self.name) from error
        self._ended(reply.get("stopReason"), {}, has_text=True)
        for block in reply.get("output", {}).get("message", {}).get("content", []):
            decision = block.get("toolUse", {}).get("input")
            if isinstance(decision, dict) and accepts(schema, decision):
                return decision
        raise ModelFaulty(f"{self.name} gave no object of the schema it was given")

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        """Build the request: Converse takes turns that alternate, the asker's first."""
        system = [{"text": each.content} for each in request.messages if each.role == "system"]
        turns: list[dict[str, Any]] = []
        for each in request.messages:
            if each.role == "system" or not each.content.strip():
                continue
            if turns and turns[-1]["role"] == each.role:
                turns[-1]["content"].append({"text": each.content})
            else:
                turns.append({"role": each.role, "content": [{"text": each.content}]})
        return {
            "modelId": self._model_id,
            "messages": turns,
            "inferenceConfig": {
                "maxTokens": request.max_output_tokens,
                "temperature": request.temperature,
            },
        } | ({"system": system} if system else {})

    def _ended(self, reason: str | None, usage: Mapping[str, Any], *, has_text: bool) -> ReplyEnd:
        """Judge how a reply ended.

        Raises:
            TryAgain: It broke off.
            AnswerTruncated, ModelRefused, AnswerEmpty, ModelFaulty: As the reason says.
        """
        if reason is None:
            raise TryAgain(ModelUnavailable(f"the stream of {self.name} broke off"))
        if reason in _CUT:
            raise AnswerTruncated(f"{self.name} reached its output limit")
        if reason in _REFUSED:
            raise ModelRefused(f"a filter stopped {self.name}")
        if reason not in _WHOLE:
            raise ModelFaulty(f"{self.name} ended for a reason that is not known")
        if not has_text:
            raise AnswerEmpty(f"{self.name} ended without any text")
        return ReplyEnd(
            input_tokens=usage.get("inputTokens"), output_tokens=usage.get("outputTokens")
        )


def _close_late(opened: "Future[Any]") -> None:
    """Close a stream that came after its reader had gone."""
    if not opened.cancelled() and opened.exception() is None:
        opened.result()["stream"].close()
