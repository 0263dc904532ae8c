"""Background runs from one server to another by way of a queue, over real sockets and stores."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from ibid.adapters.sqlite.records import SqliteRecords
from ibid.adapters.system_clock import SystemClock
from ibid.domain.conversations import Conversation
from ibid.domain.events import TokenDelta
from ibid.runs.limits import RunLimits
from tests.fakes.app import FakeApp, scripted_turn, scripted_work
from tests.fakes.app_table import AppTable
from tests.fakes.queue import FakeRunQueue
from tests.fakes.records import Records
from tests.fakes.served import Served, serving
from tests.unit.web.test_internal_events import EVENTS, NOTHING, batch

STREAM = {"Accept": "text/event-stream"}
QUESTION = {"question": "Where is the total?"}
LIMITS = RunLimits(poll_s=0.02, look_s=0.05, flush_s=0.02, beat_s=2.0, term_s=30.0)
WATCHFUL = replace(LIMITS, beat_s=0.5, term_s=3.0)
PIECES = ("«é» ", "日本語 ", "[1].")


@dataclass(frozen=True, kw_only=True)
class Two:
    """The server that is asked, a worker on its store, and the queue between them."""

    front: FakeApp
    worker: FakeApp
    at_front: Served
    at_worker: Served
    queue: FakeRunQueue

    async def ask(self, ann: httpx.AsyncClient, conversation: Conversation) -> str:
        begun = await ann.post(f"/conversations/{conversation.id}/runs", json=QUESTION)
        assert begun.status_code == 202
        return str(begun.headers["location"])

    async def deliver(self, messages: Sequence[str]) -> Any:  # noqa: ANN401 - JSON
        async with self.at_worker.client() as adapter:
            answer = await adapter.post(EVENTS, json=batch(messages))
        assert answer.status_code == 200
        return answer.json()


async def _two(stack: AsyncExitStack, stores: Sequence[Records], limits: RunLimits = LIMITS) -> Two:
    queue = FakeRunQueue()
    changes: Sequence[Mapping[str, Any]] = ({"queue": queue}, {"queue_events": True})
    apps: list[FakeApp] = []
    served: list[Served] = []
    for store, change in zip(stores, changes, strict=True):
        app = FakeApp(
            scripted_turn(*PIECES),
            partial(replace, **change),
            records=store,
            limits=limits,
            clock=SystemClock(),
        )
        stack.push_async_callback(app.engine.drain, 5.0)
        apps.append(app)
        served.append(await stack.enter_async_context(serving(app.app)))
    return Two(front=apps[0], worker=apps[1], at_front=served[0], at_worker=served[1], queue=queue)


async def _embedded(stack: AsyncExitStack, file: Path) -> Records:
    records = await SqliteRecords.open(file, busy_s=30.0)
    stack.push_async_callback(records.close)
    return records


@pytest.fixture(params=["embedded", pytest.param("dynamodb", marks=pytest.mark.ministack)])
async def two(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Two]:
    async with AsyncExitStack() as stack:
        stores: list[Records] = []
        if request.param == "dynamodb":
            url = request.getfixturevalue("ministack_url")
            table = await stack.enter_async_context(AppTable.opened(url))
            another = await table.another()
            stack.push_async_callback(another.close)
            stores = [table.records, another]
        else:
            stores = [await _embedded(stack, tmp_path / "app.sqlite") for _ in range(2)]
        yield await _two(stack, stores)


async def _state(ann: httpx.AsyncClient, run: str) -> str:
    return str((await ann.get(run)).json()["state"])


async def test_a_follower_that_joined_as_the_run_waited_sees_it_through(two: Two) -> None:
    conversation = await two.front.conversation()
    async with two.at_front.client() as ann, two.at_front.client(headers=STREAM) as reader:
        run = await two.ask(ann, conversation)
        before = await _state(ann, run)
        following = asyncio.create_task(reader.get(f"{run}/events"))

        delivered = await two.deliver(two.queue.messages)
        followed = await following

        after = await _state(ann, run)
        again = await reader.get(f"{run}/events")
    kept = await two.front.kept(conversation, messages=2)
    assert (before, delivered, after) == ("queued", NOTHING, "completed")
    assert b"event: done" in followed.content
    assert followed.content == again.content
    assert [message.content for message in kept] == [QUESTION["question"], "".join(PIECES)]


async def test_a_ticket_that_comes_often_is_worked_on_once(two: Two) -> None:
    go = asyncio.Event()
    two.worker.work = scripted_work(TokenDelta(text="It is"), go.wait)
    conversation = await two.front.conversation()
    async with two.at_front.client() as ann:
        run = await two.ask(ann, conversation)
        first = [asyncio.create_task(two.deliver(two.queue.messages * 5)) for _ in range(2)]
        async with asyncio.timeout(60):
            while await _state(ann, run) != "running":  # noqa: ASYNC110 - another server's doing
                await asyncio.sleep(0.02)
        go.set()
        delivered = await asyncio.gather(*first)
        again = await two.deliver(two.queue.messages)
        state = await _state(ann, run)

    kept = await two.front.kept(conversation, messages=2)
    assert [*delivered, again] == [NOTHING] * 3
    assert state == "completed"
    assert [message.content for message in kept] == [QUESTION["question"], "It is"]


async def test_a_cancel_before_the_ticket_came_ends_the_run(two: Two) -> None:
    conversation = await two.front.conversation()
    async with two.at_front.client() as ann:
        run = await two.ask(ann, conversation)
        cancelled = (await ann.post(f"{run}/cancel")).json()["state"]
        delivered = await two.deliver(two.queue.messages)
        state = await _state(ann, run)
        page = (await ann.get(f"{run}/events")).json()
        next_run = await two.ask(ann, conversation)

    assert (cancelled, delivered, state) == ("cancelled", NOTHING, "cancelled")
    assert [one["event"] for one in page["items"]] == ["error"]
    assert next_run != run


async def test_a_cancel_reaches_the_worker(two: Two) -> None:
    two.worker.work = scripted_work(TokenDelta(text="It is"), asyncio.Event().wait)
    conversation = await two.front.conversation()
    async with two.at_front.client() as ann:
        run = await two.ask(ann, conversation)
        delivering = asyncio.create_task(two.deliver(two.queue.messages))
        async with asyncio.timeout(60):
            while await _state(ann, run) != "running":  # noqa: ASYNC110 - another server's doing
                await asyncio.sleep(0.02)
        await ann.post(f"{run}/cancel")
        delivered = await delivering
        state = await _state(ann, run)

    kept = await two.front.kept(conversation, messages=2)
    assert (delivered, state) == (NOTHING, "cancelled")
    assert kept[1].content in {"", "It is"}


async def test_a_killed_worker_s_run_is_ended_once_and_never_done_again(tmp_path: Path) -> None:
    file = tmp_path / "app.sqlite"
    async with AsyncExitStack() as stack:
        stores = [await _embedded(stack, file) for _ in range(2)]
        two = await _two(stack, stores, WATCHFUL)
        conversation = await two.front.conversation()
        ann = await stack.enter_async_context(two.at_front.client())
        reader = await stack.enter_async_context(two.at_front.client(headers=STREAM))
        run = await two.ask(ann, conversation)
        following = asyncio.create_task(reader.get(f"{run}/events"))
        await _work_and_be_killed(file, two.queue.messages[0])

        delivered = await two.deliver(two.queue.messages)
        followed = await following

        again = await two.deliver(two.queue.messages)
        state = await ann.get(run)
        next_run = await two.ask(ann, conversation)
        await two.deliver(two.queue.messages)
        next_state = await _state(ann, next_run)
        kept = await two.front.kept(conversation, messages=4)
    assert (delivered, again) == (NOTHING, NOTHING)
    assert (state.json()["code"], state.json()["keptThroughId"]) == ("RUN_LOST", 2)
    assert followed.content.count(b"event: error") == 1
    assert b'"keptThroughId":2' in followed.content
    assert kept[1].content == "It is"
    assert next_state == "completed"


async def _work_and_be_killed(file: Path, ticket: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.integration.queue_worker",
        str(file),
        ticket,
        cwd=Path(__file__).parents[2],
        env={**os.environ},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
