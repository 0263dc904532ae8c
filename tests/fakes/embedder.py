"""A deterministic embedder without a model: hashed words and their parts, keyword grade."""

import asyncio
import hashlib
import math
import re
from array import array
from collections.abc import Sequence

from ibid.domain.errors import EmbedderUnavailable
from ibid.domain.passages import Vector

_MAX_CHARACTERS = 20_000


class HashingEmbedder:
    """Implements Embedder: texts that share words are near, equal texts are equal.

    Attributes:
        passages: Every text embedded as a passage, in order.
        queries: Every text embedded as a query, in order.
        failure: Raised by both methods while it is set.
        stalled: While it is set, a query waits until its time is up.
    """

    def __init__(
        self,
        *,
        width: int = 64,
        signature: str = "fake:hashing:64",
        languages: frozenset[str] = frozenset({"english"}),
    ) -> None:
        self._width = width
        self._signature = signature
        self._languages = languages
        self.passages: list[str] = []
        self.queries: list[str] = []
        self.failure: EmbedderUnavailable | None = None
        self.stalled = False

    @property
    def signature(self) -> str:
        return self._signature

    @property
    def languages(self) -> frozenset[str]:
        return self._languages

    async def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        self.passages.extend(texts)
        return [self.vector(text) for text in texts]

    async def embed_query(self, text: str, *, timeout_s: float) -> Vector:
        try:
            async with asyncio.timeout(timeout_s):
                await (asyncio.Event().wait() if self.stalled else asyncio.sleep(0))
        except TimeoutError as error:
            raise EmbedderUnavailable(f"no vector within {timeout_s:g} s") from error
        if self.failure is not None:
            raise self.failure
        self.queries.append(text)
        return self.vector(text)

    def vector(self, text: str) -> Vector:
        """Return the vector of a text, whether it is a query or a passage."""
        values = [0.0] * self._width
        values[0] = 0.01  # so that an empty text has a direction as well
        for word in re.findall(r"\w+", text[:_MAX_CHARACTERS].lower()):
            self._add(values, word, 1.0)
            for start in range(len(word) - 3):
                self._add(values, word[start : start + 4], 0.3)
        norm = math.hypot(*values)
        return array("f", (value / norm for value in values))

    def _add(self, values: list[float], feature: str, weight: float) -> None:
        digest = hashlib.blake2b(feature.encode(), digest_size=8).digest()
        sign = 1.0 if digest[0] & 1 else -1.0
        values[int.from_bytes(digest[1:], "big") % self._width] += sign * weight
