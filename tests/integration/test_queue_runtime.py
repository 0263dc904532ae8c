"""All that is real: a server that puts background runs into SQS, and a worker that takes them."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import httpx
import pytest
from rich.console import Console

from ibid.bootstrap.runtime import open_runtime
from ibid.cli.index import begin_indexing, watch_job
from ibid.settings import read_settings
from tests.fakes.ministack import KEYS, client_config
from tests.unit.web.test_internal_events import EVENTS, NOTHING, batch

pytestmark = pytest.mark.ministack


@dataclass(frozen=True, kw_only=True)
class Place:
    """A queue, the server before it, and the worker behind it."""

    sqs: Any
    url: str
    project_id: str
    front: httpx.AsyncClient
    worker: httpx.AsyncClient

    async def deliver(self) -> list[object]:
        """Post what is in the queue to the worker, as the adapter does."""
        found = self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10)
        bodies = [message["Body"] for message in found.get("Messages", [])]
        answer = await self.worker.post(EVENTS, json=batch(bodies))
        assert answer.json() == NOTHING
        return bodies


@pytest.fixture
def sqs(ministack_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", ministack_url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    for name, value in KEYS.items():
        monkeypatch.setenv(name.upper(), value)
    session: Any = boto3.session.Session()
    client = session.client("sqs", **client_config(ministack_url))
    yield client
    client.close()


@pytest.fixture
async def place(sqs: Any, tmp_path: Path) -> AsyncIterator[Place]:  # noqa: ANN401 - boto3 makes its classes at run time
    url = sqs.create_queue(QueueName=f"runs-{uuid4().hex[:12]}")["QueueUrl"]
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "shop.py").write_text('def total(cart):\n    """Add the prices of a cart."""\n')
    given = {"data": tmp_path / "data", "embedder": "none"}
    async with AsyncExitStack() as stack:
        front, worker = [
            await stack.enter_async_context(open_runtime(read_settings({}, **given, **role)))
            for role in ({"queue_runs": url}, {"queue_events": True})
        ]
        project, job_id = await begin_indexing(front, str(corpus), name=None, force=False)
        await watch_job(front, project, job_id, Console(quiet=True))
        clients = [
            await stack.enter_async_context(
                httpx.AsyncClient(
                    transport=httpx.ASGITransport(runtime.app), base_url="http://localhost"
                )
            )
            for runtime in (front, worker)
        ]
        yield Place(sqs=sqs, url=url, project_id=project.id, front=clients[0], worker=clients[1])


async def test_a_background_run_goes_through_the_queue(place: Place) -> None:
    made = await place.front.post("/conversations", json={"projectId": place.project_id})
    path = f"/conversations/{made.json()['id']}"

    begun = await place.front.post(f"{path}/runs", json={"question": "What does total do?"})
    before = (await place.front.get(begun.headers["location"])).json()
    bodies = await place.deliver()
    after = (await place.front.get(begun.headers["location"])).json()

    kept = (await place.front.get(f"{path}/messages")).json()["items"]
    assert begun.status_code == 202
    assert len(bodies) == 1
    assert "total" not in str(bodies)
    assert (before["state"], after["state"]) == ("queued", "completed")
    assert [one["filePath"] for one in kept[1]["citations"]] == ["shop.py"]


async def test_a_worker_takes_events_and_a_server_does_not(place: Place) -> None:
    answers = [await one.post(EVENTS, json={}) for one in (place.worker, place.front)]

    assert [answer.status_code for answer in answers] == [200, 404]
