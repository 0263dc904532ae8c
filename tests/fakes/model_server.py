"""A stand-in for language model servers that speaks OpenAI's and Bedrock's wire forms.

    with model_server() as server:
        server.replies.append(Reply(["Hello ", "world."]))
        server.replies.append(Reply(fault="cut", after=1))
        OpenAiModel("m", base_url=server.openai_url, ...)
        BedrockModel("m", endpoint_url=server.url, ...)

Each request takes the next reply; the last one stays. It runs in a thread of its own on an
ephemeral port of the loopback interface.
"""

import asyncio
import json
import socket
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote

import uvicorn

from tests.fakes.event_stream_frames import event_frame, exception_frame

Fault = Literal[
    "cut",  # the connection goes in the middle of the next frame
    "cut_character",  # it goes within a character's bytes
    "eof",  # the body ends well, but nothing said that the reply had ended
    "eof_character",  # the same, within a character's bytes
    "garbage",  # a frame that is not of the wire form
    "bad_crc",  # a frame whose sum is wrong; garbage in OpenAI's form
    "stall",  # nothing more comes; ends when the client goes
    "error",  # an event that reports an error
    "no_text",  # a chunk whose text is none
    "no_chunk",  # an event that is no object
]
Stop = Literal["stop", "length", "filter", "refusal", "unheard_of"]
Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]


class Aborted(Exception):
    """Makes uvicorn close the connection under an unfinished body."""


@dataclass(frozen=True)
class Reply:
    """What one request gets.

    Attributes:
        pieces: Of the text, a frame each; joined where the request wants no stream.
        after: Pieces before the fault.
        status: Other than 200: an error, with `headers` and a body that quotes the prompt.
        reasoning: Frames of thoughts before the text.
        cut_after_the_end: The connection goes right after the reason that it ended for.
        body: In place of a whole reply's own.
        silent: Not even the headers come before `ModelServer.go_on` is set.
    """

    pieces: Sequence[str] = ("It is ", "in the first ", "excerpt [1].")
    stop: Stop = "stop"
    fault: Fault | None = None
    after: int = 0
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    reasoning: Sequence[str] = ()
    usage: bool = True
    cut_after_the_end: bool = False
    body: dict[str, Any] | None = None
    silent: bool = False


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class ModelServer:
    """What a test sees of the stand-in.

    Attributes:
        replies: Taken in order; the last one stays. Empty: every request gets `Reply()`.
        rejects: Names of body fields, such as `stream_options`, or values of
            `response_format.type`, that get a 400 naming them.
        documents: JSON answers of other paths, such as `/v1/models`; what is not here is 404.
        disconnects: Clients that went away before their reply ended.
        open_requests: Requests under way.
        go_on: Lets silent replies speak.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.openai_url = f"{self.url}/v1"
        self.replies: deque[Reply] = deque()
        self.rejects: set[str] = set()
        self.documents: dict[str, Any] = {}
        self.asked: list[Asked] = []
        self.disconnects = 0
        self.open_requests = 0
        self.go_on = threading.Event()

    def chats(self) -> list[Asked]:
        """The requests for a reply, in order."""
        return [each for each in self.asked if _is_chat(each.path)]

    async def app(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self.open_requests += 1
        try:
            await self._serve(scope, receive, send)
        finally:
            self.open_requests -= 1

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        raw = b""
        more = True
        while more:
            message = await receive()
            raw += message.get("body", b"")
            more = message.get("more_body", False)
        asked = Asked(
            path=unquote(scope["path"]),
            headers={name.decode(): value.decode() for name, value in scope["headers"]},
            body=json.loads(raw) if raw else {},
        )
        self.asked.append(asked)
        if not _is_chat(asked.path):
            document = self.documents.get(asked.path)
            await _json(send, 404 if document is None else 200, document or {"error": "none"})
            return
        rejected = self._rejected(asked.body)
        if rejected:
            error = {"message": f"Unsupported: '{rejected}'. You sent {raw.decode()}"}
            await _json(send, 400, {"error": error | {"param": rejected}})
            return
        reply = self._next()
        if reply.silent:
            while not self.go_on.is_set():  # noqa: ASYNC110 - set from another thread
                await asyncio.sleep(0.005)
        if reply.status != 200:
            error = {"message": f"No. You sent {asked.body['messages']}", "type": "ServerError"}
            body = {"error": error, "message": error["message"]}
            await _json(send, reply.status, body, reply.headers)
        elif asked.path.endswith("/converse"):
            await self._whole(reply, _converse(reply), receive, send)
        elif asked.path.endswith("/converse-stream"):
            await self._stream(reply, _BedrockForm(), receive, send)
        elif asked.body.get("stream"):
            wants_usage = bool(asked.body.get("stream_options", {}).get("include_usage"))
            await self._stream(reply, _OpenAiForm(wants_usage), receive, send)
        else:
            await self._whole(reply, _completion(reply), receive, send)

    def _next(self) -> Reply:
        if len(self.replies) > 1:
            return self.replies.popleft()
        return self.replies[0] if self.replies else Reply()

    def _rejected(self, body: dict[str, Any]) -> str:
        kind = body.get("response_format", {}).get("type")
        if kind in self.rejects:
            return "response_format"
        return next((name for name in sorted(self.rejects) if name in body), "")

    async def _whole(
        self, reply: Reply, body: dict[str, Any], receive: Receive, send: Send
    ) -> None:
        if reply.fault == "stall":
            await self._until_gone(receive)
        elif reply.fault is None:
            await _json(send, 200, body if reply.body is None else reply.body)
        else:
            await _start(send, "application/json")
            half = json.dumps(body).encode()[:20]
            cut = reply.fault == "cut"
            await send({"type": "http.response.body", "body": half, "more_body": cut})
            if cut:
                raise Aborted

    async def _stream(
        self, reply: Reply, form: "_OpenAiForm | _BedrockForm", receive: Receive, send: Send
    ) -> None:
        async def put(frame: bytes) -> None:
            await send({"type": "http.response.body", "body": frame, "more_body": True})
            await asyncio.sleep(0)

        await _start(send, form.media_type)
        for frame in form.opening(reply):
            await put(frame)
        said = reply.pieces if reply.fault is None else reply.pieces[: reply.after]
        for piece in said:
            await put(form.piece(piece))
        if reply.fault is None:
            for frame in form.ending(reply):
                await put(frame)
            if reply.cut_after_the_end:
                raise Aborted
        elif reply.fault == "stall":
            await self._until_gone(receive)
            return
        else:
            await put(form.faulty(reply.fault))
            if reply.fault.startswith("cut"):
                raise Aborted
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.disconnects += 1


class _OpenAiForm:
    media_type = "text/event-stream"

    def __init__(self, wants_usage: bool) -> None:  # noqa: FBT001 - private, one caller
        self._wants_usage = wants_usage

    def opening(self, reply: Reply) -> Iterator[bytes]:
        yield b": a comment\n\n"
        yield self._chunk({"role": "assistant", "content": ""})
        for thought in reply.reasoning:
            yield self._chunk({"reasoning_content": thought})

    def piece(self, text: str) -> bytes:
        return self._chunk({"content": text})

    def ending(self, reply: Reply) -> Iterator[bytes]:
        if reply.stop == "refusal":
            yield self._chunk({"refusal": "I can't."})
        reason = {"filter": "content_filter", "refusal": "stop"}.get(reply.stop, reply.stop)
        yield self._chunk({}, reason)
        if reply.cut_after_the_end:
            return
        if reply.usage and self._wants_usage:
            usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
            yield _sse(_CHUNK | {"choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    def faulty(self, fault: Fault) -> bytes:
        whole = self.piece("a café")
        match fault:
            case "cut":
                return whole[: len(whole) // 2]
            case "cut_character" | "eof_character":
                return whole[: whole.index("é".encode()) + 1]
            case "garbage" | "bad_crc":
                return b'data: {"choices": [{"delta": oops}]}\n\n'
            case "error":
                return _sse({"error": {"message": "overloaded: SECRET-QUESTION", "code": 529}})
            case "no_chunk":
                return b"data: []\n\n"
            case "no_text":
                return _sse(_CHUNK | {"choices": [{"index": 0, "delta": {"content": 5}}]})
            case _:
                return b""

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        return _sse(_CHUNK | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


class _BedrockForm:
    media_type = "application/vnd.amazon.eventstream"

    def opening(self, reply: Reply) -> Iterator[bytes]:
        yield event_frame("messageStart", {"role": "assistant"})
        for thought in reply.reasoning:
            delta = {"reasoningContent": {"text": thought}}
            yield event_frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": delta})

    def piece(self, text: str) -> bytes:
        body = {"contentBlockIndex": 0, "delta": {"text": text}}
        return event_frame("contentBlockDelta", body)

    def ending(self, reply: Reply) -> Iterator[bytes]:
        yield event_frame("contentBlockStop", {"contentBlockIndex": 0})
        yield event_frame("messageStop", {"stopReason": _STOP_REASONS[reply.stop]})
        if reply.usage:
            usage = {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}
            yield event_frame("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})

    def faulty(self, fault: Fault) -> bytes:
        whole = self.piece("a café")
        match fault:
            case "cut" | "cut_character" | "eof_character":
                return whole[: whole.index("é".encode()) + 1]
            case "garbage" | "no_text" | "no_chunk":
                return event_frame("contentBlockDelta", b"{oops")
            case "bad_crc":
                return whole[:-1] + bytes([whole[-1] ^ 1])
            case "error":
                message = {"message": "overloaded: SECRET-QUESTION"}
                return exception_frame("throttlingException", message)
            case _:
                return b""


_CHUNK: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "stand-in",
}
_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "filter": "content_filtered",
    "refusal": "guardrail_intervened",
    "unheard_of": "unheard_of",
}


def _is_chat(path: str) -> bool:
    return path.endswith(("/chat/completions", "/converse", "/converse-stream"))


def _completion(reply: Reply) -> dict[str, Any]:
    text = "".join(reply.pieces)
    refused = reply.stop == "refusal"
    message = {"role": "assistant", "content": None if refused else text}
    if refused:
        message["refusal"] = "I can't."
    reason = {"filter": "content_filter", "refusal": "stop"}.get(reply.stop, reply.stop)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "stand-in",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
    }


def _converse(reply: Reply) -> dict[str, Any]:
    text = "".join(reply.pieces)
    try:
        decision = {"toolUseId": "t1", "name": "decide", "input": json.loads(text)}
        content: list[dict[str, Any]] = [{"toolUse": decision}]
    except ValueError:
        content = [{"text": text}]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": _STOP_REASONS[reply.stop],
        "usage": {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10},
        "metrics": {"latencyMs": 1},
    }


def _sse(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


async def _start(
    send: Send, media_type: str, status: int = 200, headers: dict[str, str] | None = None
) -> None:
    listed = {"content-type": media_type} | (headers or {})
    raw = [(name.lower().encode(), value.encode()) for name, value in listed.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})


async def _json(
    send: Send, status: int, body: dict[str, Any], headers: dict[str, str] | None = None
) -> None:
    await _start(send, "application/json", status, headers)
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """Serve on an ephemeral port until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = ModelServer(listener.getsockname()[1])
    uvicorn_server = uvicorn.Server(
        uvicorn.Config(
            server.app,
            log_config=None,
            log_level="critical",
            lifespan="off",
            interface="asgi3",  # a bound method is not told for one
            loop="asyncio",
            timeout_graceful_shutdown=1,
        )
    )
    thread = threading.Thread(
        target=uvicorn_server.run, kwargs={"sockets": [listener]}, daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        uvicorn_server.should_exit = True
        thread.join()
        listener.close()
