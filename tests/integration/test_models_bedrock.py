"""The Bedrock adapter over a socket: what it sends, and how it lets go of its threads."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace

import pytest

from ibid.adapters.models.bedrock import SAFE_GUESS, BedrockModel
from ibid.domain.errors import ModelFaulty
from ibid.ports.models import ChatMessage, ModelRequest, ReplyEnd, TextDelta
from tests.fakes.model_server import ModelServer, Reply, model_server

ASK = ModelRequest(
    task="answer",
    messages=[
        ChatMessage(role="system", content="Be brief."),
        ChatMessage(role="user", content="first"),
        ChatMessage(role="assistant", content="answer"),
        ChatMessage(role="user", content=" "),
        ChatMessage(role="user", content="excerpts"),
        ChatMessage(role="user", content="question"),
    ],
    question="question",
    max_output_tokens=9,
    timeout_s=30.0,
)


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
def server(running: ModelServer) -> ModelServer:
    running.replies.clear()
    running.asked.clear()
    running.disconnects = 0
    running.go_on.clear()
    return running


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key")


@pytest.fixture
async def model(server: ModelServer) -> AsyncIterator[BedrockModel]:
    """One worker thread: whatever does not let go of it stops the next call."""
    model = BedrockModel(
        "amazon.stand-in",
        region="us-east-1",
        endpoint_url=server.url,
        workers=1,
        read_timeout_s=3,
        first_delay_s=0.001,
    )
    yield model
    await until(lambda: server.open_requests == 0)
    await model.aclose()


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        await asyncio.sleep(0.005)


async def read(model: BedrockModel, request: ModelRequest = ASK) -> list[TextDelta | ReplyEnd]:
    return [item async for item in model.stream(request)]


async def test_turns_alternate_and_the_rules_stand_apart(
    model: BedrockModel, server: ModelServer
) -> None:
    await read(model)

    (asked,) = server.asked
    assert asked.path == "/model/amazon.stand-in/converse-stream"
    assert asked.body == {
        "system": [{"text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"text": "first"}]},
            {"role": "assistant", "content": [{"text": "answer"}]},
            {"role": "user", "content": [{"text": "excerpts"}, {"text": "question"}]},
        ],
        "inferenceConfig": {"maxTokens": 9, "temperature": 0.1},
    }


async def test_a_decision_is_a_forced_tool(model: BedrockModel, server: ModelServer) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    messages = [ChatMessage(role="user", content="decide")]
    server.replies.append(Reply(['{"ok": true}']))

    decision = await model.decide(replace(ASK, messages=messages, schema=schema))

    assert decision == {"ok": True}
    (asked,) = server.asked
    assert "system" not in asked.body
    assert asked.body["toolConfig"]["toolChoice"] == {"tool": {"name": "decide"}}
    assert asked.body["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"] == {"json": schema}


@pytest.mark.parametrize("after", [0, 2])
async def test_a_stream_that_is_left_frees_its_thread_at_once(
    model: BedrockModel, server: ModelServer, after: int
) -> None:
    server.replies.extend([Reply(fault="stall", after=after), Reply()])
    task = asyncio.create_task(read(model))
    await until(lambda: server.open_requests == 1)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert len(await read(model)) == 4
    await until(lambda: server.disconnects == 1)


async def test_an_answer_to_a_call_that_was_given_up_is_closed(
    model: BedrockModel, server: ModelServer
) -> None:
    server.replies.extend([Reply(silent=True), Reply()])
    task = asyncio.create_task(read(model))
    await until(lambda: server.open_requests == 1)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    server.go_on.set()

    assert len(await read(model)) == 4
    await until(lambda: server.open_requests == 0)


async def test_a_call_that_waits_for_a_thread_can_be_given_up(
    model: BedrockModel, server: ModelServer
) -> None:
    server.replies.extend([Reply(silent=True), Reply()])
    first = asyncio.create_task(read(model))
    await until(lambda: server.open_requests == 1)
    second = asyncio.create_task(read(model))
    await asyncio.sleep(0)

    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    server.go_on.set()

    assert len(await first) == 4
    assert len(server.asked) == 1


async def test_an_unheard_of_ending_is_faulty(model: BedrockModel, server: ModelServer) -> None:
    server.replies.append(Reply(stop="unheard_of"))

    with pytest.raises(ModelFaulty):
        await read(model)


async def test_without_credentials_it_fails_by_name(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "nowhere")
    model = BedrockModel("m", region="us-east-1", endpoint_url=server.url)

    with pytest.raises(ModelFaulty, match="NoCredentialsError"):
        await read(model)

    await model.aclose()


@pytest.mark.parametrize(
    ("model_id", "given", "tokens"),
    [
        ("us.anthropic.claude-sonnet", None, 100_000),
        ("amazon.nova-lite-v1:0", None, 128_000),
        ("unheard.of", None, SAFE_GUESS),
        ("unheard.of", 5_000, 5_000),
    ],
)
async def test_the_context_is_set_or_known_or_guessed(
    model_id: str, given: int | None, tokens: int
) -> None:
    model = BedrockModel(model_id, region="us-east-1", context_tokens=given)

    assert await model.context_tokens() == tokens
    await model.aclose()
