from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters.embedders.batches import (
    BatchLimits,
    TextTooLong,
    batches,
    embed_in_batches,
    estimated_tokens,
    fitted,
    sendable,
)
from ibid.domain.errors import EmbedderUnavailable, Misconfigured
from ibid.domain.passages import Vector
from tests.fakes.embedder import HashingEmbedder

HASHING = HashingEmbedder()


class Provider:
    """Takes texts up to a length, and remembers what came."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.accepted: list[Sequence[str]] = []

    async def send(self, texts: Sequence[str]) -> list[Vector]:
        if max(map(len, texts)) > self.longest:
            raise TextTooLong
        self.accepted.append(texts)
        return [HASHING.vector(text) for text in texts]


@given(
    texts=st.lists(st.text(max_size=40), max_size=30),
    max_texts=st.integers(1, 7),
    max_tokens=st.integers(1, 60),
)
def test_batches_keep_every_text_in_order_within_the_limits(
    texts: list[str], max_texts: int, max_tokens: int
) -> None:
    limits = BatchLimits(max_texts=max_texts, max_tokens=max_tokens)

    parts = list(batches(texts, limits))

    assert [text for part in parts for text in part] == texts
    assert all(1 <= len(part) <= max_texts for part in parts)
    assert all(len(part) == 1 or sum(map(estimated_tokens, part)) <= max_tokens for part in parts)


@given(text=st.text(st.characters(exclude_categories=[]), max_size=200), most=st.integers(2, 50))
def test_what_is_sent_is_within_the_limits_and_never_blank(text: str, most: int) -> None:
    sent = sendable(text, BatchLimits(max_text_tokens=most, max_text_characters=most * 2))

    assert sent.encode("utf-8")
    assert sent.strip() or text.strip()
    assert sent == "(empty)" or len(sent) <= most * 2
    assert sent == "(empty)" or estimated_tokens(sent) <= most + 1


async def test_vectors_of_many_batches_come_in_order() -> None:
    texts = [f"topic {place}" for place in range(20)]
    provider = Provider(longest=100)

    vectors = await embed_in_batches(texts, provider.send, BatchLimits(max_texts=3))

    assert vectors == [HASHING.vector(text) for text in texts]
    assert len(provider.accepted) == 7


async def test_the_first_failure_is_raised_alone() -> None:
    async def fail(texts: Sequence[str]) -> list[Vector]:
        raise EmbedderUnavailable(texts[0])

    with pytest.raises(EmbedderUnavailable):
        await embed_in_batches(["a", "b", "c"], fail, BatchLimits(max_texts=1))


async def test_a_text_that_is_too_long_is_halved_and_its_neighbours_are_left_whole() -> None:
    provider = Provider(longest=10)

    vectors = await fitted(["short", "0123456789abcdef01234", "tiny"], provider.send)

    assert [text for batch in provider.accepted for text in batch] == [
        "short",
        "0123456789",
        "tiny",
    ]
    assert len(vectors) == 3


async def test_a_model_that_takes_not_even_one_character_is_misconfigured() -> None:
    with pytest.raises(Misconfigured, match="however short"):
        await fitted(["abc"], Provider(longest=0).send)
