"""The OpenAI adapter over a socket: contexts, dialects, and what only this wire form can do."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from ibid.adapters.models.openai import OpenAiModel
from ibid.adapters.models.openai_context import SAFE_GUESS
from ibid.domain.errors import ModelFaulty, ModelUnavailable
from ibid.ports.models import ChatMessage, ModelRequest, ReplyEnd, TextDelta
from tests.fakes.model_server import ModelServer, Reply, model_server

SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
ASK = ModelRequest(
    task="answer",
    messages=[ChatMessage(role="user", content="question")],
    question="question",
    timeout_s=30.0,
)
DECIDE = ModelRequest(
    task="grade", messages=ASK.messages, question="question", schema=SCHEMA, timeout_s=30.0
)
YES = Reply([json.dumps({"ok": True})])


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
def server(running: ModelServer) -> ModelServer:
    running.replies.clear()
    running.rejects.clear()
    running.documents.clear()
    running.asked.clear()
    return running


@pytest.fixture
async def model(server: ModelServer) -> AsyncIterator[OpenAiModel]:
    model = OpenAiModel(
        "m", base_url=server.openai_url, api_key="k", context_tokens=None, first_delay_s=0.001
    )
    yield model
    await model.aclose()


async def read(model: OpenAiModel) -> list[TextDelta | ReplyEnd]:
    return [item async for item in model.stream(ASK)]


def entry(**fields: object) -> dict[str, Any]:
    return {"/v1/models": {"data": [{"id": "other"}, {"id": "m", **fields}]}}


@pytest.mark.parametrize(
    ("documents", "tokens"),
    [
        ({}, SAFE_GUESS),
        (entry(max_model_len=16_384), 16_384),
        (entry(context_length=32_768), 32_768),
        (entry(context_window=131_072), 131_072),
        (entry(meta={"n_ctx": 8_192, "n_ctx_train": 131_072}), 8_192),
        (entry(meta={"n_ctx_train": 131_072}), SAFE_GUESS),
        ({"/v1/models": {"data": [{"id": "the.gguf", "context_length": 512}]}}, 512),
        (entry(context_length="many", max_model_len=True), SAFE_GUESS),
        ({"/v1/models": {"data": "nonsense"}}, SAFE_GUESS),
        ({"/v1/models": ["nonsense"]}, SAFE_GUESS),
        ({"/props": {"default_generation_settings": {"n_ctx": 6_000}}}, 6_000),
        ({"/props": {"n_ctx": 7_000}}, 7_000),
        ({"/api/show": {"model_info": {"llama.context_length": 131_072}}}, SAFE_GUESS),
        ({"/api/show": {"model_info": {"llama.context_length": 2_048}}}, 2_048),
        (
            {
                "/api/show": {
                    "parameters": 'stop "<x>"\nnum_ctx                        16384',
                    "model_info": {"llama.context_length": 131_072, "llama.block_count": 1},
                }
            },
            16_384,
        ),
        (
            {
                "/api/show": {"model_info": {"llama.context_length": 131_072}},
                "/api/ps": {"models": [{"name": "m:latest", "context_length": 65_536}]},
            },
            65_536,
        ),
    ],
)
async def test_the_context_is_what_the_server_tells(
    model: OpenAiModel, server: ModelServer, documents: dict[str, Any], tokens: int
) -> None:
    server.documents.update(documents)

    assert await model.context_tokens() == tokens
    requests = len(server.asked)
    assert await model.context_tokens() == tokens
    assert len(server.asked) == requests


async def test_a_context_that_was_set_is_not_asked_for(server: ModelServer) -> None:
    model = OpenAiModel("m", base_url=server.openai_url, api_key=None, context_tokens=1_234)

    assert await model.context_tokens() == 1_234
    assert not server.asked
    await model.aclose()


@pytest.mark.parametrize(
    ("name", "tokens"), [("gpt-4o-mini", 128_000), ("gpt-4-0613", 8_000), ("unheard-of", 4_096)]
)
async def test_openai_s_own_models_are_known(name: str, tokens: int) -> None:
    model = OpenAiModel(
        name, base_url="https://api.openai.com/v1", api_key="k", context_tokens=None
    )

    assert await model.context_tokens() == tokens
    await model.aclose()


async def test_a_server_that_is_down_is_guessed_and_asked_again(server: ModelServer) -> None:
    # Nothing listens on port 1 of the loopback interface
    model = OpenAiModel(
        "m",
        base_url="http://127.0.0.1:1/v1",
        api_key="k",
        context_tokens=None,
        first_delay_s=0.001,
    )

    assert await model.context_tokens() == SAFE_GUESS
    with pytest.raises(ModelUnavailable):
        await anext(model.stream(ASK))
    await model.aclose()
    assert not server.asked


@pytest.mark.parametrize("rejected", ["stream_options", "max_tokens", "temperature"])
async def test_a_parameter_that_the_server_rejects_is_left_out_from_then_on(
    model: OpenAiModel, server: ModelServer, rejected: str
) -> None:
    server.rejects.add(rejected)

    first, second = await read(model), await read(model)

    assert [type(item) for item in first] == [TextDelta] * 3 + [ReplyEnd]
    assert [type(item) for item in second] == [TextDelta] * 3 + [ReplyEnd]
    assert [rejected in asked.body for asked in server.chats()] == [True, False, False]


@pytest.mark.parametrize(
    ("rejects", "forms"),
    [
        ([], ["json_schema", "json_schema"]),
        (["json_schema"], ["json_schema", "json_object", "json_object"]),
        (["json_schema", "json_object"], ["json_schema", "json_object", None, None]),
    ],
)
async def test_the_form_that_the_server_takes_is_remembered(
    model: OpenAiModel, server: ModelServer, rejects: list[str], forms: list[str | None]
) -> None:
    server.rejects.update(rejects)
    server.replies.append(YES)

    first, second = await model.decide(DECIDE), await model.decide(DECIDE)

    assert first == second == {"ok": True}
    sent = [asked.body.get("response_format", {}).get("type") for asked in server.chats()]
    assert sent == forms


async def test_a_server_that_ignores_the_form_is_asked_in_words(
    model: OpenAiModel, server: ModelServer
) -> None:
    server.replies.extend([Reply(["Yes, it is."]), Reply(['Here: {"ok": true}']), YES])

    assert await model.decide(DECIDE) == {"ok": True}
    assert "JSON Schema" in server.chats()[1].body["messages"][0]["content"]


async def test_a_form_that_worked_is_kept_when_the_model_errs(
    model: OpenAiModel, server: ModelServer
) -> None:
    server.replies.extend([YES, Reply(["no"])])

    await model.decide(DECIDE)
    with pytest.raises(ModelFaulty):
        await model.decide(DECIDE)

    assert [asked.body["response_format"]["type"] for asked in server.chats()] == [
        "json_schema"
    ] * 2


async def test_the_key_is_sent_as_a_bearer_and_none_is_needed(
    model: OpenAiModel, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    keyless = OpenAiModel("m", base_url=server.openai_url, api_key=None, context_tokens=1_234)

    await read(model)
    await read(keyless)

    assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer k", "Bearer none"]
    await keyless.aclose()


async def test_what_comes_after_the_finish_reason_can_cost_the_usage_only(
    model: OpenAiModel, server: ModelServer
) -> None:
    server.replies.append(Reply(cut_after_the_end=True))

    items = await read(model)

    assert items[-1] == ReplyEnd(input_tokens=None, output_tokens=None)


@pytest.mark.parametrize("document", [{"choices": []}, {"object": "list"}])
async def test_a_whole_reply_without_a_choice_is_faulty(
    model: OpenAiModel, server: ModelServer, document: dict[str, Any]
) -> None:
    server.replies.append(Reply(body=document))

    with pytest.raises(ModelFaulty):
        await model.decide(DECIDE)
