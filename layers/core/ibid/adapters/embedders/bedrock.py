"""Embeddings of Amazon Bedrock: Titan and Cohere, through InvokeModel."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal

import boto3
import urllib3.exceptions
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    IncompleteReadError,
    NoRegionError,
)
from botocore.exceptions import (
    ConnectionError as BotoConnectionError,
)
from botocore.parsers import ResponseParserError

from ibid.adapters.embedders.batches import (
    Request,
    TextTooLong,
    embed_in_batches,
    fitted,
    sendable,
)
from ibid.adapters.embedders.bedrock_families import Family, family_of
from ibid.adapters.embedders.retries import Retries, TransientFault, retry_after
from ibid.adapters.embedders.signatures import checked_model
from ibid.adapters.embedders.vectors import unit_vectors
from ibid.domain.errors import EmbedderUnavailable, Misconfigured
from ibid.domain.passages import Vector

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient

_TRANSIENT_CODES = {
    "InternalServerException",
    "ModelErrorException",
    "ModelNotReadyException",
    "ModelTimeoutException",
    "RequestTimeout",
    "ServiceUnavailableException",
    "ThrottlingException",
    "TooManyRequestsException",
}
# What a broken or silent connection raises, by where it breaks; urllib3's own come from the body.
_TRANSPORT_ERRORS = (
    BotoConnectionError,
    HTTPClientError,
    IncompleteReadError,
    ResponseParserError,
    urllib3.exceptions.HTTPError,
    OSError,
)
_TOO_MANY, _SERVER = 429, 500
_LENGTH_WORDS = ("too many input tokens", "too long", "maxlength", "length limit")
_QUERY_THREADS = 2


class BedrockEmbedder:
    """Implements Embedder over a Bedrock model, in threads, since boto3 blocks.

    Queries have threads of their own. A cancelled call lets go at once; its thread ends with its
    request, within the time-out.
    """

    def __init__(
        self,
        model_id: str,
        *,
        region: str | None = None,
        endpoint_url: str | None = None,
        timeout_s: float = 30.0,
        retries: Retries | None = None,
        languages: Iterable[str] | None = None,
    ) -> None:
        """Make the client; nothing is sent yet.

        Args:
            model_id: A model's, or an inference profile's whose id names the model.
            region: None takes boto3's own default.
            endpoint_url: Another endpoint than the region's own.
            timeout_s: Seconds to connect, and between two bytes, above 0.
            retries: How often to try again.
            languages: Snowball's names; None takes what is known of the model.

        Raises:
            Misconfigured: The model is of no known kind, or no region is set.
        """
        self._model = checked_model(model_id)
        self._family: Family = family_of(model_id)
        self._languages = self._family.languages if languages is None else frozenset(languages)
        self._retries = retries or Retries()
        threads = self._family.limits.concurrency
        config = Config(
            connect_timeout=timeout_s,
            read_timeout=timeout_s,
            retries={"total_max_attempts": 1, "mode": "standard"},
            max_pool_connections=threads + _QUERY_THREADS,
        )
        try:
            self._client: BedrockRuntimeClient = boto3.session.Session().client(
                "bedrock-runtime",
                region_name=region,
                endpoint_url=endpoint_url,
                config=config,
            )
        except (NoRegionError, ValueError) as error:
            raise Misconfigured(
                f"Bedrock can't be called for {model_id!r}: {type(error).__name__}"
            ) from error
        self._passages = ThreadPoolExecutor(threads, thread_name_prefix="bedrock-passages")
        self._queries = ThreadPoolExecutor(_QUERY_THREADS, thread_name_prefix="bedrock-query")

    @property
    def signature(self) -> str:
        """Identify the model and its vector space."""
        return f"bedrock:{self._family.space(self._model)}:{self._family.width}"

    @property
    def languages(self) -> frozenset[str]:
        """Name the languages that it knows; empty means many."""
        return self._languages

    async def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Embed texts in their order, by requests within the model's limits."""
        return await embed_in_batches(
            texts, self._sender("passage", self._passages), self._family.limits
        )

    async def embed_query(self, text: str, *, timeout_s: float) -> Vector:
        """Embed one question; tries again only within `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                vectors = await fitted(
                    [sendable(text, self._family.limits)], self._sender("query", self._queries)
                )
        except TimeoutError as error:
            raise EmbedderUnavailable(
                f"no vector of {self._model!r} within {timeout_s:g} s"
            ) from error
        return vectors[0]

    async def aclose(self) -> None:
        """End the threads once they are idle and close the connections; repeatable."""
        self._passages.shutdown(wait=False, cancel_futures=True)
        self._queries.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    def _sender(self, kind: Literal["query", "passage"], threads: ThreadPoolExecutor) -> Request:
        async def send(texts: Sequence[str]) -> list[Vector]:
            loop = asyncio.get_running_loop()
            return await self._retries.run(
                lambda: loop.run_in_executor(threads, self._request, texts, kind)
            )

        return send

    def _request(self, texts: Sequence[str], kind: Literal["query", "passage"]) -> list[Vector]:
        # The service's own messages may repeat the text: none goes on.
        try:
            reply = self._client.invoke_model(
                modelId=self._model,
                body=json.dumps(self._family.body(texts, kind)),
                contentType="application/json",
                accept="application/json",
            )
            body = reply["body"].read()
        except ClientError as error:
            raise self._refusal(error) from None
        except _TRANSPORT_ERRORS as error:
            raise TransientFault(f"{self._model!r}: {type(error).__name__}") from None
        except BotoCoreError as error:
            raise Misconfigured(
                f"Bedrock can't be called for {self._model!r}: {type(error).__name__}"
            ) from None
        try:
            rows = self._family.rows(json.loads(body))
        except (ValueError, TypeError, KeyError, RecursionError):
            raise TransientFault(f"{self._model!r}: the reply holds no embeddings") from None
        return unit_vectors(rows, count=len(texts), width=self._family.width)

    def _refusal(self, error: ClientError) -> Exception:
        code = error.response["Error"].get("Code", "")
        metadata = error.response["ResponseMetadata"]
        status = metadata["HTTPStatusCode"]
        if code in _TRANSIENT_CODES or status == _TOO_MANY or status >= _SERVER:
            return TransientFault(
                f"{self._model!r}: {code} (status {status})",
                retry_after_s=retry_after(metadata["HTTPHeaders"].get("retry-after")),
            )
        message = error.response["Error"].get("Message", "").lower()
        if code == "ValidationException" and any(words in message for words in _LENGTH_WORDS):
            return TextTooLong()
        return Misconfigured(
            f"the embedding model {self._model!r} was refused: {code} (status {status})"
        )
