"""Embeddings of any endpoint that speaks OpenAI's `/embeddings`: OpenAI, Ollama, vLLM, TEI."""

import asyncio
import json
import re
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from openai import APIStatusError, AsyncOpenAI, OpenAIError

from ibid.adapters.embedders.batches import (
    BatchLimits,
    TextTooLong,
    embed_in_batches,
    fitted,
    sendable,
)
from ibid.adapters.embedders.retries import Retries, TransientFault, retry_after
from ibid.adapters.embedders.signatures import checked_model
from ibid.adapters.embedders.vectors import unit_vectors
from ibid.domain.errors import EmbedderUnavailable, Misconfigured
from ibid.domain.passages import Vector

_REQUEST_TIMEOUT, _CONFLICT, _TOO_EARLY, _TOO_MANY, _SERVER = 408, 409, 425, 429, 500
_MAY_MEAN_LENGTH = (400, 413, 422)
# OpenAI, vLLM, TEI, llama.cpp and Ollama each say it in their own words.
_LENGTH_WORDS = re.compile(r"context length|too (?:long|large)|maximum|must have less than|exceed")
_PROBE = "width"


async def open_openai_embedder(
    model: str,
    *,
    base_url: str | None,
    api_key: str | None,
    timeout_s: float = 30.0,
    batch_limits: BatchLimits | None = None,
    retries: Retries | None = None,
    languages: Iterable[str] = (),
) -> "OpenAiEmbedder":
    """Ask the model for one vector, to know its width, and return the embedder.

    Args:
        model: As the endpoint names it.
        base_url: Up to and with `/v1`, say; None means OpenAI's own.
        api_key: None where the endpoint asks for none.
        timeout_s: Seconds a request may take, connecting included, above 0.
        batch_limits: What one request may hold; None means what every server takes.
        retries: How often to try again.
        languages: Snowball's names of those the model knows; empty means many.

    Raises:
        EmbedderUnavailable: No vector in time; worth another try.
        Misconfigured: The endpoint refuses the model or the key for good.
    """
    probe = OpenAiEmbedder(
        model,
        width=None,
        base_url=base_url,
        api_key=api_key,
        timeout_s=timeout_s,
        batch_limits=batch_limits,
        retries=retries,
        languages=languages,
    )
    try:
        vectors = await probe.embed_passages([_PROBE])
    except BaseException:
        await probe.aclose()
        raise
    probe.fix_width(len(vectors[0]))
    return probe


class OpenAiEmbedder:
    """Implements Embedder over an OpenAI-compatible endpoint.

    Each event loop has its own connections, so the same object serves one loop after another;
    `aclose` closes those of the running one.
    """

    def __init__(
        self,
        model: str,
        *,
        width: int | None,
        base_url: str | None,
        api_key: str | None,
        timeout_s: float = 30.0,
        batch_limits: BatchLimits | None = None,
        retries: Retries | None = None,
        languages: Iterable[str] = (),
    ) -> None:
        """Take what `open_openai_embedder` takes, and the width where it is known already.

        Raises:
            Misconfigured: The model's name can't stand in a signature, the base URL is no
                http(s) one, or no header can carry the key.
        """
        if base_url is not None and not base_url.startswith(("http://", "https://")):
            raise Misconfigured("the base URL of the embedding endpoint must begin with http")
        if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
            raise Misconfigured("the API key of the embedding endpoint holds odd characters")
        self._model = checked_model(model)
        self._width = width
        self._base_url = base_url
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._limits = batch_limits or BatchLimits()
        self._retries = retries or Retries()
        self._languages = frozenset(languages)
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAI] = (
            weakref.WeakKeyDictionary()
        )

    @property
    def signature(self) -> str:
        """Identify the model and its vector space.

        Raises:
            EmbedderUnavailable: The width is not known: nothing has told it yet.
        """
        if self._width is None:
            raise EmbedderUnavailable(f"the width of {self._model!r} is not known yet")
        return f"openai:{self._model}:{self._width}"

    @property
    def languages(self) -> frozenset[str]:
        """Name the languages that it knows; empty means many."""
        return self._languages

    def fix_width(self, width: int) -> None:
        """Demand this width of every vector from now on."""
        self._width = width

    async def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Embed texts in their order, by requests within the limits."""
        return await embed_in_batches(
            texts, lambda batch: self._retries.run(lambda: self._request(batch)), self._limits
        )

    async def embed_query(self, text: str, *, timeout_s: float) -> Vector:
        """Embed one question; tries again only within `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                vectors = await fitted(
                    [sendable(text, self._limits)],
                    lambda batch: self._retries.run(lambda: self._request(batch)),
                )
        except TimeoutError as error:
            raise EmbedderUnavailable(
                f"no vector of {self._model!r} within {timeout_s:g} s"
            ) from error
        return vectors[0]

    async def aclose(self) -> None:
        """Close the running event loop's connections; repeatable, and they open again."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    async def _request(self, texts: Sequence[str]) -> list[Vector]:
        # The vendor's own messages may repeat the text, or parts of the key: none goes on.
        try:
            async with asyncio.timeout(self._timeout_s):
                reply = await self._client().embeddings.with_raw_response.create(
                    model=self._model, input=list(texts), encoding_format="float"
                )
                body = reply.content
        except APIStatusError as error:
            raise self._refusal(error) from None
        except (TimeoutError, OpenAIError) as error:
            raise TransientFault(f"{self._model!r}: {type(error).__name__}") from None
        return unit_vectors(_rows(body, len(texts)), count=len(texts), width=self._width)

    def _client(self) -> AsyncOpenAI:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = AsyncOpenAI(
                base_url=self._base_url,
                api_key=self._api_key or "none",  # the SDK demands one
                timeout=self._timeout_s,
                max_retries=0,
            )
            self._clients[loop] = client
        return client

    def _refusal(self, error: APIStatusError) -> Exception:
        status = error.status_code
        if status in (_REQUEST_TIMEOUT, _CONFLICT, _TOO_EARLY, _TOO_MANY) or status >= _SERVER:
            return TransientFault(
                f"{self._model!r}: status {status}",
                retry_after_s=retry_after(error.response.headers.get("retry-after")),
            )
        if status in _MAY_MEAN_LENGTH and _LENGTH_WORDS.search(str(error.message).lower()):
            return TextTooLong()
        return Misconfigured(f"the embedding model {self._model!r} was refused: status {status}")


def _rows(body: bytes, count: int) -> list[Any]:
    """Take the vectors out of a reply, in the order of their `index`."""
    try:
        items = json.loads(body)["data"]
        by_index = {item["index"]: item["embedding"] for item in items}
        return [by_index[index] for index in range(count)] if len(items) == count else []
    except (ValueError, TypeError, KeyError, RecursionError):
        raise TransientFault("the reply is no list of embeddings") from None
