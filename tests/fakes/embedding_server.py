"""Stands in for OpenAI's `/v1/embeddings` and Bedrock's `InvokeModel`, over a real socket.

Vectors are hashed from the texts, and not of unit length. Faults are scripted: each request takes
the next one of `faults`, and once there is none it is answered.
"""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote

import uvicorn

from tests.fakes.embedder import HashingEmbedder

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
FaultKind = Literal[
    "status", "cut", "garbage", "wrong_count", "wrong_width", "not_numbers", "zero", "stall"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What one request meets; `status` and the rest of the fields are for the first kind only."""

    kind: FaultKind = "status"
    status: int = 500
    message: str = "scripted"
    code: str = "InternalServerException"
    retry_after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class EmbeddingServer:
    """The ASGI application; attributes may be changed between requests.

    Attributes:
        width: Of the vectors, unless a Titan request asks for another.
        faults: Met by the next requests, in order.
        received: Every request that was read whole.
        max_characters: A longer text is refused in the provider's words, or None.
        max_texts: More in an OpenAI request are refused, or None.
        reversed_order: OpenAI's reply lists the vectors last first.
        most_at_once: The most requests that were under way together.
        stalled: Set once a request stalls.
    """

    def __init__(self, *, width: int = 32) -> None:
        self.width = width
        self.faults: list[Fault] = []
        self.received: list[Received] = []
        self.max_characters: int | None = None
        self.max_texts: int | None = None
        self.reversed_order = False
        self.most_at_once = 0
        self.stalled = threading.Event()
        self._at_once = 0
        self._stopping = False

    def stop(self) -> None:
        """Let stalled requests go."""
        self._stopping = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        request = Received(path=unquote(scope["path"]), headers=headers, body=json.loads(body))
        self.received.append(request)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await self._answer(request, receive, send)
        finally:
            self._at_once -= 1

    async def _answer(self, request: Received, receive: Receive, send: Send) -> None:
        fault = self.faults.pop(0) if self.faults else None
        bedrock = request.path.startswith("/model/")
        texts = _texts(request.body)
        if fault is None:
            fault = self._too_much(texts, bedrock=bedrock)
        if fault is not None and fault.kind == "stall":
            await self._until_gone(receive)
            return
        if fault is not None and fault.kind == "status":
            await _respond(send, _error(fault, bedrock=bedrock), fault=fault)
            return
        rows = [self._vector(text, request.body) for text in texts]
        reply = self._bedrock(request, rows, fault) if bedrock else self._openai(rows, fault)
        payload = json.dumps(reply).encode()
        if fault is not None and fault.kind == "garbage":
            payload = b"<html>not JSON</html>"
        await _respond(send, payload, cut=fault is not None and fault.kind == "cut")

    def _too_much(self, texts: list[str], *, bedrock: bool) -> Fault | None:
        if self.max_texts is not None and len(texts) > self.max_texts:
            return Fault(status=422, message=f"batch size > maximum allowed {self.max_texts}")
        if self.max_characters is not None and max(map(len, texts)) > self.max_characters:
            message = "Too many input tokens" if bedrock else "maximum context length exceeded"
            return Fault(status=400, message=message, code="ValidationException")
        return None

    async def _until_gone(self, receive: Receive) -> None:
        self.stalled.set()
        gone = asyncio.ensure_future(receive())
        while not self._stopping and not gone.done():
            await asyncio.wait([gone], timeout=0.01)
        gone.cancel()

    def _vector(self, text: str, body: dict[str, Any]) -> list[float]:
        width = body.get("dimensions") or body.get("output_dimension") or self.width
        seed = f"{body.get('input_type', '')} {text}"
        return [3.0 * value for value in HashingEmbedder(width=width).vector(seed)]

    def _openai(self, rows: list[list[float]], fault: Fault | None) -> dict[str, Any]:
        rows = _damaged(rows, fault)
        items = [
            {"object": "embedding", "index": index, "embedding": row}
            for index, row in enumerate(rows)
        ]
        if self.reversed_order:
            items.reverse()
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "data": items, "model": "any", "usage": usage}

    def _bedrock(
        self, request: Received, rows: list[list[float]], fault: Fault | None
    ) -> dict[str, Any]:
        rows = _damaged(rows, fault)
        if "inputText" in request.body:
            row = rows[0] if rows else None
            return {"embedding": row, "inputTextTokenCount": 1}
        if "output_dimension" in request.body:
            return {"embeddings": {"float": rows}, "response_type": "embeddings_by_type"}
        return {"embeddings": rows, "response_type": "embeddings_floats"}


def _texts(body: dict[str, Any]) -> list[str]:
    texts: list[str] = body.get("input") or body.get("texts") or [body.get("inputText", "")]
    if not all(texts):
        raise ValueError("providers refuse an empty text")
    return texts


def _damaged(rows: list[list[float]], fault: Fault | None) -> list[Any]:
    match fault.kind if fault else None:
        case "wrong_count":
            return rows[:-1]
        case "wrong_width":
            return [row[:-1] for row in rows]
        case "not_numbers":
            return [["one"] * len(row) for row in rows]
        case "zero":
            return [[0.0] * len(row) for row in rows]
        case _:
            return rows


def _error(fault: Fault, *, bedrock: bool) -> bytes:
    if bedrock:
        return json.dumps({"message": fault.message}).encode()
    return json.dumps({"error": {"message": fault.message, "type": "error"}}).encode()


async def _respond(
    send: Send, payload: bytes, *, fault: Fault | None = None, cut: bool = False
) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(payload)).encode()),
    ]
    if fault is not None:
        headers.append((b"x-amzn-errortype", fault.code.encode()))
        if fault.retry_after is not None:
            headers.append((b"retry-after", fault.retry_after.encode()))
    status = fault.status if fault is not None else 200
    await send({"type": "http.response.start", "status": status, "headers": headers})
    body = payload[: len(payload) // 2] if cut else payload
    await send({"type": "http.response.body", "body": body})


@contextlib.contextmanager
def serving(server: EmbeddingServer) -> Iterator[str]:
    """Serve on a free port of this machine; gives the URL without a path."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    web = uvicorn.Server(
        uvicorn.Config(server, lifespan="off", ws="none", log_level="critical", loop="asyncio")
    )
    thread = threading.Thread(target=web.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while not web.started and thread.is_alive() and time.monotonic() < deadline:
        thread.join(0.005)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop()
        web.should_exit = True
        thread.join(20)
        listener.close()
