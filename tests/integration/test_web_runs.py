"""Runs over real sockets, between two applications that share one store as two processes would."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from ibid.adapters.sqlite.records import SqliteRecords
from ibid.adapters.system_clock import SystemClock
from ibid.domain.conversations import Conversation, Run
from ibid.domain.events import TokenDelta
from ibid.runs.limits import RunLimits
from ibid.runs.turns import Work
from ibid.web.claimant import KeyLimits
from tests.fakes.app import ANN, FakeApp, pausing_work, scripted_turn, scripted_work
from tests.fakes.app_table import AppTable
from tests.fakes.event_source import Dispatched, EventSourceReader
from tests.fakes.records import Records
from tests.fakes.served import Served, serving

PIECES = ("«é» ", "日本語 \r\n", "😀\u2028", "\n\ndata: no\n\n", "[1].")
STREAM = {"Accept": "text/event-stream"}
QUESTION = "Where is the total?"
LIMITS = RunLimits(poll_s=0.02, look_s=0.05, flush_s=0.02, beat_s=2.0, term_s=30.0)
KEYS = KeyLimits(poll_s=0.01, wait_s=60.0)
SURFACES = ["messages", "ask"]


@dataclass(frozen=True, kw_only=True)
class Two:
    """Two applications on one store."""

    here: FakeApp
    there: FakeApp
    at_here: Served
    at_there: Served

    def works(self, work: Work) -> None:
        self.here.work = self.there.work = work

    async def state(self, run: Run) -> str:
        now = await self.here.records.runs.get(run.id, principal=ANN)
        return now.state.value


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
            for _ in range(2):
                records = await SqliteRecords.open(tmp_path / "app.sqlite", busy_s=30.0)
                stack.push_async_callback(records.close)
                stores.append(records)
        apps: list[FakeApp] = []
        served: list[Served] = []
        for store in stores:
            app = FakeApp(
                scripted_turn(*PIECES),
                lambda services: replace(services, key_limits=KEYS),
                records=store,
                limits=LIMITS,
                clock=SystemClock(),
            )
            stack.push_async_callback(app.engine.drain, 5.0)
            apps.append(app)
            served.append(await stack.enter_async_context(serving(app.app)))
        yield Two(here=apps[0], there=apps[1], at_here=served[0], at_there=served[1])


def frames(body: bytes) -> list[bytes]:
    """Cut a stream into its frames, without comments; their texts hold no blank line."""
    return [part + b"\n\n" for part in body.split(b"\n\n") if part and part != b": ping"]


def texts(body: bytes) -> list[str]:
    return [event.type for event in EventSourceReader().feed(body)]


async def ask(
    client: httpx.AsyncClient, conversation: Conversation, surface: str, **more: str
) -> httpx.Response:
    """Ask a question on a surface, in the conversation."""
    if surface == "messages":
        body = {"question": QUESTION, **more}
        return await client.post(f"/conversations/{conversation.id}/messages", json=body)
    about = {"dataset_id": conversation.project_id, "thread_id": conversation.id}
    return await client.post("/ask", json={**about, "question": QUESTION, **more})


def stepping(gate: Callable[[], Awaitable[object]]) -> Work:
    """Make a turn that waits at the gate before each of its pieces."""
    steps = [step for piece in PIECES for step in (gate, TokenDelta(text=piece))]
    return scripted_work(*steps)


@pytest.mark.parametrize("surface", SURFACES)
async def test_every_suffix_is_told_byte_for_byte_by_the_other_process(
    two: Two, surface: str
) -> None:
    conversation = await two.here.conversation()
    async with two.at_here.client(headers=STREAM) as here:
        shown = await ask(here, conversation, surface)
    whole = frames(shown.content)
    path = f"{shown.headers['location']}/events"

    async with two.at_there.client(headers=STREAM) as there:
        answers = [
            await there.get(path, headers={"Last-Event-ID": str(after)})
            for after in range(len(whole) + 1)
        ]

    assert [answer.content for answer in answers] == [
        b"".join(whole[after:]) for after in range(len(whole) + 1)
    ]
    assert [answer.status_code for answer in answers] == [200] * len(whole) + [204]


@pytest.mark.parametrize("surface", SURFACES)
async def test_followers_in_both_processes_are_shown_what_the_asker_is(
    two: Two, surface: str
) -> None:
    tokens = asyncio.Semaphore(1)
    two.works(stepping(tokens.acquire))
    conversation = await two.here.conversation()
    async with (
        two.at_here.client(headers=STREAM) as here,
        two.at_there.client(headers=STREAM) as there,
    ):
        asking = asyncio.create_task(ask(here, conversation, surface))
        run = await two.here.begun(conversation)
        path = f"/runs/{run.id}/events"
        whole = [asyncio.create_task(client.get(path)) for client in (here, there)]
        rest = asyncio.create_task(there.get(path, headers={"Last-Event-ID": "1"}))
        for _ in PIECES:
            await asyncio.sleep(0.03)
            tokens.release()
        shown = (await asking).content

        followed = [(await task).content for task in whole]
        suffix = (await rest).content

    assert [b"".join(frames(body)) for body in followed] == [shown, shown]
    assert b"".join(frames(suffix)) == b"".join(frames(shown)[1:])


async def test_a_follower_that_hangs_up_and_comes_back_misses_nothing(two: Two) -> None:
    tokens = asyncio.Semaphore(2)
    two.works(stepping(tokens.acquire))
    conversation = await two.here.conversation()
    last = "0"
    async with (
        two.at_here.client(headers=STREAM) as here,
        two.at_there.client(headers=STREAM) as there,
    ):
        asking = asyncio.create_task(ask(here, conversation, "messages"))
        run = await two.here.begun(conversation)
        read: list[Dispatched] = []
        while not read or read[-1].type != "done":
            headers = {"Last-Event-ID": last}
            async with there.stream("GET", f"/runs/{run.id}/events", headers=headers) as answer:
                reader = EventSourceReader()
                async for piece in answer.aiter_raw():
                    if got := reader.feed(piece):
                        read += got
                        last = got[-1].last_event_id
                        tokens.release()
                        break  # hangs up after whatever came at once
        shown = (await asking).content

    assert read == EventSourceReader().feed(shown)


@pytest.mark.parametrize("surface", SURFACES)
async def test_a_cancel_at_the_other_process_ends_the_stream(two: Two, surface: str) -> None:
    two.works(scripted_work(TokenDelta(text="It is"), asyncio.Event().wait))
    conversation = await two.here.conversation()
    async with two.at_here.client(headers=STREAM) as here, two.at_there.client() as there:
        asking = asyncio.create_task(ask(here, conversation, surface))
        run = await two.here.begun(conversation)
        events: list[object] = []
        while len(events) < 2:
            events = (await there.get(f"/runs/{run.id}/events")).json()["items"]

        cancelled = await there.post(f"/runs/{run.id}/cancel")
        shown = (await asking).content
        kept = await two.there.kept(conversation, messages=2)
        again = await there.post(f"/runs/{run.id}/cancel")

    assert cancelled.status_code == 202
    assert texts(shown)[-1] == "error"
    assert b'"RUN_CANCELLED"' in shown
    assert (kept[1].content, kept[1].finish_reason) == ("It is", "cancelled")
    assert again.json()["state"] == "cancelled"


@pytest.mark.parametrize("surface", SURFACES)
async def test_the_same_request_at_both_processes_is_one_run_told_twice(
    two: Two, surface: str
) -> None:
    tokens = asyncio.Semaphore(1)
    two.works(stepping(tokens.acquire))
    conversation = await two.here.conversation()
    key = {"Idempotency-Key": "k"}
    async with (
        two.at_here.client(headers={**STREAM, **key}) as here,
        two.at_there.client(headers={**STREAM, **key}) as there,
        two.at_there.client(headers=key) as whole,
    ):
        asking = [asyncio.create_task(ask(one, conversation, surface)) for one in (here, there)]
        await two.here.begun(conversation)
        asking.append(asyncio.create_task(ask(here, conversation, surface)))
        for _ in PIECES:
            await asyncio.sleep(0.03)
            tokens.release()
        streams = [await task for task in asking]
        bodies = [await ask(whole, conversation, surface) for _ in range(2)]
        now = await two.here.begun(conversation)

    assert now.number == 1
    assert len({b"".join(frames(answer.content)) for answer in streams}) == 1
    assert bodies[0].content == bodies[1].content
    assert {answer.headers["ibid-run-id"] for answer in (*streams, *bodies)} == {now.id}


async def test_a_second_reader_s_leaving_stops_nothing_but_the_asker_s_does(two: Two) -> None:
    two.works(scripted_work(TokenDelta(text="It is"), asyncio.Event().wait))
    conversation = await two.here.conversation()
    headers = {**STREAM, "Idempotency-Key": "k"}
    async with two.at_there.client(headers=headers) as there:
        async with two.at_here.client(headers=headers) as here:
            asking = asyncio.create_task(ask(here, conversation, "messages"))
            run = await two.here.begun(conversation)
            second = asyncio.create_task(ask(there, conversation, "messages"))
            third = asyncio.create_task(ask(there, conversation, "messages"))
            await asyncio.sleep(0.1)
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)
            await asyncio.sleep(0.1)
            still = await two.state(run)

            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        told = (await third).content

    assert still == "running"
    assert await two.state(run) == "cancelled"
    assert texts(told)[-1] == "error"
    assert b'"disconnected"' in told


async def test_a_run_that_is_to_continue_is_told_at_the_other_process(two: Two) -> None:
    tokens = asyncio.Semaphore(1)
    two.works(stepping(tokens.acquire))
    conversation = await two.here.conversation()
    async with two.at_here.client(headers=STREAM) as here:
        asking = asyncio.create_task(ask(here, conversation, "ask", on_disconnect="continue"))
        run = await two.here.begun(conversation)
        await asyncio.sleep(0.05)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    for _ in PIECES:
        tokens.release()

    async with two.at_there.client(headers=STREAM) as there:
        told = await there.get(f"/runs/{run.id}/events")

    assert texts(told.content)[-1] == "answer"
    assert await two.state(run) == "completed"


async def test_of_answers_to_a_pause_at_both_processes_one_counts(two: Two) -> None:
    two.works(pausing_work(scripted_turn(*PIECES)))
    async with two.at_here.client() as here, two.at_there.client() as there:
        for race in range(5):
            conversation = await two.here.conversation()
            paused = (await ask(here, conversation, "ask")).json()
            body = {"thread_id": conversation.id, "interrupt_id": paused["interrupt_id"]}
            answers = await asyncio.gather(
                *(
                    client.post("/resume", json={**body, "message": f"{race}.{number}"})
                    for number, client in enumerate((here, there) * 4)
                )
            )
            run = (await here.get(f"/runs/{paused['run_id']}")).json()

            done = [answer for answer in answers if answer.status_code == 200]
            lost = [answer.json()["detail"] for answer in answers if answer.status_code != 200]
            assert [answer.headers["ibid-run-id"] for answer in done] == [run["resumedBy"]]
            assert {(one["code"], one["run_id"]) for one in lost} == {
                ("PAUSE_RESOLVED", run["resumedBy"])
            }
            kept = await two.here.kept(conversation, messages=4)
            assert len(kept) == 4


async def test_an_answer_sent_twice_under_one_key_is_one_answer(two: Two) -> None:
    two.works(pausing_work(scripted_turn(*PIECES)))
    conversation = await two.here.conversation()
    async with two.at_here.client() as here, two.at_there.client() as there:
        await ask(here, conversation, "ask")
        body = {"thread_id": conversation.id, "message": "the shop's"}
        key = {"Idempotency-Key": "k"}
        answers = await asyncio.gather(
            *(client.post("/resume", json=body, headers=key) for client in (here, there) * 3)
        )

    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1


async def test_a_background_run_is_joined_at_the_other_process(two: Two) -> None:
    conversation = await two.here.conversation()
    async with two.at_here.client() as here, two.at_there.client(headers=STREAM) as there:
        path = f"/conversations/{conversation.id}/runs"
        begun = await here.post(path, json={"question": QUESTION})
        told = await there.get(f"{begun.headers['location']}/events")

    assert begun.status_code == 202
    assert texts(told.content)[-1] == "done"
