"""Any model behind OpenAI's chat completions: OpenAI, Ollama, vLLM, llama.cpp and their like."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

import openai
from openai import AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from ibid.adapters.models.attempts import (
    Attempts,
    TryAgain,
    decide_with_attempts,
    retry_after_s,
    stream_with_attempts,
)
from ibid.adapters.models.openai_context import SAFE_GUESS, ask_context
from ibid.adapters.models.openai_dialect import Dialect
from ibid.adapters.models.schema_check import parse_decision
from ibid.adapters.models.token_bound import token_bound
from ibid.domain.errors import (
    AnswerEmpty,
    AnswerTruncated,
    ModelFaulty,
    ModelRefused,
    ModelUnavailable,
)
from ibid.ports.models import ModelRequest, ReplyEnd, TextDelta

_ASK_TIMEOUT_S: Final = 10.0
_AFTER_THE_END_S: Final = 2.0  # for the usage, which comes behind the finish reason
_PASSING: Final = frozenset({408, 409, 425, 429})
_HINTS: Final[Mapping[int, str]] = {
    401: "; is the key right?",
    403: "; may the key use this model?",
    404: "; are the base URL and the model's name right?",
}
_FIRST_SERVER_ERROR: Final = 500


class OpenAiModel:
    """One model of one OpenAI-compatible server.

    Serves any number of event loops, with a connection pool each; `aclose` closes the pool of the
    loop it is called in.

    Args:
        model: As the server names it.
        base_url: Up to and including `/v1`; None leaves it to the client's own settings.
        api_key: None leaves it to the client's own settings, and sends none if there is none.
        context_tokens: The model's context; None asks the server.
        first_delay_s: About what is waited before the first retry.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        api_key: str | None,
        context_tokens: int | None,
        first_delay_s: float = 0.5,
    ) -> None:
        self._model = model
        self._base_url = base_url
        self._api_key = api_key
        self._context = context_tokens
        self._first_delay_s = first_delay_s
        self._dialect = Dialect()
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAI] = (
            WeakKeyDictionary()
        )

    @property
    def name(self) -> str:
        """`openai:` and the model as the server names it."""
        return f"openai:{self._model}"

    async def context_tokens(self) -> int:
        """Return what was set, what the server tells, or 4,096; asked until it was reached."""
        if self._context is None:
            told = await ask_context(self._client(), self._model, timeout_s=_ASK_TIMEOUT_S)
            if told is None:
                return SAFE_GUESS
            self._context = told
        return self._context

    def count_tokens(self, text: str) -> int:
        """Count without the model's tokenizer, at about twice what it would."""
        return token_bound(text)

    async def aclose(self) -> None:
        """Close the connections of the running event loop; a later call opens new ones."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[TextDelta | ReplyEnd]:
        """Answer piece by piece; what a reasoning model thinks aloud is left out."""
        attempts = Attempts(request.timeout_s, first_delay_s=self._first_delay_s)
        async for item in stream_with_attempts(lambda: self._once(request, attempts), attempts):
            yield item

    async def decide(self, request: ModelRequest) -> Mapping[str, Any]:
        """Answer with an object, asked for in the strictest form that the server is known to take.

        Raises:
            ModelFaulty: No form gave an object of the schema.
        """
        attempts = Attempts(request.timeout_s, first_delay_s=self._first_delay_s)
        schema = request.schema or {}
        while True:
            form = self._dialect.form
            text = await decide_with_attempts(lambda: self._whole(request, attempts), attempts)
            try:
                decision = parse_decision(schema, text)
            except ModelFaulty:
                # Some servers take the parameter and do as they like
                if self._dialect.form_works or not self._dialect.next_form():
                    raise
            else:
                self._dialect.form_works = form == self._dialect.form
                return decision

    def _client(self) -> AsyncOpenAI:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            try:
                client = AsyncOpenAI(api_key=self._api_key, base_url=self._base_url, max_retries=0)
            except openai.OpenAIError:  # neither given nor set: a local server wants none
                client = AsyncOpenAI(api_key="none", base_url=self._base_url, max_retries=0)
            self._clients[loop] = client
        return client

    async def _send(self, request: ModelRequest, attempts: Attempts, *, stream: bool) -> object:
        """Send a request, again and again while a rejection teaches something.

        Raises:
            TryAgain: The failure may pass.
            ModelFaulty: It will not.
        """
        while True:
            body = self._dialect.arguments(request, stream=stream)
            try:
                return await attempts.within(
                    self._client().chat.completions.create(
                        model=self._model, timeout=attempts.left_s() + 1, **body
                    )
                )
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if not self._dialect.learn(_rejection(error), body):
                    raise self._failure(error) from error
            except openai.APIError as error:
                raise self._failure(error) from error
            except ValueError as error:
                raise ModelFaulty(f"{self.name} answered what is no JSON") from error

    async def _once(
        self, request: ModelRequest, attempts: Attempts
    ) -> AsyncGenerator[TextDelta | ReplyEnd, None]:
        """Make one attempt at a stream."""
        sent = await self._send(request, attempts, stream=True)
        stream = cast("AsyncStream[ChatCompletionChunk]", sent)
        try:
            end: str | None = None
            usage: object = None
            has_text = False
            while True:
                most_s = None if end is None else _AFTER_THE_END_S
                try:
                    chunk = await attempts.within(anext(stream, None), most_s=most_s)
                except (openai.APIError, ValueError, ModelUnavailable) as error:
                    if end is not None:
                        break
                    raise self._broken(error) from error
                if chunk is None:
                    break
                text, reason = self._read(chunk)
                usage = getattr(chunk, "usage", None) or usage
                if text:
                    has_text = has_text or not text.isspace()
                    yield TextDelta(text=text)
                end = reason or end
                if end is not None and usage is not None:
                    break
            yield self._ended(end, usage, has_text=has_text)
        finally:
            await stream.close()

    async def _whole(self, request: ModelRequest, attempts: Attempts) -> str:
        """Make one attempt at a whole reply."""
        reply = await self._send(request, attempts, stream=False)
        choices = reply.choices if isinstance(reply, ChatCompletion) else None
        if not choices:
            raise ModelFaulty(f"{self.name} answered without a choice")
        message = choices[0].message
        if getattr(message, "refusal", None):
            raise ModelRefused(f"{self.name} declined")
        text = getattr(message, "content", None) or ""
        self._ended(choices[0].finish_reason, None, has_text=bool(str(text).strip()))
        return str(text)

    def _read(self, chunk: object) -> tuple[str, str | None]:
        """Read a chunk: its text, perhaps empty, and its finish reason, if it is the last.

        Raises:
            ModelFaulty: It is none.
            ModelRefused: It holds a refusal.
        """
        if not isinstance(chunk, ChatCompletionChunk):
            raise ModelFaulty(f"{self.name} streamed what is no chunk")
        choices = chunk.choices
        if not choices:
            return "", None
        delta = getattr(choices[0], "delta", None)
        if getattr(delta, "refusal", None):
            raise ModelRefused(f"{self.name} declined")
        text = getattr(delta, "content", None) or ""
        if not isinstance(text, str):
            raise ModelFaulty(f"{self.name} streamed what is no text")
        return text, getattr(choices[0], "finish_reason", None)

    def _ended(self, reason: str | None, usage: object, *, has_text: bool) -> ReplyEnd:
        """Judge how a reply ended.

        Raises:
            TryAgain: It broke off.
            AnswerTruncated, ModelRefused, AnswerEmpty: As the reason says.
        """
        if reason is None:
            raise TryAgain(ModelUnavailable(f"the stream of {self.name} broke off"))
        if reason == "length":
            raise AnswerTruncated(f"{self.name} reached its output limit")
        if reason == "content_filter":
            raise ModelRefused(f"a filter stopped {self.name}")
        if not has_text:
            raise AnswerEmpty(f"{self.name} ended without any text")
        return ReplyEnd(
            input_tokens=_count(usage, "prompt_tokens"),
            output_tokens=_count(usage, "completion_tokens"),
        )

    def _broken(self, error: Exception) -> Exception:
        """What a stream's failure becomes before its finish reason."""
        if isinstance(error, openai.APIError):
            return self._failure(error)
        if isinstance(error, ModelUnavailable):
            return error
        if isinstance(error, UnicodeDecodeError) and error.reason == "unexpected end of data":
            return TryAgain(ModelUnavailable(f"the stream of {self.name} broke off"))
        return ModelFaulty(f"{self.name} streamed what is no JSON")

    def _failure(self, error: openai.APIError) -> Exception:
        """What the client's failure becomes; its own text may quote the prompt, so it is left."""
        if isinstance(error, openai.APIStatusError):
            status = error.status_code
            if status in _PASSING or status >= _FIRST_SERVER_ERROR:
                return TryAgain(
                    ModelUnavailable(f"the server of {self.name} answered {status}"),
                    after_s=retry_after_s(error.response.headers.get("retry-after")),
                )
            hint = _HINTS.get(status, "")
            return ModelFaulty(f"the server of {self.name} rejected the request: {status}{hint}")
        if isinstance(error, openai.APIConnectionError):
            return TryAgain(ModelUnavailable(f"the connection to the server of {self.name} failed"))
        return TryAgain(ModelUnavailable(f"the server of {self.name} reported an error"))


def _rejection(error: openai.APIStatusError) -> str:
    """What the server says that it does not take; read, never shown."""
    return error.param or error.message


def _count(usage: object, name: str) -> int | None:
    count = getattr(usage, name, None)
    return count if isinstance(count, int) else None
