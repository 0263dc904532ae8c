"""The Bedrock embedder's real boto3 client over a socket, faults included."""

import asyncio
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from ibid.adapters.embedders.bedrock import BedrockEmbedder
from ibid.adapters.embedders.retries import Retries
from ibid.domain.errors import EmbedderUnavailable, Misconfigured
from tests.fakes.embedding_server import EmbeddingServer, Fault, FaultKind, serving

TITAN = "amazon.titan-embed-text-v2:0"
COHERE = "cohere.embed-english-v3"
TEXT = "a confidential passage"


async def no_wait(_: float) -> None:
    await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture(scope="module")
def only_server() -> Iterator[tuple[EmbeddingServer, str]]:
    server = EmbeddingServer(width=1_024)
    with serving(server) as url:
        yield server, url


@pytest.fixture
def server(only_server: tuple[EmbeddingServer, str]) -> EmbeddingServer:
    server, _ = only_server
    server.faults, server.received, server.max_characters = [], [], None
    return server


@pytest.fixture
def url(only_server: tuple[EmbeddingServer, str]) -> str:
    return only_server[1]


def made(model: str, url: str, *, attempts: int = 3, timeout_s: float = 20) -> BedrockEmbedder:
    return BedrockEmbedder(
        model,
        region="us-east-1",
        endpoint_url=url,
        timeout_s=timeout_s,
        retries=Retries(attempts=attempts, sleep=no_wait),
    )


@asynccontextmanager
async def opened(
    model: str, url: str, *, attempts: int = 3, timeout_s: float = 20
) -> AsyncIterator[BedrockEmbedder]:
    embedder = made(model, url, attempts=attempts, timeout_s=timeout_s)
    try:
        yield embedder
    finally:
        await embedder.aclose()


@pytest.fixture(scope="module")
def kept(only_server: tuple[EmbeddingServer, str]) -> Iterator[dict[str, BedrockEmbedder]]:
    """One embedder a model for many tests: boto3 takes a second to make a client."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        embedders = {model: made(model, only_server[1]) for model in (TITAN, COHERE)}
        yield embedders
        for embedder in embedders.values():
            asyncio.run(embedder.aclose())


def told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


async def test_titan_is_sent_a_text_at_a_time(
    server: EmbeddingServer, kept: dict[str, BedrockEmbedder]
) -> None:
    vectors = await kept[TITAN].embed_passages(["one", "two", "three"])

    assert kept[TITAN].signature == "bedrock:amazon.titan-embed-text-v2:0:1024"
    assert kept[TITAN].languages == frozenset()
    assert [len(vector) for vector in vectors] == [1_024] * 3
    assert sorted(request.body["inputText"] for request in server.received) == [
        "one",
        "three",
        "two",
    ]
    assert {request.path for request in server.received} == {f"/model/{TITAN}/invoke"}


async def test_cohere_is_told_what_is_a_question(
    server: EmbeddingServer, kept: dict[str, BedrockEmbedder]
) -> None:
    (passage,) = await kept[COHERE].embed_passages(["the same"])
    question = await kept[COHERE].embed_query("the same", timeout_s=20)

    assert kept[COHERE].languages == {"english"}
    assert passage != question
    assert [request.body["input_type"] for request in server.received] == [
        "search_document",
        "search_query",
    ]


async def test_cohere_4_answers_in_its_own_form(url: str) -> None:
    async with opened("us.cohere.embed-v4:0", url) as embedder:
        (vector,) = await embedder.embed_passages([TEXT])

    assert len(vector) == 1_536


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=429, code="ThrottlingException", retry_after="0"),
        Fault(status=400, code="ThrottlingException"),
        Fault(status=429, code="ModelNotReadyException"),
        Fault(status=408, code="ModelTimeoutException"),
        Fault(status=424, code="ModelErrorException"),
        Fault(status=503, code="ServiceUnavailableException"),
        Fault(status=500),
        Fault(kind="cut"),
        Fault(kind="garbage"),
        Fault(kind="wrong_count"),
        Fault(kind="wrong_width"),
        Fault(kind="not_numbers"),
    ],
    ids=str,
)
@pytest.mark.parametrize("model", [TITAN, COHERE])
async def test_a_passing_fault_costs_one_more_request(
    server: EmbeddingServer, kept: dict[str, BedrockEmbedder], fault: Fault, model: str
) -> None:
    server.faults = [fault]

    vectors = await kept[model].embed_passages([TEXT])

    assert len(vectors) == 1
    assert len(server.received) == 2


@pytest.mark.parametrize("kind", ["status", "cut", "garbage", "wrong_width"])
async def test_a_lasting_fault_is_unavailable_and_does_not_tell_the_text(
    server: EmbeddingServer, kept: dict[str, BedrockEmbedder], kind: FaultKind
) -> None:
    server.faults = [Fault(kind=kind, message=TEXT)] * 3

    with pytest.raises(EmbedderUnavailable) as caught:
        await kept[TITAN].embed_passages([TEXT])

    assert len(server.received) == 3
    assert TEXT not in told(caught.value)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "ValidationException"),
        (403, "AccessDeniedException"),
        (404, "ResourceNotFoundException"),
    ],
)
async def test_a_refusal_for_good_names_status_and_model_and_is_not_repeated(
    server: EmbeddingServer, kept: dict[str, BedrockEmbedder], status: int, code: str
) -> None:
    server.faults = [Fault(status=status, code=code, message=TEXT)]

    with pytest.raises(Misconfigured, match=f"{TITAN}.*{code}.*{status}") as caught:
        await kept[TITAN].embed_query(TEXT, timeout_s=20)

    assert len(server.received) == 1
    assert TEXT not in told(caught.value)


async def test_a_text_with_too_many_tokens_is_cut_until_it_fits(
    server: EmbeddingServer, kept: dict[str, BedrockEmbedder]
) -> None:
    server.max_characters = 100

    vectors = await kept[TITAN].embed_passages(["short", "x" * 390])

    assert len(vectors) == 2
    assert max(len(request.body["inputText"]) for request in server.received[-1:]) <= 100


async def test_a_service_that_does_not_answer_is_unavailable_within_the_time_out(
    server: EmbeddingServer, url: str
) -> None:
    server.faults = [Fault(kind="stall")] * 2

    async with opened(TITAN, url, timeout_s=0.05, attempts=2) as embedder:
        with pytest.raises(EmbedderUnavailable, match=r"ReadTimeoutError \(2 attempts\)"):
            await embedder.embed_passages([TEXT])


async def test_no_service_at_all_is_unavailable() -> None:
    with serving(EmbeddingServer()) as gone:
        pass

    async with opened(TITAN, gone, attempts=1) as embedder:
        with pytest.raises(EmbedderUnavailable, match="EndpointConnectionError"):
            await embedder.embed_passages([TEXT])


async def test_missing_credentials_are_misconfigured(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "no-such-file")
    monkeypatch.setenv("AWS_CONFIG_FILE", "no-such-file")

    async with opened(TITAN, url) as embedder:
        with pytest.raises(Misconfigured, match="NoCredentialsError"):
            await embedder.embed_passages([TEXT])


def test_a_missing_region_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "no-such-file")

    with pytest.raises(Misconfigured, match="NoRegionError"):
        BedrockEmbedder(TITAN)


def test_an_endpoint_that_is_no_url_is_refused_at_once() -> None:
    with pytest.raises(Misconfigured, match="ValueError"):
        BedrockEmbedder(TITAN, region="us-east-1", endpoint_url="no url")
