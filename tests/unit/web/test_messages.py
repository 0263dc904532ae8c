"""The Messages surface: one question, streamed or whole, refused before or failed after."""

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from dataclasses import replace
from typing import Any

import httpx
import pytest
from httpx_sse import ServerSentEvent, aconnect_sse

from ibid.domain.answers import TurnInput, TurnPause, TurnResult
from ibid.domain.conversations import Conversation
from ibid.domain.errors import ModelUnavailable, StoreUnavailable
from ibid.domain.events import CitationsFound, Phase, StatusChanged, TokenDelta, TurnEvent
from ibid.domain.projects import Role
from ibid.runs.turns import Proceed, Work
from tests.fakes.app import ANN, BOB, FakeApp, citation, scripted_turn, scripted_work
from tests.fakes.event_source import EventSourceReader

STREAM = {"Accept": "text/event-stream"}
PIECES = ("It's ", "in «cart»\n", "[1]. 😀")


def path(conversation: Conversation) -> str:
    return f"/conversations/{conversation.id}/messages"


async def streamed(
    client: httpx.AsyncClient, conversation: Conversation, **body: object
) -> tuple[httpx.Response, list[ServerSentEvent]]:
    question = {"question": "Where is the total?", **body}
    async with aconnect_sse(client, "POST", path(conversation), json=question) as source:
        return source.response, [event async for event in source.aiter_sse()]


def recorded(turns: list[TurnInput], work: Work) -> Work:
    """Make the same work, which notes what it was given."""

    def noted(
        turn: TurnInput, proceed: Proceed
    ) -> AsyncIterator[TurnEvent | TurnResult | TurnPause]:
        turns.append(turn)
        return work(turn, proceed)

    return noted


async def test_an_answer_streams_its_events_in_order_with_rising_ids() -> None:
    app = FakeApp(scripted_turn(*PIECES))
    conversation = await app.conversation()

    async with app.client() as ann:
        response, events = await streamed(ann, conversation)

    names = [event.event for event in events]
    assert names == ["status", "citations", "token", "token", "token", "done"]
    assert [event.id for event in events] == ["1", "2", "3", "4", "5", "6"]
    assert "".join(event.json()["text"] for event in events[2:5]) == "".join(PIECES)
    assert response.headers["content-type"].split(";")[0] == "text/event-stream"
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"
    assert response.headers["location"] == f"/runs/{response.headers['ibid-run-id']}"


async def test_what_done_says_is_what_the_kept_message_says() -> None:
    app = FakeApp(scripted_turn(*PIECES))
    conversation = await app.conversation()
    async with app.client() as ann:
        _, events = await streamed(ann, conversation)

        kept = (await ann.get(path(conversation))).json()["items"]

    done = events[-1].json()
    assert [message["role"] for message in kept] == ["user", "assistant"]
    assert kept[0]["content"] == "Where is the total?"
    assert kept[1]["content"] == "".join(PIECES)
    assert {name: kept[1][name] for name in done} == done


async def test_a_json_answer_says_what_the_stream_says() -> None:
    app = FakeApp(scripted_turn(*PIECES))
    first, second = await app.conversation(), await app.conversation()
    async with app.client() as ann:
        _, events = await streamed(ann, first)

        answer = await ann.post(path(second), json={"question": "Where is the total?"})

    done, body = events[-1].json(), answer.json()
    assert answer.status_code == 200
    assert body.pop("content") == "".join(PIECES)
    assert body.pop("runId") == answer.headers["ibid-run-id"]
    assert answer.headers["location"] == f"/runs/{answer.headers['ibid-run-id']}"
    assert body.pop("messageId") != done.pop("messageId")
    assert body == done


@pytest.mark.parametrize(
    "accept",
    ["*/*", "application/json", "text/event-stream, application/json", "text/event-stream;q=1"],
)
async def test_only_the_exact_media_type_asks_for_a_stream(accept: str) -> None:
    app = FakeApp()
    conversation = await app.conversation()

    async with app.client(headers={"Accept": accept}) as ann:
        answer = await ann.post(path(conversation), json={"question": "Where?"})

    assert answer.headers["content-type"] == "application/json"


async def test_a_failure_after_the_first_byte_is_an_event_and_a_kept_message() -> None:
    found = CitationsFound(citations=[citation()])
    failing = scripted_work(found, TokenDelta(text="It is"), ModelUnavailable("broke off"))
    app = FakeApp(failing)
    conversation = await app.conversation()
    async with app.client() as ann:
        _, events = await streamed(ann, conversation)

        kept = (await ann.get(path(conversation))).json()["items"][1]

    assert [event.event for event in events] == ["citations", "token", "error"]
    error = events[-1].json()
    assert error["code"] == "LLM_UNAVAILABLE"
    assert error["finishReason"] == "error"
    assert kept["content"] == "It is"
    assert (kept["messageId"], kept["code"], kept["finishReason"]) == (
        error["messageId"],
        error["code"],
        error["finishReason"],
    )


async def test_a_json_answer_of_a_failed_run_is_200_with_what_was_written() -> None:
    found = CitationsFound(citations=[citation()])
    failing = scripted_work(found, TokenDelta(text="It is"), ModelUnavailable("broke off"))
    app = FakeApp(failing)
    conversation = await app.conversation()

    async with app.client() as ann:
        answer = await ann.post(path(conversation), json={"question": "Where?"})

    assert answer.status_code == 200
    body = answer.json()
    assert body["content"] == "It is"
    assert (body["finishReason"], body["code"]) == ("error", "LLM_UNAVAILABLE")
    assert body["model"] is None
    assert [one["filePath"] for one in body["citations"]] == ["src/cart.py"]


async def test_an_unforeseen_failure_says_nothing_of_its_text() -> None:
    app = FakeApp(scripted_work(TokenDelta(text="It "), ValueError("the secret question")))
    conversation = await app.conversation()

    async with app.client() as ann:
        _, events = await streamed(ann, conversation)

    assert events[-1].json()["code"] == "INTERNAL_ERROR"
    assert "secret" not in events[-1].data


async def test_silence_sends_pings_that_no_reader_takes_for_events() -> None:
    go = asyncio.Event()
    app = FakeApp(
        scripted_work(StatusChanged(phase=Phase.RETRIEVING), go.wait, TokenDelta(text="Here.")),
        lambda services: replace(services, ping_s=0.01),
    )
    conversation = await app.conversation()
    reader, pings = EventSourceReader(), 0
    exchange = Exchange(app, conversation)

    async def pinged() -> None:
        nonlocal pings
        async for piece in exchange.pieces():
            pings += piece == b": ping\n\n"
            events.extend(reader.feed(piece))
            if pings == 3:
                go.set()

    events: list[Any] = []
    await pinged()

    assert pings >= 3
    assert [event.type for event in events] == ["status", "citations", "token", "done"]


async def test_a_client_that_leaves_a_stream_stops_its_run() -> None:
    never = asyncio.Event()
    app = FakeApp(scripted_work(TokenDelta(text="It is"), never.wait))
    conversation = await app.conversation()
    exchange = Exchange(app, conversation)

    async for piece in exchange.pieces():
        if b"It is" in piece:
            exchange.leave()

    kept = await app.kept(conversation, messages=2)
    assert [message.content for message in kept] == ["Where?", "It is"]
    assert kept[1].finish_reason == "disconnected"


async def test_a_client_that_leaves_while_a_frame_is_sent_stops_its_run() -> None:
    never = asyncio.Event()
    app = FakeApp(scripted_work(TokenDelta(text="It is"), never.wait))
    conversation = await app.conversation()
    exchange = Exchange(app, conversation, stuck_on=b"It is")

    async for _ in exchange.pieces():
        pass

    kept = await app.kept(conversation, messages=2)
    assert [message.finish_reason for message in kept] == [None, "disconnected"]


async def test_a_client_that_leaves_before_a_json_answer_stops_its_run() -> None:
    never = asyncio.Event()
    app = FakeApp(scripted_work(TokenDelta(text="It is"), never.wait))
    conversation = await app.conversation()
    exchange = Exchange(app, conversation, accept="application/json")

    exchange.leave()
    async for _ in exchange.pieces():
        pass

    kept = await app.kept(conversation, messages=2)
    assert [message.finish_reason for message in kept] == [None, "disconnected"]


async def test_the_turn_is_started_with_what_the_body_says() -> None:
    turns: list[TurnInput] = []
    app = FakeApp()
    app.work = recorded(turns, app.work)
    project = await app.project(reply_language="pt-BR")
    conversation = await app.conversation(project=project)
    body = {
        "question": "  Where?  ",
        "style": {"detail": "brief", "format": "bullets"},
        "pathPrefix": "src/",
        "multitaskStrategy": "reject",
        "onDisconnect": "continue",
    }

    async with app.client() as ann:
        answer = await ann.post(path(conversation), json=body)

    assert answer.json()["degraded"] == ["grade"]
    (turn,) = turns
    assert turn.question == "Where?"
    assert (turn.style.detail, turn.style.familiarity, turn.style.format) == (
        "brief",
        None,
        "bullets",
    )
    assert (turn.path_prefix, turn.reply_language) == ("src/", "pt-BR")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"question": ""},
        {"question": " \n "},
        {"question": "x" * 4_001},
        {"question": "\u0000"},
        {"question": 7},
        {"question": "Where?", "multitaskStrategy": "rollback"},
        {"question": "Where?", "multitask_strategy": "reject"},
        {"question": "Where?", "onDisconnect": "wait"},
        {"question": "Where?", "style": {"detail": "long"}},
        {"question": "Where?", "style": {"mood": "calm"}},
        {"question": "Where?", "path_prefix": "src/"},
        {"question": "Where?", "proposeTarget": {"kind": "checklist", "id": "1"}},
    ],
)
async def test_a_malformed_question_is_422_and_starts_nothing(body: dict[str, object]) -> None:
    app = FakeApp()
    conversation = await app.conversation()

    async with app.client() as ann:
        answers = [
            await ann.post(path(conversation), json=body, headers=headers)
            for headers in ({}, STREAM)
        ]
        kept = (await ann.get(path(conversation))).json()["items"]

    for answer in answers:
        assert answer.status_code == 422
        assert answer.json()["detail"]["code"] == "VALIDATION_ERROR"
    assert kept == []


@pytest.mark.parametrize("field", ["question", "pathPrefix"])
async def test_half_a_surrogate_pair_is_422(field: str) -> None:
    app = FakeApp()
    conversation = await app.conversation()

    body = json.dumps({"question": "Where?", field: "\ud83d"}).encode()

    async with app.client(headers={"Content-Type": "application/json"}) as ann:
        answer = await ann.post(path(conversation), content=body)

    assert answer.status_code == 422
    assert list(answer.json()["detail"]["fields"]) == [field]


async def test_a_question_of_exactly_the_most_characters_is_answered() -> None:
    app = FakeApp()
    conversation = await app.conversation()

    async with app.client() as ann:
        answer = await ann.post(path(conversation), json={"question": "é" * 4_000})

    assert answer.status_code == 200


async def test_a_project_without_a_generation_is_409() -> None:
    app = FakeApp()
    conversation = await app.conversation(project=await app.project(ready=False))

    async with app.client(headers=STREAM) as ann:
        answer = await ann.post(path(conversation), json={"question": "Where?"})

    assert answer.status_code == 409
    assert answer.json()["detail"]["code"] == "PROJECT_NOT_READY"


async def test_vectors_of_another_model_are_409() -> None:
    app = FakeApp()
    conversation = await app.conversation(project=await app.project(signature="other:model:3"))

    async with app.client(headers=STREAM) as ann:
        answer = await ann.post(path(conversation), json={"question": "Where?"})

    assert answer.status_code == 409
    assert answer.json()["detail"]["code"] == "EMBEDDING_MODEL_CHANGED"


async def test_a_lexical_project_is_answered_whatever_the_embedder() -> None:
    app = FakeApp()
    conversation = await app.conversation(project=await app.project(signature=None))

    async with app.client() as ann:
        answer = await ann.post(path(conversation), json={"question": "Where?"})

    assert answer.status_code == 200


async def test_a_busy_thread_is_409_and_names_its_run() -> None:
    go = asyncio.Event()
    app = FakeApp(scripted_work(TokenDelta(text="It is"), go.wait))
    conversation = await app.conversation()
    exchange = Exchange(app, conversation)
    answer: httpx.Response | None = None

    async for piece in exchange.pieces():
        if b"It is" in piece:
            async with app.client(headers=STREAM) as ann:
                answer = await ann.post(path(conversation), json={"question": "And?"})
            go.set()

    assert answer is not None
    assert answer.status_code == 409
    assert answer.json()["detail"]["code"] == "THREAD_BUSY"
    assert answer.json()["detail"]["runId"] == exchange.headers["ibid-run-id"]


async def test_a_stopping_server_is_503_and_says_when_to_come_back() -> None:
    app = FakeApp()
    conversation = await app.conversation()
    await app.engine.drain(timeout_s=1)

    async with app.client(headers=STREAM) as ann:
        answer = await ann.post(path(conversation), json={"question": "Where?"})

    assert answer.status_code == 503
    assert answer.json()["detail"]["code"] == "SHUTTING_DOWN"
    assert int(answer.headers["retry-after"]) > 0


async def test_a_store_that_is_away_before_the_first_byte_is_503() -> None:
    app = FakeApp()
    conversation = await app.conversation()

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("the store gave no answer")

    app.records.runs.begin = away  # type: ignore[assignment, method-assign] # a fault in one call
    async with app.client(headers=STREAM) as ann:
        answer = await ann.post(path(conversation), json={"question": "Where?"})

    assert answer.status_code == 503
    assert answer.json()["detail"]["code"] == "STORE_UNAVAILABLE"


async def test_a_conversation_whose_asker_left_the_project_is_404() -> None:
    app = FakeApp()
    project = await app.project(members={BOB.subject: Role.VIEWER})
    conversation = await app.conversation(BOB, await app.project(ANN))

    async with app.client(BOB) as bob:
        answer = await bob.post(path(conversation), json={"question": "Where?"})

    assert project.members[BOB.subject] is Role.VIEWER
    assert answer.status_code == 404
    assert answer.json()["detail"]["code"] == "PROJECT_NOT_FOUND"


async def test_a_run_is_read_by_its_asker() -> None:
    app = FakeApp()
    conversation = await app.conversation()
    async with app.client() as ann:
        answer = await ann.post(path(conversation), json={"question": "Where?"})

        run = (await ann.get(answer.headers["location"])).json()

    assert run["runId"] == answer.json()["runId"]
    assert run["state"] == "completed"
    assert run["conversationId"] == conversation.id
    assert run["messageId"] == answer.json()["messageId"]
    assert run["createdAt"] == run["endedAt"]


class Exchange:
    """One question asked of the application by hand, so that its client can leave."""

    def __init__(
        self,
        app: FakeApp,
        conversation: Conversation,
        *,
        accept: str = "text/event-stream",
        stuck_on: bytes | None = None,
    ) -> None:
        self.headers: dict[str, str] = {}
        self._app = app
        self._conversation = conversation
        self._accept = accept
        self._stuck_on = stuck_on
        self._left = asyncio.Event()
        self._asked = False
        self._has_ended = False
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()

    def leave(self) -> None:
        self._left.set()

    async def pieces(self) -> AsyncIterator[bytes]:
        serving = asyncio.create_task(self._serve())
        while (piece := await self._pieces.get()) is not None:
            yield piece
        await serving

    async def _serve(self) -> None:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "path": path(self._conversation),
            "raw_path": path(self._conversation).encode(),
            "root_path": "",
            "scheme": "http",
            "query_string": b"",
            "headers": [
                (b"accept", self._accept.encode()),
                (b"content-type", b"application/json"),
                (b"ibid-dev-principal", b"acme/ann"),
            ],
            "client": ("test", 1),
            "server": ("ibid.test", 80),
        }
        try:
            await self._app.app(scope, self._receive, self._send)
        finally:
            self._pieces.put_nowait(None)

    async def _receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            body = json.dumps({"question": "Where?"}).encode()
            return {"type": "http.request", "body": body, "more_body": False}
        if not self._has_ended:
            self._has_ended = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        elif body := message.get("body"):
            self._pieces.put_nowait(body)
            if self._stuck_on is not None and self._stuck_on in body:
                self.leave()
                await asyncio.Event().wait()
