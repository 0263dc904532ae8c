"""Many texts as requests that a provider takes: batches by size, and texts cut to fit."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from ibid.domain.errors import Misconfigured
from ibid.domain.passages import Vector

Request = Callable[[Sequence[str]], Awaitable[list[Vector]]]

# Byte-level tokenizers give one token to 2 bytes (hex) up to 5 (prose), CJK one to about 3.
_BYTES_A_TOKEN = 2.5
# Sent in an empty text's place, since providers refuse those.
_BLANK = "(empty)"


class TextTooLong(Exception):
    """The provider refused a request since a text of it is longer than the model takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """What one request may hold, by estimate.

    Attributes:
        max_texts: Texts in a request, at least 1.
        max_tokens: Tokens in a request; a text above it goes alone.
        max_text_tokens: Tokens of a text; the rest is cut.
        max_text_characters: Characters of a text, where the provider counts those.
        concurrency: Requests under way at once, at least 1.
    """

    max_texts: int = 64
    max_tokens: int = 50_000
    max_text_tokens: int = 8_000
    max_text_characters: int = 1_000_000
    concurrency: int = 4


def estimated_tokens(text: str) -> int:
    """Guess a text's tokens without its tokenizer, rather too high than too low."""
    return int(len(text.encode("utf-8", "surrogatepass")) / _BYTES_A_TOKEN) + 1


def sendable(text: str, limits: BatchLimits) -> str:
    """Cut a text to the limits; a blank one becomes a fixed word."""
    if not text.strip():
        return _BLANK
    cut = text[: limits.max_text_characters]
    most_bytes = int(limits.max_text_tokens * _BYTES_A_TOKEN)
    # Lone surrogates can't be sent as UTF-8, nor can half a character at the cut.
    return cut.encode("utf-8", "replace")[:most_bytes].decode("utf-8", "ignore")


def batches(texts: Sequence[str], limits: BatchLimits) -> Iterator[Sequence[str]]:
    """Part texts into runs within the limits, in order."""
    start, tokens = 0, 0
    for index, text in enumerate(texts):
        more = estimated_tokens(text)
        if index > start and (
            index - start >= limits.max_texts or tokens + more > limits.max_tokens
        ):
            yield texts[start:index]
            start, tokens = index, 0
        tokens += more
    if start < len(texts):
        yield texts[start:]


async def embed_in_batches(
    texts: Sequence[str], request: Request, limits: BatchLimits
) -> list[Vector]:
    """Embed texts in their order by requests within the limits, some at once.

    Raises:
        IbidError: The first that a request raised; the other requests are cancelled.
    """
    free = asyncio.Semaphore(limits.concurrency)

    async def one(batch: Sequence[str]) -> list[Vector]:
        async with free:
            return await fitted(batch, request)

    try:
        async with asyncio.TaskGroup() as group:
            parts = [
                group.create_task(one(batch))
                for batch in batches([sendable(text, limits) for text in texts], limits)
            ]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [vector for part in parts for vector in part.result()]


async def fitted(texts: Sequence[str], request: Request) -> list[Vector]:
    """Send a request, and if the model finds a text too long, halve what it is made of.

    First the batch, then the text, so a text's vector does not depend on its neighbours.

    Raises:
        Misconfigured: Not even one character is short enough.
    """
    try:
        return await request(texts)
    except TextTooLong:
        if len(texts) > 1:
            middle = len(texts) // 2
            first = await fitted(texts[:middle], request)
            return first + await fitted(texts[middle:], request)
        if len(texts[0]) == 1:
            raise Misconfigured("the embedding model takes no text, however short") from None
    return await fitted([texts[0][: len(texts[0]) // 2]], request)
