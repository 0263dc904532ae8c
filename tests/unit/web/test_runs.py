"""Runs: how they stand, their events again from any point on, their cancellation, their thread."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import httpx
import pytest

from ibid.adapters.system_clock import SystemClock
from ibid.domain.conversations import Conversation
from ibid.domain.events import TokenDelta
from ibid.runs.limits import RunLimits
from tests.fakes.app import BOB, FakeApp, pausing_work, scripted_turn, scripted_work
from tests.fakes.event_source import EventSourceReader

STREAM = {"Accept": "text/event-stream"}
QUESTION = {"question": "Where is the total?"}
PIECES = ("It's ", "in «cart»\n", "[1]. 😀")
QUICK = RunLimits(poll_s=0.005, look_s=0.01, flush_s=0.0, beat_s=0.5, term_s=2.0)


def frames(body: bytes) -> list[bytes]:
    return [part + b"\n\n" for part in body.split(b"\n\n") if part]


def messages(conversation: Conversation) -> str:
    return f"/conversations/{conversation.id}/messages"


async def asked(app: FakeApp, surface: str) -> httpx.Response:
    """Ask a question on a surface, streamed."""
    conversation = await app.conversation()
    async with app.client(headers=STREAM) as ann:
        if surface == "messages":
            return await ann.post(messages(conversation), json=QUESTION)
        body = {"dataset_id": conversation.project_id, **QUESTION}
        return await ann.post("/ask", json=body)


@pytest.mark.parametrize("surface", ["messages", "ask"])
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_every_suffix_is_byte_for_byte_what_was_shown(
    surface: str, *, elsewhere: bool
) -> None:
    app = FakeApp(scripted_turn(*PIECES))
    shown = await asked(app, surface)
    whole = frames(shown.content)
    reader = FakeApp(records=app.records) if elsewhere else app
    path = f"{shown.headers['location']}/events"

    async with reader.client(headers=STREAM) as ann:
        answers = [
            await ann.get(path, headers={"Last-Event-ID": str(after)})
            for after in range(len(whole) + 2)
        ]
        unsaid = await ann.get(path)

    assert unsaid.content == shown.content
    assert unsaid.headers["content-type"] == shown.headers["content-type"]
    for after, answer in enumerate(answers[:-2]):
        assert answer.status_code == 200
        assert answer.content == b"".join(whole[after:])
    assert [answer.status_code for answer in answers[-2:]] == [204, 204]


@pytest.mark.parametrize("surface", ["messages", "ask"])
async def test_the_ids_of_what_is_shown_rise_by_one(surface: str) -> None:
    shown = await asked(FakeApp(scripted_turn(*PIECES)), surface)

    ids = [line for line in shown.content.splitlines() if line.startswith(b"id: ")]

    assert ids == [b"id: %d" % number for number in range(1, len(ids) + 1)]


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("surface", ["messages", "ask"])
async def test_a_follower_goes_on_with_a_live_run_to_its_end(
    surface: str, *, elsewhere: bool
) -> None:
    go = asyncio.Event()
    app = FakeApp(
        scripted_work(TokenDelta(text="It is"), go.wait, TokenDelta(text=" here.")), limits=QUICK
    )
    conversation = await app.conversation()
    reader = FakeApp(records=app.records, limits=QUICK) if elsewhere else app
    async with app.client(headers=STREAM) as ann, reader.client(headers=STREAM) as follower:
        if surface == "messages":
            asking = ann.post(messages(conversation), json=QUESTION)
        else:
            body = {
                "dataset_id": conversation.project_id,
                "thread_id": conversation.id,
                **QUESTION,
            }
            asking = ann.post("/ask", json=body)
        first = asyncio.create_task(asking)
        run = await app.begun(conversation)
        following = asyncio.create_task(
            follower.get(f"/runs/{run.id}/events", headers={"Last-Event-ID": "1"})
        )
        await asyncio.sleep(0.05)

        go.set()
        async with asyncio.timeout(10):
            shown, followed = await first, await following

    assert followed.content == b"".join(frames(shown.content)[1:])


async def test_a_follower_that_leaves_stops_nothing() -> None:
    go = asyncio.Event()
    app = FakeApp(
        scripted_work(TokenDelta(text="It is"), go.wait, TokenDelta(text=" here.")), limits=QUICK
    )
    conversation = await app.conversation()
    async with app.client(headers=STREAM) as ann:
        first = asyncio.create_task(ann.post(messages(conversation), json=QUESTION))
        run = await app.begun(conversation)
        leaving = asyncio.create_task(ann.get(f"/runs/{run.id}/events"))
        await asyncio.sleep(0.02)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        go.set()
        shown = await first

    assert b"event: done" in shown.content


@pytest.mark.parametrize("surface", ["messages", "ask"])
async def test_without_a_stream_pages_hold_the_same_events(surface: str) -> None:
    app = FakeApp(scripted_turn(*PIECES))
    shown = await asked(app, surface)
    path = f"{shown.headers['location']}/events"
    pages: list[Any] = [{"nextCursor": "0", "items": []}]

    async with app.client() as ann:
        while (cursor := pages[-1]["nextCursor"]) is not None:
            pages.append((await ann.get(path, params={"cursor": cursor, "limit": 2})).json())
        by_header = (await ann.get(path, headers={"Last-Event-ID": "4"})).json()
        past = (await ann.get(path, params={"cursor": "99"})).json()

    events = [
        {"id": int(event.last_event_id), "event": event.type, "data": json.loads(event.data)}
        for event in EventSourceReader().feed(shown.content)
    ]
    assert [item for page in pages for item in page["items"]] == events
    assert len(pages) - 1 == (len(events) + 1) // 2
    assert (pages[-1]["state"], pages[-1]["lastEventId"]) == ("completed", len(events))
    assert by_header["items"] == events[4:]
    assert past == {"items": [], "nextCursor": None, "lastEventId": 99, "state": "completed"}


async def test_a_page_of_a_live_run_says_that_more_will_come() -> None:
    go = asyncio.Event()
    app = FakeApp(scripted_work(TokenDelta(text="It is"), go.wait), limits=QUICK)
    conversation = await app.conversation()
    async with app.client() as ann:
        asking = asyncio.create_task(ann.post(messages(conversation), json=QUESTION))
        run = await app.begun(conversation)
        page: dict[str, Any] = {"items": []}
        async with asyncio.timeout(5):
            while not page["items"]:
                page = (await ann.get(f"/runs/{run.id}/events")).json()
        go.set()
        await asking

    assert (page["state"], page["nextCursor"]) == ("running", None)
    assert page["lastEventId"] == len(page["items"])


@pytest.mark.parametrize("given", ["", "x", "-1", "1.0", "01", "9" * 17, "٣"])
@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
async def test_a_malformed_last_event_id_is_422(given: str, accept: str) -> None:
    app = FakeApp()
    shown = await asked(app, "messages")

    async with app.client(headers={"Accept": accept}) as ann:
        answer = await ann.get(
            f"{shown.headers['location']}/events",
            headers=[(b"Last-Event-ID", given.encode())],
        )

    assert answer.status_code == 422
    assert answer.json()["detail"]["code"] == "VALIDATION_ERROR"


async def test_two_last_event_ids_are_422() -> None:
    app = FakeApp()
    shown = await asked(app, "messages")
    path = f"{shown.headers['location']}/events"

    async with app.client() as ann:
        answer = await ann.get(path, headers=[("Last-Event-ID", "1"), ("Last-Event-ID", "2")])

    assert answer.status_code == 422


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
async def test_a_journal_past_its_time_is_410(accept: str) -> None:
    app = FakeApp()
    shown = await asked(app, "messages")
    await app.records.runs.purge(app.clock.now() + timedelta(days=8))

    async with app.client(headers={"Accept": accept}) as ann:
        answer = await ann.get(f"{shown.headers['location']}/events")

    assert answer.status_code == 410
    assert answer.json()["detail"]["code"] == "JOURNAL_EXPIRED"


async def test_a_run_says_how_it_stands() -> None:
    app = FakeApp(scripted_turn(*PIECES))
    shown = await asked(app, "messages")

    async with app.client() as ann:
        run = (await ann.get(shown.headers["location"])).json()

    assert run["runId"] == run["turnId"] == shown.headers["ibid-run-id"]
    assert (run["state"], run["graph"], run["finishReason"]) == ("completed", "messages", "stop")
    assert run["lastEventId"] == len(frames(shown.content))
    assert {run[name] for name in ("code", "interruptId", "expiresAt", "resumes", "resumedBy")} == {
        None
    }


async def test_a_paused_run_names_its_pause_and_then_who_goes_on() -> None:
    app = FakeApp(pausing_work(scripted_turn("Here [1].")))
    asked_back = await asked(app, "ask")
    async with app.client() as ann:
        paused = (await ann.get(asked_back.headers["location"])).json()
        thread = {"thread_id": paused["conversationId"], "message": "the shop's"}
        answer = await ann.post("/resume", json=thread)
        after = (await ann.get(asked_back.headers["location"])).json()
        going_on = (await ann.get(answer.headers["location"])).json()

    assert (paused["state"], paused["finishReason"]) == ("paused", "paused")
    assert paused["interruptId"] == "interrupt-1"
    assert paused["expiresAt"] > paused["endedAt"]
    assert paused["resumedBy"] is None
    assert after["resumedBy"] == going_on["runId"] == answer.headers["ibid-run-id"]
    assert (going_on["resumes"], going_on["turnId"]) == (paused["runId"], paused["turnId"])


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_cancel_stops_a_run_and_keeps_what_was_written(*, elsewhere: bool) -> None:
    stuck = scripted_work(TokenDelta(text="It is"), asyncio.Event().wait)
    app = FakeApp(stuck, limits=QUICK, clock=SystemClock())
    conversation = await app.conversation()
    other = FakeApp(records=app.records, limits=QUICK) if elsewhere else app
    async with app.client(headers=STREAM) as ann, other.client() as stopping:
        asking = asyncio.create_task(ann.post(messages(conversation), json=QUESTION))
        run = await app.begun(conversation)
        while not (await ann.get(f"/runs/{run.id}")).json()["lastEventId"]:  # noqa: ASYNC110 - a store
            await asyncio.sleep(0.005)

        answer = await stopping.post(f"/runs/{run.id}/cancel")
        async with asyncio.timeout(10):
            shown = await asking
        now = (await ann.get(f"/runs/{run.id}")).json()
        kept = (await ann.get(messages(conversation), headers={"Accept": "*/*"})).json()["items"]

    assert answer.status_code == 202
    assert answer.json()["runId"] == run.id
    assert b'"code":"RUN_CANCELLED"' in shown.content
    assert (now["state"], now["finishReason"]) == ("cancelled", "cancelled")
    assert (kept[1]["content"], kept[1]["finishReason"]) == ("It is", "cancelled")


async def test_a_cancelled_pause_expires_and_frees_its_thread() -> None:
    app = FakeApp(pausing_work(scripted_turn("Here [1].")))
    async with app.client() as ann:
        asked_back = (await asked(app, "ask")).headers["ibid-run-id"]
        thread = (await ann.get(f"/runs/{asked_back}")).json()["conversationId"]
        app.work = scripted_turn("Here [1].")
        busy = await ann.post(f"/conversations/{thread}/messages", json=QUESTION)
        cancelled = await ann.post(f"/runs/{asked_back}/cancel", json={})
        free = await ann.post(f"/conversations/{thread}/messages", json=QUESTION)

    assert busy.status_code == 409
    assert busy.json()["detail"]["code"] == "PAUSE_PENDING"
    assert busy.json()["detail"]["runId"] == asked_back
    assert busy.json()["detail"]["interruptId"] == "interrupt-1"
    assert cancelled.json()["state"] == "expired"
    assert free.status_code == 200


async def test_a_cancel_of_an_ended_run_changes_nothing() -> None:
    app = FakeApp()
    shown = await asked(app, "messages")
    async with app.client() as ann:
        before = (await ann.get(shown.headers["location"])).json()
        answer = await ann.post(f"{shown.headers['location']}/cancel")
        unknown = await ann.post(f"{shown.headers['location']}/cancel", json={"why": "x"})

    assert (answer.status_code, answer.json()) == (202, before)
    assert unknown.status_code == 422


async def test_a_run_in_the_background_needs_no_reader() -> None:
    app = FakeApp(scripted_turn(*PIECES))
    conversation = await app.conversation()
    async with app.client() as ann:
        begun = await ann.post(f"/conversations/{conversation.id}/runs", json=QUESTION)
        kept = await app.kept(conversation, messages=2)
        told = await ann.get(f"{begun.headers['location']}/events", headers=STREAM)

    assert begun.status_code == 202
    assert begun.json() == {"runId": begun.headers["ibid-run-id"]}
    assert kept[1].content == "".join(PIECES)
    assert b"event: done" in told.content


async def test_an_enqueued_question_waits_for_the_run_before_it() -> None:
    go = asyncio.Event()
    app = FakeApp(scripted_work(TokenDelta(text="It is"), go.wait), limits=QUICK)
    conversation = await app.conversation()
    async with app.client(headers=STREAM) as ann:
        first = asyncio.create_task(ann.post(messages(conversation), json=QUESTION))
        await app.begun(conversation)
        body = {"question": "And?", "multitaskStrategy": "enqueue"}
        second = asyncio.create_task(ann.post(messages(conversation), json=body))
        run = await app.begun(conversation, runs=2)
        state = (await ann.get(f"/runs/{run.id}")).json()["state"]
        go.set()
        async with asyncio.timeout(10):
            answers = await first, await second
        kept = (await ann.get(messages(conversation))).json()["items"]

    assert state == "queued"
    assert b'{"phase":"queued"}' in frames(answers[1].content)[0]
    assert b"event: done" in answers[1].content
    assert [message["content"] for message in kept if message["role"] == "user"] == [
        "Where is the total?",
        "And?",
    ]


async def test_an_interrupting_question_cancels_the_run_before_it() -> None:
    app = FakeApp(scripted_work(TokenDelta(text="It is"), asyncio.Event().wait), limits=QUICK)
    conversation = await app.conversation()
    async with app.client(headers=STREAM) as ann:
        first = asyncio.create_task(ann.post(messages(conversation), json=QUESTION))
        await app.begun(conversation)
        await asyncio.sleep(0.02)
        app.work = scripted_turn("Here [1].")
        body = {"question": "And?", "multitaskStrategy": "interrupt"}
        second = await ann.post(messages(conversation), json=body)

    assert b'"code":"RUN_CANCELLED"' in (await first).content
    assert b"event: done" in second.content


async def test_nobody_else_s_run_is_there() -> None:
    app = FakeApp()
    shown = await asked(app, "messages")
    location = shown.headers["location"]
    async with app.client(BOB) as bob:
        answers = [
            await bob.get(location),
            await bob.get(f"{location}/events"),
            await bob.get(f"{location}/events", headers=STREAM),
            await bob.post(f"{location}/cancel"),
        ]

    assert [answer.status_code for answer in answers] == [404] * 4
    assert {answer.json()["detail"]["code"] for answer in answers} == {"RUN_NOT_FOUND"}
