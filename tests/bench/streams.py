"""The whole stack under many streams, beside the floor and a peer, in one run.

The floor streams five plain LangGraph nodes from FastAPI and keeps nothing. Ibid does its own work
(classify, search, grade, generate, run and messages kept) with a scripted model of as many tokens.
All servers are processes of their own on loopback; the client is this one.
"""

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

TOKENS = 200
PEER = "langgraph-cli[inmem]==0.4.40"
START_S = 120.0
ROUNDS = {1: 20, 16: 4, 64: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One stream as the client saw it, in seconds from the request."""

    first_event_s: float
    first_token_s: float
    whole_s: float
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Medians over the streams of one server at one number of streams."""

    server: str
    streams: int
    first_event_ms: float
    first_token_ms: float
    whole_ms: float
    tokens_per_s: float


Opener = Callable[[httpx.AsyncClient], Awaitable[httpx.Request]]


def free_port() -> int:
    """Take a port that is free now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@asynccontextmanager
async def serving(
    command: list[str], port: int, health: str, *, cwd: Path | None = None, **env: str
) -> AsyncIterator[str]:
    """Run a server until it answers its health path; end it afterwards."""
    base = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=os.environ | env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + START_S
        async with httpx.AsyncClient() as client:
            while True:
                if process.poll() is not None:
                    raise RuntimeError(f"{command[1]} ended with {process.returncode}")
                try:
                    if (await client.get(base + health)).status_code == httpx.codes.OK:
                        break
                except httpx.TransportError:
                    pass
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{command[1]} did not start")
                await asyncio.sleep(0.1)
        yield base
    finally:
        process.terminate()
        process.wait(timeout=20)


async def read(client: httpx.AsyncClient, request: httpx.Request, token: str, mark: str) -> Stream:
    """Read one stream to its end; a token is an event named `token` whose data hold `mark`."""
    start = time.perf_counter()
    first_event = first_token = 0.0
    tokens = 0
    name = ""
    response = await client.send(request, stream=True)
    try:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if line.startswith("event:"):
                name = line[6:].strip()
                first_event = first_event or time.perf_counter() - start
            elif line.startswith("data:") and name == token and mark in line:
                tokens += 1
                first_token = first_token or time.perf_counter() - start
    finally:
        await response.aclose()
    return Stream(
        first_event_s=first_event,
        first_token_s=first_token,
        whole_s=time.perf_counter() - start,
        tokens=tokens,
    )


async def drive(server: str, open_one: Opener, token: str, streams: int) -> Row:
    """Drive some streams at once, some rounds; every stream must have all its tokens."""
    limits = httpx.Limits(max_connections=500)
    async with httpx.AsyncClient(timeout=300, limits=limits) as client:
        await read(client, await open_one(client), token, "tok")
        rows: list[Stream] = []
        busy = 0.0
        for _ in range(ROUNDS[streams]):
            requests = [await open_one(client) for _ in range(streams)]
            start = time.perf_counter()
            rows += await asyncio.gather(*(read(client, r, token, "tok") for r in requests))
            busy += time.perf_counter() - start
    # LangGraph's own message stream may repeat the whole answer as a last message
    most = TOKENS if server == "ibid" else TOKENS + 1
    lost = [row.tokens for row in rows if not TOKENS <= row.tokens <= most]
    if lost:
        raise RuntimeError(f"{server} at {streams} streams lost tokens: {lost[:5]}")

    def median_ms(values: list[float]) -> float:
        return statistics.median(values) * 1_000

    return Row(
        server=server,
        streams=streams,
        first_event_ms=median_ms([row.first_event_s for row in rows]),
        first_token_ms=median_ms([row.first_token_s for row in rows]),
        whole_ms=median_ms([row.whole_s for row in rows]),
        tokens_per_s=sum(row.tokens for row in rows) / busy,
    )


@asynccontextmanager
async def floor(peers: Path) -> AsyncIterator[tuple[str, Opener, str]]:
    """Serve the floor: FastAPI and the graph, nothing kept."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "plain:app", "--port", str(port)]
    command += ["--log-level", "warning", "--no-access-log"]
    async with serving(command, port, "/ok", cwd=peers, TOKENS=str(TOKENS), GAP="0") as base:

        async def open_one(client: httpx.AsyncClient) -> httpx.Request:
            return client.build_request("POST", base + "/stream")

        yield "floor", open_one, "token"


@asynccontextmanager
async def ibid(data: Path) -> AsyncIterator[tuple[str, Opener, str]]:
    """Serve Ibid with the scripted model; each stream has a conversation of its own."""
    port = free_port()
    command = [sys.executable, "-m", "tests.bench.scripted_server", str(port), str(data)]
    async with serving(command, port, "/healthz", TOKENS=str(TOKENS)) as base:
        async with httpx.AsyncClient() as client:
            projects = (await client.get(base + "/projects")).json()["items"]
            project_id = projects[0]["id"]

        async def open_one(client: httpx.AsyncClient) -> httpx.Request:
            made = await client.post(base + "/conversations", json={"projectId": project_id})
            return client.build_request(
                "POST",
                f"{base}/conversations/{made.json()['id']}/messages",
                headers={"Accept": "text/event-stream"},
                json={"question": "Where is the session cookie signed?"},
            )

        yield "ibid", open_one, "token"


@asynccontextmanager
async def peer(peers: Path, cache: Path) -> AsyncIterator[tuple[str, Opener, str]]:
    """Serve the peer, `langgraph dev`, from an environment of its own that is made once."""
    home = cache / "peer"
    python = home / "bin" / "python"
    if not (home / ".ready").exists():
        await asyncio.to_thread(venv.create, home, with_pip=True)
        install = [str(python), "-m", "pip", "install", "-q", PEER, "langgraph>=1.2"]
        await asyncio.to_thread(subprocess.run, install, check=True)
        (home / ".ready").touch()
    port = free_port()
    command = [str(home / "bin" / "langgraph"), "dev", "--no-browser", "--no-reload"]
    command += ["--port", str(port), "--n-jobs-per-worker", "100"]
    with tempfile.TemporaryDirectory() as work:
        for name in ("graph.py", "langgraph.json"):
            Path(work, name).write_bytes((peers / name).read_bytes())
        async with serving(
            command, port, "/ok", cwd=Path(work), TOKENS=str(TOKENS), GAP="0"
        ) as base:

            async def open_one(client: httpx.AsyncClient) -> httpx.Request:
                thread = (await client.post(base + "/threads", json={})).json()["thread_id"]
                return client.build_request(
                    "POST",
                    f"{base}/threads/{thread}/runs/stream",
                    json={
                        "assistant_id": "agent",
                        "input": {"messages": [{"role": "user", "content": "hi"}]},
                        "stream_mode": ["messages-tuple"],
                    },
                )

            yield "peer", open_one, "messages"


async def measure(peers: Path, cache: Path, *, with_peer: bool = True) -> list[Row]:
    """Measure each server in turn at 1, 16 and 64 streams."""
    servers = [floor(peers), ibid(cache / "streams")]
    if with_peer:
        servers.append(peer(peers, cache))
    rows: list[Row] = []
    for opening in servers:
        async with opening as (name, open_one, token):
            rows += [await drive(name, open_one, token, streams) for streams in ROUNDS]
            print(json.dumps({"server": name, "done": True}), file=sys.stderr)
    return rows
