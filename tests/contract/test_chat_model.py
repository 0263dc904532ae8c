"""What every ChatModel must do, over the rules, the script, and two providers' wire forms."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace

import pytest

from ibid.adapters.models.bedrock import BedrockModel
from ibid.adapters.models.extractive import ExtractiveModel
from ibid.adapters.models.openai import OpenAiModel
from ibid.adapters.models.schema_check import accepts
from ibid.domain.answers import HistoryTurn
from ibid.domain.errors import (
    AnswerEmpty,
    AnswerTruncated,
    IbidError,
    ModelFaulty,
    ModelRefused,
    ModelUnavailable,
)
from ibid.domain.passages import Passage
from ibid.ports.models import ChatMessage, ChatModel, ModelRequest, ReplyEnd, TextDelta
from tests.fakes.model_server import Fault, ModelServer, Reply, Stop, model_server
from tests.fakes.scripted_model import ScriptedModel

KEY = "SECRET-KEY"
QUESTION = "Where is the SECRET-QUESTION answered?"
CASES = ["extractive", "scripted", "openai", "bedrock"]
SOCKETS = ["openai", "bedrock"]
PIECES = ("It is ", "in the first ", "excerpt [1].")
CLASSIFY = {
    "type": "object",
    "properties": {
        "intent": {"enum": ["codebase_question", "conversational", "out_of_scope"]},
        "search_query": {"type": "string"},
    },
    "required": ["intent", "search_query"],
    "additionalProperties": False,
}
DECISION = {"intent": "codebase_question", "search_query": "answered"}
PASSAGE = Passage(
    file_path="src/answers.py",
    start_line=1,
    end_line=2,
    language="python",
    symbol="answer",
    content="def answer() -> str:\n    return 'answered'",
    commit_sha=None,
    score=1.0,
    cosine=None,
)
REQUEST = ModelRequest(
    task="answer",
    messages=[
        ChatMessage(role="system", content="Answer from the excerpts."),
        ChatMessage(role="user", content=QUESTION),
    ],
    question=QUESTION,
    passages=[PASSAGE],
    timeout_s=30.0,
)
CLASSIFYING = replace(REQUEST, task="classify", passages=(), schema=CLASSIFY)


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
    running.disconnects = 0
    return running


@pytest.fixture(scope="module")
def models(running: ModelServer) -> Iterator[dict[str, ChatModel]]:
    """Made once: boto3 reads its service's description for a third of a second."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ACCESS_KEY_ID", "AKIASECRET")
        environment.setenv("AWS_SECRET_ACCESS_KEY", KEY)
        openai = OpenAiModel(
            "stand-in",
            base_url=running.openai_url,
            api_key=KEY,
            context_tokens=8_000,
            first_delay_s=0.001,
        )
        bedrock = BedrockModel(
            "anthropic.stand-in",
            region="us-east-1",
            endpoint_url=running.url,
            read_timeout_s=5,
            first_delay_s=0.001,
        )
        running.replies.append(Reply())
        asyncio.run(_warm_up(openai, bedrock))
        yield {
            "extractive": ExtractiveModel(),
            "scripted": ScriptedModel(PIECES),
            "openai": openai,
            "bedrock": bedrock,
        }
        asyncio.run(bedrock.aclose())


async def _warm_up(openai: OpenAiModel, bedrock: BedrockModel) -> None:
    await read(openai, REQUEST)
    await read(bedrock, REQUEST)
    await openai.aclose()


@dataclass
class Heard:
    """What a stream gave before it ended or failed."""

    pieces: list[str]
    end: ReplyEnd | None = None
    error: IbidError | None = None


async def read(model: ChatModel, request: ModelRequest, heard: Heard | None = None) -> Heard:
    heard = heard or Heard([])
    try:
        async for item in model.stream(request):
            assert heard.end is None, "something came after the end"
            if isinstance(item, TextDelta):
                heard.pieces.append(item.text)
            else:
                heard.end = item
    except IbidError as error:
        heard.error = error
    return heard


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        await asyncio.sleep(0.005)


@pytest.fixture
async def model(
    request: pytest.FixtureRequest, models: dict[str, ChatModel], server: ModelServer
) -> AsyncIterator[ChatModel]:
    model = models[request.param]
    yield model
    if isinstance(model, OpenAiModel):
        await model.aclose()
    await until(lambda: server.open_requests == 0)


every = pytest.mark.parametrize("model", CASES, indirect=True)
over_a_socket = pytest.mark.parametrize("model", SOCKETS, indirect=True)


@every
async def test_a_stream_gives_pieces_that_are_never_empty_then_one_end(model: ChatModel) -> None:
    heard = await read(model, REQUEST)

    assert heard.error is None
    assert heard.end is not None
    assert heard.pieces
    assert all(heard.pieces)


@every
async def test_an_answer_from_the_history_needs_no_passages(model: ChatModel) -> None:
    history = [HistoryTurn(question="Where is it?", answer="In `a.py`.")]
    request = replace(REQUEST, task="answer_from_history", passages=(), history=history)

    heard = await read(model, request)

    assert heard.end is not None
    assert heard.pieces


@every
async def test_a_decision_is_of_its_schema(model: ChatModel, server: ModelServer) -> None:
    server.replies.append(Reply([json.dumps(DECISION)]))

    decision = await model.decide(CLASSIFYING)

    assert accepts(CLASSIFY, decision)


@every
async def test_a_model_names_itself_and_its_context(model: ChatModel) -> None:
    assert model.name
    assert model.name == model.name.strip()
    assert await model.context_tokens() >= 4_096


@every
@pytest.mark.parametrize("text", ["", "a", "two words", "def f(x):\n    return x", "ação 漢字 🙂"])
async def test_tokens_are_counted_at_least_one_a_word_and_more_text_never_counts_less(
    model: ChatModel, text: str
) -> None:
    assert model.count_tokens(text) >= len(text.split())
    assert model.count_tokens(f"{text} more") >= model.count_tokens(text)


@every
async def test_streams_side_by_side_do_not_mix(model: ChatModel) -> None:
    alone = await read(model, REQUEST)

    together = await asyncio.gather(*(read(model, REQUEST) for _ in range(8)))

    assert [heard.pieces for heard in together] == [alone.pieces] * 8


@every
async def test_a_stream_that_is_closed_early_leaves_nothing_open(
    model: ChatModel, server: ModelServer
) -> None:
    stream = model.stream(REQUEST)

    async with aclosing(stream):  # type: ignore[type-var]  # the port promises less
        first = await anext(stream)

    assert isinstance(first, TextDelta)
    await until(lambda: server.open_requests == 0)


@pytest.mark.parametrize("case", CASES)
def test_one_model_serves_one_event_loop_after_the_other(
    case: str, models: dict[str, ChatModel], server: ModelServer
) -> None:
    model = models[case]

    async def in_a_loop_of_its_own() -> Heard:
        heard = await read(model, REQUEST)
        if isinstance(model, OpenAiModel):
            await model.aclose()
        return heard

    first, second = asyncio.run(in_a_loop_of_its_own()), asyncio.run(in_a_loop_of_its_own())

    assert first.pieces == second.pieces
    assert second.end == first.end is not None
    assert server.open_requests == 0


@over_a_socket
async def test_the_pieces_come_as_they_were_sent_with_what_was_counted(
    model: ChatModel, server: ModelServer
) -> None:
    pieces = ["A ", "café", ", 漢", "字 ", "🙂\n", " "]
    server.replies.append(Reply(pieces, reasoning=["Let me ", "think."]))

    heard = await read(model, REQUEST)

    assert heard == Heard(pieces, ReplyEnd(input_tokens=7, output_tokens=3))


@over_a_socket
async def test_a_provider_that_counts_nothing_is_believed(
    model: ChatModel, server: ModelServer
) -> None:
    server.replies.append(Reply(PIECES, usage=False))

    heard = await read(model, REQUEST)

    assert heard == Heard([*PIECES], ReplyEnd(input_tokens=None, output_tokens=None))


BROKEN: list[tuple[Fault, type[IbidError]]] = [
    ("cut", ModelUnavailable),
    ("cut_character", ModelUnavailable),
    ("eof", ModelUnavailable),
    ("eof_character", ModelUnavailable),
    ("error", ModelUnavailable),
    ("garbage", ModelFaulty),
    ("bad_crc", ModelFaulty),
    ("no_text", ModelFaulty),
    ("no_chunk", ModelFaulty),
]


@over_a_socket
@pytest.mark.parametrize(("fault", "error"), BROKEN)
@pytest.mark.parametrize("after", [1, 3])
async def test_a_stream_that_breaks_keeps_its_pieces_and_is_not_tried_again(
    model: ChatModel, server: ModelServer, fault: Fault, error: type[IbidError], after: int
) -> None:
    server.replies.append(Reply(PIECES, fault=fault, after=after))

    heard = await read(model, REQUEST)

    assert heard.pieces == [*PIECES[:after]]
    assert type(heard.error) is error
    assert_tells_no_secret(heard.error)
    assert len(server.chats()) == 1


@over_a_socket
@pytest.mark.parametrize("fault", ["cut", "eof", "error"])
async def test_a_stream_that_breaks_before_its_first_piece_is_tried_again(
    model: ChatModel, server: ModelServer, fault: Fault
) -> None:
    server.replies.extend([Reply(fault=fault), Reply(PIECES)])

    heard = await read(model, REQUEST)

    assert heard.pieces == [*PIECES]
    assert heard.error is None
    assert len(server.chats()) == 2


@over_a_socket
@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
async def test_a_provider_that_is_busy_is_tried_again(
    model: ChatModel, server: ModelServer, status: int
) -> None:
    server.replies.extend([Reply(status=status), Reply(status=status), Reply(PIECES)])

    heard = await read(model, REQUEST)

    assert heard.pieces == [*PIECES]
    assert len(server.chats()) == 3


@over_a_socket
@pytest.mark.parametrize("status", [429, 500])
async def test_a_provider_that_stays_busy_is_given_up(
    model: ChatModel, server: ModelServer, status: int
) -> None:
    server.replies.append(Reply(status=status))

    heard = await read(model, REQUEST)

    assert type(heard.error) is ModelUnavailable
    assert str(status) in str(heard.error)
    assert_tells_no_secret(heard.error)
    assert len(server.chats()) == 5


@over_a_socket
async def test_a_provider_that_asks_for_more_time_than_there_is_is_not_waited_for(
    model: ChatModel, server: ModelServer
) -> None:
    server.replies.append(Reply(status=429, headers={"Retry-After": "3600"}))

    heard = await read(model, REQUEST)

    assert type(heard.error) is ModelUnavailable
    assert len(server.chats()) == 1


@over_a_socket
async def test_a_provider_that_asks_for_no_time_is_tried_again(
    model: ChatModel, server: ModelServer
) -> None:
    server.replies.extend([Reply(status=429, headers={"Retry-After": "0"}), Reply(PIECES)])

    heard = await read(model, REQUEST)

    assert heard.error is None
    assert len(server.chats()) == 2


@over_a_socket
@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_a_rejected_request_is_an_error_that_names_the_status_alone(
    model: ChatModel, server: ModelServer, status: int
) -> None:
    server.replies.append(Reply(status=status))

    heard = await read(model, REQUEST)

    assert type(heard.error) is ModelFaulty
    assert str(status) in str(heard.error)
    assert_tells_no_secret(heard.error)
    assert len(server.chats()) == 1


ENDS: list[tuple[Stop, type[IbidError]]] = [
    ("length", AnswerTruncated),
    ("filter", ModelRefused),
    ("refusal", ModelRefused),
]


@over_a_socket
@pytest.mark.parametrize(("stop", "error"), ENDS)
async def test_a_reply_that_ends_otherwise_keeps_its_pieces(
    model: ChatModel, server: ModelServer, stop: Stop, error: type[IbidError]
) -> None:
    server.replies.append(Reply(PIECES, stop=stop))

    heard = await read(model, REQUEST)

    assert heard.pieces == [*PIECES]
    assert type(heard.error) is error
    assert_tells_no_secret(heard.error)


@over_a_socket
@pytest.mark.parametrize("pieces", [(), (" ", "\n")])
async def test_a_reply_without_text_is_empty(
    model: ChatModel, server: ModelServer, pieces: tuple[str, ...]
) -> None:
    server.replies.append(Reply(pieces, reasoning=["Hm."]))

    heard = await read(model, REQUEST)

    assert type(heard.error) is AnswerEmpty


@over_a_socket
@pytest.mark.parametrize("after", [0, 2])
async def test_a_stream_that_stalls_ends_in_time_and_closes_its_connection(
    model: ChatModel, server: ModelServer, after: int
) -> None:
    server.replies.append(Reply(PIECES, fault="stall", after=after))

    heard = await read(model, replace(REQUEST, timeout_s=3.0))

    assert heard.pieces == [*PIECES[:after]]
    assert type(heard.error) is ModelUnavailable
    await until(lambda: server.disconnects == 1)


@over_a_socket
@pytest.mark.parametrize("after", [0, 2])
async def test_a_cancelled_stream_closes_its_connection(
    model: ChatModel, server: ModelServer, after: int
) -> None:
    server.replies.append(Reply(PIECES, fault="stall", after=after))
    heard = Heard([])

    task = asyncio.create_task(read(model, REQUEST, heard))
    await until(lambda: server.open_requests == 1 and len(heard.pieces) == after)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await until(lambda: server.disconnects == 1)


@over_a_socket
@pytest.mark.parametrize("reply", ["no JSON", "{}", '{"intent": "else", "search_query": ""}'])
async def test_a_decision_of_another_shape_is_faulty(
    model: ChatModel, server: ModelServer, reply: str
) -> None:
    server.replies.append(Reply([reply]))

    with pytest.raises(ModelFaulty) as failed:
        await model.decide(CLASSIFYING)

    assert_tells_no_secret(failed.value)


@over_a_socket
@pytest.mark.parametrize(("stop", "error"), ENDS)
async def test_a_decision_that_was_cut_or_refused_says_so(
    model: ChatModel, server: ModelServer, stop: Stop, error: type[IbidError]
) -> None:
    server.replies.append(Reply([json.dumps(DECISION)], stop=stop))

    with pytest.raises(error):
        await model.decide(CLASSIFYING)


@over_a_socket
async def test_a_busy_provider_is_asked_again_for_a_decision(
    model: ChatModel, server: ModelServer
) -> None:
    server.replies.extend([Reply(status=503), Reply([json.dumps(DECISION)])])

    decision = await model.decide(CLASSIFYING)

    assert decision == DECISION


@over_a_socket
@pytest.mark.parametrize(("fault", "error"), [("garbage", ModelFaulty), ("cut", ModelUnavailable)])
async def test_a_decision_whose_body_breaks_is_an_error(
    model: ChatModel, server: ModelServer, fault: Fault, error: type[IbidError]
) -> None:
    server.replies.append(Reply(fault=fault))

    with pytest.raises(IbidError) as failed:
        await model.decide(CLASSIFYING)

    # boto3 takes a body that is no JSON for a passing failure of the transport
    assert type(failed.value) in {error, ModelUnavailable}
    assert_tells_no_secret(failed.value)


@over_a_socket
async def test_a_decision_that_does_not_come_ends_in_time(
    model: ChatModel, server: ModelServer
) -> None:
    server.replies.append(Reply(fault="stall"))

    with pytest.raises(ModelUnavailable):
        await model.decide(replace(CLASSIFYING, timeout_s=1.0))


@over_a_socket
async def test_no_secret_is_in_what_a_model_says_of_itself(model: ChatModel) -> None:
    assert KEY not in f"{model!r} {model} {model.name}"


def assert_tells_no_secret(error: IbidError | None) -> None:
    assert error is not None
    for told in (str(error), repr(error)):
        assert KEY not in told
        assert "SECRET-QUESTION" not in told
        assert "AKIASECRET" not in told
