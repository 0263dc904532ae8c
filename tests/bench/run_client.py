"""A client of the bench of runs: it notes when each event came, and leaves nothing out."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

TERMINATORS = frozenset({"done", "error"})
STREAM = {"Accept": "text/event-stream"}


@dataclass(slots=True)
class Seen:
    """What came of one run."""

    run_id: str = ""
    frames: list[bytes] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    at: dict[int, float] = field(default_factory=dict)
    text: str = ""
    ends: list[str] = field(default_factory=list)
    ended_at: float = 0.0
    last_token_at: float = 0.0

    def faults(self) -> list[str]:
        """Say what is wrong with the order of what came."""
        found = []
        if self.ids != list(range(1, len(self.ids) + 1)):
            found.append("ids do not rise by one")
        if len(self.ends) != 1:
            found.append(f"{len(self.ends)} terminators")
        return found


class Client:
    """Asks one server about one project.

    Args:
        base: The server's address.
    """

    def __init__(self, base: str) -> None:
        limits = httpx.Limits(max_connections=500)
        self.http = httpx.AsyncClient(base_url=base, timeout=120, limits=limits)

    async def project(self, folder: str) -> str:
        """Index a folder, and wait until it can be asked."""
        source = {"kind": "folder", "path": folder}
        made = await self.http.post("/projects", json={"name": "bench", "source": source})
        made.raise_for_status()
        project_id: str = made.json()["id"]
        begun = await self.http.post(f"/projects/{project_id}/index", json={})
        begun.raise_for_status()
        while True:
            now = (await self.http.get(f"/projects/{project_id}")).json()
            if now["status"] == "ready":
                return project_id
            if now["status"] == "failed":
                raise RuntimeError("the example could not be indexed")
            await asyncio.sleep(0.05)

    async def conversation(self, project_id: str) -> str:
        """Open one."""
        made = await self.http.post("/conversations", json={"projectId": project_id})
        made.raise_for_status()
        conversation_id: str = made.json()["id"]
        return conversation_id

    async def ask(
        self, conversation_id: str, *, rate: int, tokens: int, begun: asyncio.Future[str]
    ) -> Seen:
        """Ask for a paced answer, and read it to its end; `begun` is told the run's id."""
        seen = Seen()
        question = f"How does sign_session sign the session cookie? rate={rate} tokens={tokens}"
        async with self.http.stream(
            "POST",
            f"/conversations/{conversation_id}/messages",
            json={"question": question},
            headers=STREAM,
        ) as response:
            response.raise_for_status()
            seen.run_id = response.headers["Ibid-Run-Id"]
            if not begun.done():
                begun.set_result(seen.run_id)
            await _read(response, seen)
        return seen

    async def follow(self, run_id: str, *, after: int | None = None) -> Seen:
        """Follow a run to its end."""
        seen = Seen(run_id)
        headers = STREAM if after is None else {**STREAM, "Last-Event-ID": str(after)}
        async with self.http.stream("GET", f"/runs/{run_id}/events", headers=headers) as response:
            response.raise_for_status()
            if response.status_code == httpx.codes.OK:
                await _read(response, seen)
        return seen

    async def messages(self, conversation_id: str) -> Sequence[dict[str, Any]]:
        """Read what a reload shows."""
        found = await self.http.get(f"/conversations/{conversation_id}/messages")
        found.raise_for_status()
        items: Sequence[dict[str, Any]] = found.json()["items"]
        return items

    async def cancel(self, run_id: str) -> None:
        """Ask to stop a run."""
        (await self.http.post(f"/runs/{run_id}/cancel", json={})).raise_for_status()


async def _read(response: httpx.Response, seen: Seen) -> None:
    rest = b""
    async for piece in response.aiter_raw():
        *frames, rest = (rest + piece).split(b"\n\n")
        now = time.monotonic()
        for frame in frames:
            fields = dict(line.split(b": ", 1) for line in frame.split(b"\n") if b": " in line)
            if b"id" not in fields:  # a ping
                continue
            number = int(fields[b"id"])
            seen.frames.append(frame)
            seen.ids.append(number)
            seen.at[number] = now
            name = fields[b"event"].decode()
            if name == "token":
                seen.text += json.loads(fields[b"data"])["text"]
                seen.last_token_at = now
            elif name in TERMINATORS:
                seen.ends.append(name)
                seen.ended_at = now
