"""People who ask, leave, cancel, repeat and answer, on servers that die under them."""

import asyncio
import json
import random
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import httpx

from tests.soak.record import Shown
from tests.soak.servers import Servers

Json = dict[str, Any]
STREAM = {"Accept": "text/event-stream"}
QUESTIONS = (
    "How many links may one client make in an hour?",
    "What does create_app do?",
    "Where are the options read?",
    "How are weights fetched by name?",
)
AMBIGUOUS = "What does load do?"
_TRIES = 200
_PAUSE_S = 0.1
_GONE = {404, 410}


class GaveUpError(Exception):
    """A request that was never answered, over many tries."""


class Client:
    """One subject with its project; several turns of it go on at once.

    Args:
        principal: `tenant/subject`.
        servers: Any of them is asked.
        seed: Of what it does.

    Attributes:
        shown: What it saw of each run, one a reading.
        deleted: The conversations that it deleted.
        turns: How many it began.
        problems: What no server may answer.
    """

    def __init__(self, principal: str, servers: Servers, *, seed: int) -> None:
        self.principal = principal
        self.servers = servers
        self.shown: list[Shown] = []
        self.turns = 0
        self.problems: list[str] = []
        self.deleted: list[str] = []
        self.project = ""
        self._random = random.Random(seed)  # noqa: S311 - seeds make a run repeatable
        self._http = httpx.AsyncClient(
            headers={"Ibid-Dev-Principal": principal}, timeout=httpx.Timeout(60, connect=5)
        )

    async def close(self) -> None:
        """Hang up."""
        await self._http.aclose()

    async def set_up(self, folder: str) -> None:
        """Make and index the client's project."""
        source = {"kind": "folder", "path": folder}
        made = await self.post("/projects", {"name": "soak", "source": source})
        self.project = made["id"]
        await self.post(f"/projects/{self.project}/index", {})
        while True:
            project = await self.get(f"/projects/{self.project}")
            if project["status"] == "ready" and not project["reindexInProgress"]:
                return
            await asyncio.sleep(_PAUSE_S)

    async def turn(self) -> None:
        """Do one of the things that people do."""
        self.turns += 1
        kinds: list[tuple[Callable[[], Coroutine[Any, Any, None]], int]] = [
            (self._listen, 30),
            (self._leave, 15),
            (self._cancel, 12),
            (self._repeat, 12),
            (self._answer_twice, 18),
            (self._in_the_background, 8),
            (self._in_line, 5),
        ]
        work = self._random.choices([kind for kind, _ in kinds], [often for _, often in kinds])[0]
        try:
            await work()
        except GaveUpError as error:
            self.problems.append(f"{work.__name__}: {error}")
        if self._random.random() < 0.03 and self.shown:
            await self._delete(self._random.choice(self.shown).run_id)

    # What people do.

    async def _listen(self) -> None:
        """Read a stream to its end; over and over again if it breaks."""
        shown = await self._started(*await self._question())
        if shown is not None:
            await self._follow(shown)

    async def _leave(self) -> None:
        """Leave in the middle; see later what became of it."""
        path, body = await self._question()
        body["onDisconnect"] = self._random.choice(["stop", "continue"])
        shown = await self._started(path, body, most=self._random.randint(1, 12))
        if shown is not None and self._random.random() < 0.5:
            await self._follow(Shown(shown.run_id, self.principal))

    async def _cancel(self) -> None:
        """Stop a run from anywhere, some time after it has begun."""
        shown = await self._started(*await self._question(), most=self._random.randint(1, 8))
        if shown is None:
            return
        await self._begun("POST", f"/runs/{shown.run_id}/cancel", {})
        await self._follow(shown)

    async def _repeat(self) -> None:
        """Send one request twice at once under one key, then once more."""
        path, body = await self._question()
        key = {"Idempotency-Key": uuid.uuid4().hex}
        first, second = await asyncio.gather(
            self._begun("POST", path, body, headers=key),
            self._begun("POST", path, body, headers=key),
        )
        third = await self._begun("POST", path, body, headers=key)
        answers = [answer for answer in (first, second, third) if answer.status_code == 200]
        runs = {answer.headers["ibid-run-id"] for answer in answers}
        if len(runs) > 1:
            self.problems.append(f"one key began {len(runs)} runs")
        if len({answer.content for answer in answers}) > 1:
            self.problems.append("one key was answered in two ways")
        for run_id in runs:
            await self._follow(Shown(run_id, self.principal))

    async def _answer_twice(self) -> None:
        """Ask what has two readings, and let two people decide at once."""
        asked = await self._begun(
            "POST", "/ask", {"dataset_id": self.project, "question": AMBIGUOUS}
        )
        if asked.status_code != 200 or not asked.json().get("resumable"):
            return  # its process died: an error is the answer
        envelope = asked.json()
        answers = [
            {"thread_id": envelope["thread_id"], "message": option}
            for option in envelope["clarification"]["options"][:2]
        ]
        sent = await asyncio.gather(
            *(self._begun("POST", "/resume", answer, retries=False) for answer in answers),
            return_exceptions=True,
        )
        told = [one for one in sent if isinstance(one, httpx.Response)]
        won = {one.headers["ibid-run-id"] for one in told if one.status_code == 200}
        refused = [one.json()["detail"] for one in told if one.status_code == 409]
        lost = {one["run_id"] for one in refused if one["code"] == "PAUSE_RESOLVED"}
        paused = await self._begun("GET", f"/runs/{envelope['run_id']}")
        if paused.status_code in _GONE:
            return
        resumed_by = paused.json()["resumedBy"]
        if len(won) > 1:
            self.problems.append("two decisions were applied")
        if (won | lost) - {resumed_by}:
            self.problems.append("somebody was told another run than the one that goes on")
        await self._follow(Shown(envelope["run_id"], self.principal))
        if resumed_by is not None:
            await self._follow(Shown(resumed_by, self.principal))

    async def _in_the_background(self) -> None:
        """Start a run that nobody reads, and look at it later."""
        conversation = await self._conversation()
        body = {"question": self._random.choice(QUESTIONS)}
        key = {"Idempotency-Key": uuid.uuid4().hex}
        path = f"/conversations/{conversation}/runs"
        begun = await self._begun("POST", path, body, headers=key)
        if begun.status_code == 202:
            await self._follow(Shown(begun.json()["runId"], self.principal))

    async def _in_line(self) -> None:
        """Ask again where a run is under way: behind it, or in its place."""
        path, body = await self._question()
        strategy = self._random.choice(["enqueue", "interrupt"])
        first, second = await asyncio.gather(
            self._started(path, body),
            self._started(path, {**body, "multitaskStrategy": strategy}),
        )
        for shown in (first, second):
            if shown is not None:
                await self._follow(shown)

    # How they do it.

    async def get(self, path: str) -> Json:
        """Return a resource, over as many tries as it takes."""
        answer: Json = (await self._begun("GET", path)).json()
        return answer

    async def post(self, path: str, body: Json) -> Json:
        """Make something, once, over as many tries as it takes."""
        key = {"Idempotency-Key": uuid.uuid4().hex}
        answer: Json = (await self._begun("POST", path, body, headers=key)).json()
        return answer

    async def read_again(self, shown: Shown) -> bool:
        """Read a run from its first event; False if it is gone."""
        url = f"{self.servers.url()}/runs/{shown.run_id}/events"
        async with self._http.stream("GET", url, headers=STREAM) as response:
            if response.status_code != 404:
                await shown.read(response)
            return response.status_code != 404

    async def _conversation(self) -> str:
        made: str = (await self.post("/conversations", {"projectId": self.project}))["id"]
        return made

    async def _question(self) -> tuple[str, Json]:
        conversation = await self._conversation()
        return (
            f"/conversations/{conversation}/messages",
            {"question": self._random.choice(QUESTIONS)},
        )

    async def _started(self, path: str, body: Json, *, most: int | None = None) -> Shown | None:
        """Ask and read a stream; None if no server said which run it started."""
        shown: Shown | None = None
        try:
            async with self._http.stream(
                "POST", self.servers.url() + path, json=body, headers=STREAM
            ) as response:
                if response.status_code != 200:
                    await response.aread()
                    return None
                shown = self._see(response.headers["ibid-run-id"])
                await shown.read(response, most=most)
        except httpx.TransportError:
            pass
        return shown

    async def _follow(self, shown: Shown) -> None:
        """Go on reading until the terminator, on whichever server lives."""
        if shown not in self.shown:
            self.shown.append(shown)
        for _ in range(_TRIES):
            if shown.end is not None:
                return
            headers = {**STREAM, "Last-Event-ID": str(shown.last_id)}
            url = f"{self.servers.url()}/runs/{shown.run_id}/events"
            try:
                async with self._http.stream("GET", url, headers=headers) as response:
                    if response.status_code in _GONE or response.status_code == 204:
                        return
                    if response.status_code == 200:
                        await shown.read(response)
            except httpx.TransportError:
                pass
            if shown.end is None:
                await asyncio.sleep(_PAUSE_S)
        raise GaveUpError(f"run {shown.run_id} never ended")

    async def _delete(self, run_id: str) -> None:
        run = await self._begun("GET", f"/runs/{run_id}")
        if run.status_code == 200:
            conversation = run.json()["conversationId"]
            await self._begun("DELETE", f"/conversations/{conversation}")
            self.deleted.append(conversation)

    async def _begun(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        headers: dict[str, str] | None = None,
        retries: bool = True,
    ) -> httpx.Response:
        """Send a request until a server answers it; a 5xx or a broken connection is no answer."""
        for _ in range(_TRIES):
            try:
                answer = await self._http.request(
                    method, self.servers.url() + path, json=body, headers=headers
                )
            except httpx.TransportError:
                if not retries:
                    raise
            else:
                if answer.status_code == 500:
                    self.problems.append(f"{method} {path}: 500 {json.dumps(answer.json())}")
                if answer.status_code < 500 and not _is_in_use(answer):
                    return answer
            await asyncio.sleep(_PAUSE_S)
        raise GaveUpError(f"{method} {path} was never answered")

    def _see(self, run_id: str) -> Shown:
        shown = Shown(run_id, self.principal)
        self.shown.append(shown)
        return shown


def _is_in_use(answer: httpx.Response) -> bool:
    return answer.status_code == 409 and answer.json()["detail"]["code"] == "IDEMPOTENCY_KEY_IN_USE"
