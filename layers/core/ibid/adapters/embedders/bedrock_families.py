"""The wire forms of Bedrock's embedding models; what none of them takes is refused at start."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ibid.adapters.embedders.batches import BatchLimits
from ibid.domain.errors import Misconfigured

Kind = Literal["query", "passage"]

_COHERE_KINDS = {"query": "search_query", "passage": "search_document"}


class Family(Protocol):
    """One wire form.

    Attributes:
        width: Of every vector.
        limits: Of one request.
        languages: Snowball's names of those the model knows; empty means many.
    """

    @property
    def width(self) -> int:
        """Tell how wide a vector is."""

    @property
    def limits(self) -> BatchLimits:
        """Tell what one request may hold."""

    @property
    def languages(self) -> frozenset[str]:
        """Name the languages; empty means many."""

    def space(self, model_id: str) -> str:
        """Name the vector space: the model without region or account."""

    def body(self, texts: Sequence[str], kind: Kind) -> Mapping[str, Any]:
        """Build a request's JSON."""

    def rows(self, reply: Any) -> Any:  # noqa: ANN401 - JSON from outside
        """Take the vectors out of a reply; raises TypeError or KeyError where they are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Titan:
    """`amazon.titan-embed-text`: one text a request; version 2 also takes a width.

    Attributes:
        sized: It takes `dimensions` and `normalize`.
    """

    width: int
    sized: bool
    limits: BatchLimits
    languages: frozenset[str] = frozenset()

    def space(self, model_id: str) -> str:
        """Name the vector space."""
        return model_id[model_id.index("amazon.titan") :]

    def body(self, texts: Sequence[str], kind: Kind) -> Mapping[str, Any]:  # noqa: ARG002 - Titan knows no kinds
        """Build a request's JSON; there is one text."""
        sized = {"dimensions": self.width, "normalize": True} if self.sized else {}
        return {"inputText": texts[0], **sized}

    def rows(self, reply: Any) -> Any:  # noqa: ANN401 - JSON from outside
        """Take the vector out of a reply."""
        return [reply["embedding"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohere:
    """`cohere.embed`: up to 96 texts a request, questions and passages apart.

    Attributes:
        sized: It takes `output_dimension` and names the vectors' type, as version 4 does.
    """

    width: int
    sized: bool
    limits: BatchLimits
    languages: frozenset[str] = frozenset()

    def space(self, model_id: str) -> str:
        """Name the vector space."""
        return model_id[model_id.index("cohere.embed") :]

    def body(self, texts: Sequence[str], kind: Kind) -> Mapping[str, Any]:
        """Build a request's JSON."""
        return {
            "texts": list(texts),
            "input_type": _COHERE_KINDS[kind],
            "truncate": "RIGHT" if self.sized else "END",
            "embedding_types": ["float"],
            **({"output_dimension": self.width} if self.sized else {}),
        }

    def rows(self, reply: Any) -> Any:  # noqa: ANN401 - JSON from outside
        """Take the vectors out of a reply, with or without their type's name."""
        embeddings = reply["embeddings"]
        return embeddings["float"] if isinstance(embeddings, dict) else embeddings


_TITAN = BatchLimits(max_texts=1, max_text_characters=50_000, concurrency=8)
_COHERE_3 = BatchLimits(max_texts=96, max_text_characters=2_048, concurrency=4)
_COHERE_4 = BatchLimits(max_texts=96, max_text_tokens=30_000, concurrency=4)
_FAMILIES: Mapping[str, Family] = {
    "amazon.titan-embed-text-v2": Titan(width=1_024, sized=True, limits=_TITAN),
    "amazon.titan-embed-text-v1": Titan(width=1_536, sized=False, limits=_TITAN),
    "amazon.titan-embed-g1-text-02": Titan(width=1_536, sized=False, limits=_TITAN),
    "cohere.embed-english-v3": Cohere(
        width=1_024, sized=False, limits=_COHERE_3, languages=frozenset({"english"})
    ),
    "cohere.embed-multilingual-v3": Cohere(width=1_024, sized=False, limits=_COHERE_3),
    "cohere.embed-v4": Cohere(width=1_536, sized=True, limits=_COHERE_4),
}


def family_of(model_id: str) -> Family:
    """Find a model's wire form by its id, whatever region or account stands before.

    Raises:
        Misconfigured: It is none of the known ones; the message lists those.
    """
    for name, family in _FAMILIES.items():
        if name in model_id:
            return family
    raise Misconfigured(
        f"{model_id!r} is no known Bedrock embedding model; known: {', '.join(_FAMILIES)}"
    )
