"""A turn that asks back, with all that is real, over restarts: asked, answered, told again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from ibid.bootstrap.runtime import Runtime, open_runtime
from ibid.cli.index import begin_indexing, watch_job
from ibid.settings import Settings, read_settings

STREAM = {"Accept": "text/event-stream"}
QUESTION = "What does load do?"
FILES = {
    "src/config.py": 'def load(path):\n    """Read the settings of the shop."""\n    return path\n',
    "src/data.py": 'def load(rows):\n    """Put the rows into the warehouse."""\n    return rows\n',
}


@dataclass(frozen=True, kw_only=True)
class Place:
    """A data folder with one project in it."""

    settings: Settings
    project_id: str


@pytest.fixture
async def place(tmp_path: Path) -> Place:
    for name, text in FILES.items():
        path = tmp_path / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    settings = read_settings({}, data=tmp_path / "data", embedder="none")
    async with open_runtime(settings) as runtime:
        source = str(tmp_path / "corpus")
        project, job_id = await begin_indexing(runtime, source, name=None, force=False)
        await watch_job(runtime, project, job_id, Console(quiet=True))
    return Place(settings=settings, project_id=project.id)


@asynccontextmanager
async def server(place: Place) -> AsyncIterator[httpx.AsyncClient]:
    """Open everything anew, as a process that has just started does."""
    async with open_runtime(place.settings, keep_watch=True) as runtime, client(runtime) as http:
        yield http


def client(runtime: Runtime) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(runtime.app)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60)


async def test_a_pause_outlives_the_process_and_so_does_its_answer(place: Place) -> None:
    body = {"dataset_id": place.project_id, "question": QUESTION}
    key = {"Idempotency-Key": "k"}
    async with server(place) as http:
        stream = await http.post("/ask", json=body, headers={**STREAM, **key})
        asked_back = (await http.post("/ask", json=body, headers=key)).json()

    async with server(place) as http:
        waiting = (await http.get(f"/runs/{asked_back['run_id']}")).json()
        answer = {"thread_id": asked_back["thread_id"], "message": "src/data.py: load"}
        resumed = await http.post("/resume", json=answer, headers={**STREAM, **key})
        envelope = (await http.post("/resume", json=answer, headers=key)).json()
        second = await http.post("/resume", json={**answer, "message": "src/config.py: load"})

    async with server(place) as http:
        again = await http.post("/ask", json=body, headers={**STREAM, **key})
        told = await http.get(f"/runs/{envelope['run_id']}/events", headers=STREAM)
        path = f"/conversations/{envelope['thread_id']}/messages"
        kept = (await http.get(path)).json()["items"]

    assert asked_back["kind"] == "clarification"
    assert asked_back["resumable"] is True
    assert set(asked_back["clarification"]["options"]) >= {
        "src/config.py: load",
        "src/data.py: load",
    }
    assert (waiting["state"], waiting["interruptId"]) == ("paused", asked_back["interrupt_id"])
    assert envelope["kind"] == "answer"
    assert {one["file_path"] for one in envelope["citations"] if one["cited"]} == {"src/data.py"}
    assert envelope["trace_id"] == asked_back["trace_id"]
    assert second.status_code == 409
    assert second.json()["detail"]["run_id"] == envelope["run_id"]
    assert again.content == stream.content
    assert told.content == resumed.content
    assert kept[-1]["content"] == envelope["narration"]
    assert kept[-2]["content"] == f"{QUESTION} (src/data.py: load)"


async def test_a_deleted_thread_leaves_nothing_to_answer(place: Place) -> None:
    async with server(place) as http:
        body = {"dataset_id": place.project_id, "question": QUESTION}
        asked_back = (await http.post("/ask", json=body)).json()
        deleted = await http.delete(f"/conversations/{asked_back['thread_id']}")
        answer = {"thread_id": asked_back["thread_id"], "message": "src/data.py: load"}
        resumed = await http.post("/resume", json=answer)
        run = await http.get(f"/runs/{asked_back['run_id']}")

    assert [one.status_code for one in (deleted, resumed, run)] == [204, 404, 404]
