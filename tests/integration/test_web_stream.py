"""The stream over a real socket, read by curl, by httpx-sse and as a browser's EventSource does.

Every event holds signs of two to four UTF-8 bytes, and the bytes come cut at every place.
"""

import asyncio
import json
import shutil
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest
import uvicorn
from httpx_sse import aconnect_sse

from ibid.domain.conversations import Conversation
from ibid.domain.events import TokenDelta
from tests.fakes.app import ANN, FakeApp, scripted_turn, scripted_work
from tests.fakes.event_source import EventSourceReader

PIECES = ("«é» ", "日本語 \r\n", "😀\u2028", "\n\ndata: no\n\n", "[1].")
PRINCIPAL = {"Ibid-Dev-Principal": f"{ANN.tenant}/{ANN.subject}"}
STREAM = {**PRINCIPAL, "Accept": "text/event-stream"}
CURL = shutil.which("curl")
QUESTION = json.dumps({"question": "Where is it?"}).encode()


@dataclass(frozen=True, kw_only=True)
class Served:
    """An application that listens."""

    app: FakeApp
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def path(self, conversation: Conversation) -> str:
        return f"/conversations/{conversation.id}/messages"


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    app = FakeApp(scripted_turn(*PIECES))
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    server = uvicorn.Server(uvicorn.Config(app.app, log_config=None, lifespan="off"))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    yield Served(app=app, port=listening.getsockname()[1])
    server.should_exit = True
    await serving
    listening.close()


def assert_whole(events: list[tuple[str, str, str]]) -> None:
    names = [name for name, _, _ in events]
    assert names == ["status", "citations", *["token"] * len(PIECES), "done"]
    assert [number for _, _, number in events] == [str(n) for n in range(1, len(events) + 1)]
    texts = [json.loads(data)["text"] for name, data, _ in events if name == "token"]
    assert texts == list(PIECES)


async def raw_body(served: Served, conversation: Conversation) -> bytes:
    async with httpx.AsyncClient(base_url=served.url, headers=STREAM) as client:
        path = served.path(conversation)
        answer = await client.post(path, json={"question": "Where is it?"})
    return answer.content


@pytest.mark.skipif(CURL is None, reason="this machine has no curl")
async def test_curl_reads_the_stream(served: Served) -> None:
    conversation = await served.app.conversation()
    headers = [part for name, value in STREAM.items() for part in ("-H", f"{name}: {value}")]

    process = await asyncio.create_subprocess_exec(
        str(CURL),
        "-sN",
        *headers,
        *("-H", "Content-Type: application/json", "--data-binary", QUESTION.decode()),
        served.url + served.path(conversation),
        stdout=asyncio.subprocess.PIPE,
    )
    body, _ = await process.communicate()

    read = EventSourceReader().feed(body)
    assert_whole([(event.type, event.data, event.last_event_id) for event in read])


async def test_httpx_sse_reads_the_stream(served: Served) -> None:
    conversation = await served.app.conversation()

    async with (
        httpx.AsyncClient(base_url=served.url, headers=PRINCIPAL) as client,
        aconnect_sse(
            client, "POST", served.path(conversation), json={"question": "Where is it?"}
        ) as source,
    ):
        read = [event async for event in source.aiter_sse()]

    assert_whole([(event.event, event.data, event.id) for event in read])


async def test_a_browser_reads_the_stream_wherever_its_bytes_are_cut(served: Served) -> None:
    body = await raw_body(served, await served.app.conversation())

    for cut in range(len(body) + 1):
        read = EventSourceReader().feed_all([body[:cut], body[cut:]])
        assert_whole([(event.type, event.data, event.last_event_id) for event in read])


async def test_a_browser_reads_the_stream_byte_by_byte(served: Served) -> None:
    body = await raw_body(served, await served.app.conversation())

    read = EventSourceReader().feed_all(bytes([byte]) for byte in body)

    assert_whole([(event.type, event.data, event.last_event_id) for event in read])


async def test_each_event_leaves_the_server_as_it_comes(served: Served) -> None:
    go = asyncio.Event()
    served.app.work = scripted_work(TokenDelta(text="It is"), go.wait, TokenDelta(text=" here."))
    conversation = await served.app.conversation()
    reader, read = EventSourceReader(), []

    async with (
        httpx.AsyncClient(base_url=served.url, headers=STREAM) as client,
        client.stream(
            "POST", served.path(conversation), json={"question": "Where is it?"}
        ) as answer,
    ):
        async for piece in answer.aiter_raw():
            read += reader.feed(piece)
            if read and read[-1].data == '{"text":"It is"}':
                go.set()  # only the token that has come lets the next one be made

    assert [event.type for event in read] == ["citations", "token", "token", "done"]


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
async def test_a_client_that_hangs_up_stops_its_run(served: Served, accept: str) -> None:
    begun = asyncio.Event()

    async def never() -> None:
        begun.set()
        await asyncio.Event().wait()

    served.app.work = scripted_work(TokenDelta(text="It is"), never)
    conversation = await served.app.conversation()
    head = (
        f"POST {served.path(conversation)} HTTP/1.1\r\nHost: ibid.test\r\n"
        f"Ibid-Dev-Principal: acme/ann\r\nAccept: {accept}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(QUESTION)}\r\n\r\n"
    )
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)

    writer.write(head.encode() + QUESTION)
    await begun.wait()
    writer.close()
    await writer.wait_closed()

    kept = await served.app.kept(conversation, messages=2)
    assert kept[1].finish_reason == "disconnected"


async def test_a_run_that_is_to_continue_outlives_its_client(served: Served) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        begun.set()
        await go.wait()

    served.app.work = scripted_work(TokenDelta(text="It is"), wait, TokenDelta(text=" here."))
    conversation = await served.app.conversation()
    body = json.dumps({"question": "Where?", "onDisconnect": "continue"}).encode()
    async with httpx.AsyncClient(base_url=served.url, headers=STREAM) as client:
        asking = asyncio.create_task(
            client.post(
                served.path(conversation),
                content=body,
                headers={"Content-Type": "application/json"},
            )
        )
        await begun.wait()

        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    go.set()

    kept = await served.app.kept(conversation, messages=2)
    assert (kept[1].content, kept[1].finish_reason) == ("It is here.", "stop")
