import asyncio
import threading
from array import array
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from ibid.adapters.embedders.local import LoadedModel, LocalEmbedder
from ibid.domain.errors import EmbedderUnavailable, Misconfigured
from ibid.domain.passages import Vector


class Session:
    """One token a character; a vector holds the text's length. `gate` holds batches back."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def tokenise(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(map(ord, text)) for text in texts]

    def embed(self, ids: Sequence[Sequence[int]]) -> list[Vector]:
        self.batches.append([len(tokens) for tokens in ids])
        if len(ids) > 1:
            self.entered.set()
            assert self.gate.wait(60)
        return [array("f", [float(len(tokens))]) for tokens in ids]


@asynccontextmanager
async def opened(load: Callable[[], LoadedModel]) -> AsyncIterator[LocalEmbedder]:
    embedder = LocalEmbedder(load, languages=frozenset({"english"}))
    try:
        yield embedder
    finally:
        await embedder.aclose()


def model(session: Session, *, query: str = "", passage: str = "") -> LoadedModel:
    return LoadedModel(
        session=session, signature="local:1", query_prefix=query, passage_prefix=passage
    )


async def test_batches_hold_texts_of_about_one_length_and_the_order_is_restored() -> None:
    session = Session()
    texts = ["x" * length for length in (9, 1, 8, 2, 7, 3, 6, 4, 5)]

    async with opened(lambda: model(session)) as embedder:
        vectors = await embedder.embed_passages(texts)

    assert session.batches == [[1, 2, 3, 4], [5, 6, 7, 8], [9]]
    assert [vector[0] for vector in vectors] == [9, 1, 8, 2, 7, 3, 6, 4, 5]


async def test_a_query_waits_behind_no_passages() -> None:
    session = Session()
    async with opened(lambda: model(session)) as embedder:
        await embedder.ready()
        session.gate.clear()
        passages = asyncio.create_task(embedder.embed_passages(["one", "two"] * 50))
        await asyncio.to_thread(session.entered.wait, 20)

        vector = await embedder.embed_query("query", timeout_s=60)

        assert not passages.done()
        session.gate.set()
        assert len(await passages) == 100
    assert vector[0] == 5


async def test_a_cancelled_call_begins_no_further_batch() -> None:
    session = Session()
    async with opened(lambda: model(session)) as embedder:
        session.gate.clear()
        passages = asyncio.create_task(embedder.embed_passages(["one", "two"] * 50))
        await asyncio.to_thread(session.entered.wait, 20)

        passages.cancel()
        with pytest.raises(asyncio.CancelledError):
            await passages

        session.gate.set()
        await embedder.embed_passages(["a"])
    assert session.batches == [[3, 3, 3, 3], [1]]


async def test_prefixes_stand_before_the_texts() -> None:
    session = Session()
    async with opened(lambda: model(session, query="q: ", passage="passage: ")) as embedder:
        (passage,) = await embedder.embed_passages(["text"])
        query = await embedder.embed_query("text", timeout_s=60)

    assert (passage[0], query[0]) == (13, 7)


async def test_the_model_is_loaded_once_whoever_comes_first() -> None:
    loaded: list[str] = []

    def load() -> LoadedModel:
        loaded.append(threading.current_thread().name)
        return model(Session())

    async with opened(load) as embedder:
        assert loaded == []
        await asyncio.gather(
            *(embedder.embed_query("q", timeout_s=60) for _ in range(5)),
            embedder.embed_passages(["p"]),
            embedder.ready(),
        )

        assert embedder.signature == "local:1"
    assert len(loaded) == 1
    assert loaded[0] != threading.main_thread().name


async def test_the_signature_alone_loads_the_model() -> None:
    async with opened(lambda: model(Session())) as embedder:
        assert embedder.signature == "local:1"
        assert embedder.languages == {"english"}


async def test_a_model_that_cannot_be_loaded_says_so_each_time() -> None:
    def load() -> LoadedModel:
        raise Misconfigured("model.onnx can't be loaded")

    async with opened(load) as embedder:
        for _ in range(2):
            with pytest.raises(Misconfigured):
                await embedder.embed_query("q", timeout_s=60)


async def test_a_query_that_takes_too_long_is_unavailable_and_the_next_one_works() -> None:
    release = threading.Event()

    def load() -> LoadedModel:
        assert release.wait(60)
        return model(Session())

    async with opened(load) as embedder:
        with pytest.raises(EmbedderUnavailable, match=r"within 0\.01 s"):
            await embedder.embed_query("q", timeout_s=0.01)
        release.set()

        assert (await embedder.embed_query("q", timeout_s=60))[0] == 1


async def test_a_foretold_signature_loads_nothing() -> None:
    def load() -> LoadedModel:
        raise AssertionError

    embedder = LocalEmbedder(load, languages=frozenset(), foretell=lambda: "told:1")

    assert embedder.signature == "told:1"
    await embedder.aclose()


async def test_who_embeds_under_a_wrongly_foretold_signature_must_try_again() -> None:
    embedder = LocalEmbedder(
        lambda: model(Session()), languages=frozenset(), foretell=lambda: "told:1"
    )
    before = embedder.signature

    with pytest.raises(EmbedderUnavailable, match="try again"):
        await embedder.embed_passages(["p"])

    assert len(await embedder.embed_passages(["p"])) == 1
    assert (before, embedder.signature) == ("told:1", "local:1")
    await embedder.aclose()
