"""The OpenAI-compatible embedder's real client over a socket, faults included."""

import asyncio
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from ibid.adapters.embedders.batches import BatchLimits
from ibid.adapters.embedders.openai import OpenAiEmbedder, open_openai_embedder
from ibid.adapters.embedders.retries import Retries
from ibid.domain.errors import EmbedderUnavailable, IbidError, Misconfigured
from tests.fakes.embedding_server import EmbeddingServer, Fault, FaultKind, serving

KEY = "sk-very-secret-key"
TEXT = "a confidential passage"


async def no_wait(_: float) -> None:
    await asyncio.sleep(0)


@pytest.fixture
def server() -> EmbeddingServer:
    return EmbeddingServer(width=8)


@pytest.fixture
def base(server: EmbeddingServer) -> Iterator[str]:
    with serving(server) as url:
        yield f"{url}/v1"


@asynccontextmanager
async def opened(
    base: str, *, limits: BatchLimits | None = None, timeout_s: float = 20, attempts: int = 3
) -> AsyncIterator[OpenAiEmbedder]:
    embedder = OpenAiEmbedder(
        "embed-small",
        width=8,
        base_url=base,
        api_key=KEY,
        timeout_s=timeout_s,
        batch_limits=limits,
        retries=Retries(attempts=attempts, sleep=no_wait),
        languages=["english"],
    )
    try:
        yield embedder
    finally:
        await embedder.aclose()


def told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


async def test_the_width_is_asked_for_once_and_stands_in_the_signature(
    server: EmbeddingServer, base: str
) -> None:
    embedder = await open_openai_embedder("embed-small", base_url=base, api_key=KEY)

    await embedder.embed_query("q", timeout_s=20)
    await embedder.aclose()

    assert embedder.signature == "openai:embed-small:8"
    assert [request.body for request in server.received] == [
        {"model": "embed-small", "input": [text], "encoding_format": "float"}
        for text in ("width", "q")
    ]
    assert server.received[0].path == "/v1/embeddings"
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"


async def test_without_a_width_there_is_no_signature(base: str) -> None:
    embedder = OpenAiEmbedder("embed-small", width=None, base_url=base, api_key=None)

    with pytest.raises(EmbedderUnavailable, match="embed-small"):
        _ = embedder.signature


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=429, retry_after="0"),
        Fault(status=429, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"),
        Fault(status=408),
        Fault(status=500),
        Fault(status=503, retry_after="0.01"),
        Fault(kind="cut"),
        Fault(kind="garbage"),
        Fault(kind="wrong_count"),
        Fault(kind="wrong_width"),
        Fault(kind="not_numbers"),
        Fault(kind="zero"),
    ],
    ids=str,
)
async def test_a_passing_fault_costs_one_more_request(
    server: EmbeddingServer, base: str, fault: Fault
) -> None:
    server.faults = [fault]

    async with opened(base) as embedder:
        vectors = await embedder.embed_passages([TEXT, "another"])

    assert len(vectors) == 2
    assert len(server.received) == 2


@pytest.mark.parametrize("kind", ["status", "cut", "garbage", "wrong_count", "wrong_width", "zero"])
async def test_a_lasting_fault_is_unavailable_and_tells_neither_key_nor_text(
    server: EmbeddingServer, base: str, kind: FaultKind
) -> None:
    server.faults = [Fault(kind=kind, status=502, message=f"{KEY} {TEXT}")] * 3

    async with opened(base) as embedder:
        with pytest.raises(EmbedderUnavailable) as caught:
            await embedder.embed_passages([TEXT])

    assert len(server.received) == 3
    assert caught.value.retryable
    assert KEY not in told(caught.value)
    assert TEXT not in told(caught.value)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_refusal_for_good_names_status_and_model_and_is_not_repeated(
    server: EmbeddingServer, base: str, status: int
) -> None:
    server.faults = [Fault(status=status, message=f"bad key {KEY} for {TEXT}")]

    async with opened(base) as embedder:
        with pytest.raises(Misconfigured, match=f"'embed-small'.*{status}") as caught:
            await embedder.embed_query(TEXT, timeout_s=20)

    assert len(server.received) == 1
    assert KEY not in told(caught.value)
    assert TEXT not in told(caught.value)


async def test_a_server_that_does_not_answer_is_unavailable_within_the_time_out(
    server: EmbeddingServer, base: str
) -> None:
    server.faults = [Fault(kind="stall")] * 2

    async with opened(base, timeout_s=0.05, attempts=2) as embedder:
        with pytest.raises(EmbedderUnavailable, match="2 attempts"):
            await embedder.embed_passages([TEXT])


async def test_no_server_at_all_is_unavailable() -> None:
    with serving(EmbeddingServer()) as url:
        gone = f"{url}/v1"

    with pytest.raises(EmbedderUnavailable):
        await open_openai_embedder(
            "embed-small", base_url=gone, api_key=None, retries=Retries(attempts=1)
        )


async def test_requests_hold_as_many_texts_as_the_limits_allow_and_some_are_sent_at_once(
    server: EmbeddingServer, base: str
) -> None:
    texts = [f"topic {place}" for place in range(10)]

    async with opened(base, limits=BatchLimits(max_texts=3, concurrency=2)) as embedder:
        vectors = await embedder.embed_passages(texts)
        alone = [(await embedder.embed_passages([text]))[0] for text in texts]

    sizes = sorted(len(request.body["input"]) for request in server.received[:4])
    assert sizes == [1, 3, 3, 3]
    assert list(vectors) == alone
    assert server.most_at_once <= 2


async def test_texts_longer_than_a_small_server_takes_are_cut_until_they_fit(
    server: EmbeddingServer, base: str
) -> None:
    server.max_characters = 100
    server.max_texts = 2
    texts = ["short", "x" * 390, "also short", "another one", "and one more"]

    async with opened(base) as embedder:
        vectors = await embedder.embed_passages(texts)
        fitting = await embedder.embed_passages(["x" * 97])

    assert len(vectors) == 5
    assert vectors[1] == fitting[0]


async def test_an_empty_text_is_sent_as_something_that_servers_take(
    server: EmbeddingServer, base: str
) -> None:
    async with opened(base) as embedder:
        await embedder.embed_passages(["", " \n"])

    assert server.received[0].body["input"] == ["(empty)", "(empty)"]


async def test_the_callers_own_cancellation_is_not_taken_for_a_time_out(
    server: EmbeddingServer, base: str
) -> None:
    server.faults = [Fault(kind="stall")]

    async with opened(base) as embedder:
        task = asyncio.create_task(embedder.embed_passages([TEXT]))
        assert await asyncio.to_thread(server.stalled.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(
    ("model", "base", "key"),
    [
        ("", "http://127.0.0.1/v1", None),
        ("new\nline", "http://127.0.0.1/v1", None),
        ("m" * 151, "http://127.0.0.1/v1", None),
        ("m", "localhost:11434/v1", None),
        ("m", "http://127.0.0.1/v1", "sk-\nsecret"),
        ("m", "http://127.0.0.1/v1", "sk-sécret"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(
    model: str, base: str, key: str | None
) -> None:
    with pytest.raises(Misconfigured) as caught:
        OpenAiEmbedder(model, width=8, base_url=base, api_key=key)

    assert isinstance(caught.value, IbidError)
    assert "cret" not in str(caught.value)
