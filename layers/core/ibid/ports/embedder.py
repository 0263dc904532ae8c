"""Models that turn texts into vectors."""

from collections.abc import Sequence
from typing import Protocol

from ibid.domain.passages import Vector


class Embedder(Protocol):
    """One embedding model, loaded at first use.

    Attributes:
        signature: Provider, model, width and digest in one printable line of at most 200
            characters: two equal signatures give comparable vectors, other ones never do.
        languages: Snowball's names of the languages it knows, such as `english`.
    """

    @property
    def signature(self) -> str:
        """Identify the model and its vector space."""

    @property
    def languages(self) -> frozenset[str]:
        """Name the languages that it knows; empty means many, BM25 is not favoured."""

    async def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Embed 1 to 1,000 texts in their order; a long text is cut to what the model takes.

        The vectors are L2-normalised. An empty text gives a vector as well.

        Raises:
            EmbedderUnavailable: No answer in time, or a faulty one.
        """

    async def embed_query(self, text: str, *, timeout_s: float) -> Vector:
        """Embed one question, alone.

        Raises:
            EmbedderUnavailable: No answer within `timeout_s`, or a faulty one.
        """
