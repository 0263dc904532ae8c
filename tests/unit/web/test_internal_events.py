"""Background runs by way of a queue, and what the adapter posts when a ticket came."""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest

from ibid.domain.conversations import Conversation, Run
from ibid.domain.errors import QueueUnavailable, StoreUnavailable
from ibid.domain.events import TokenDelta
from ibid.domain.tickets import RunTicket
from ibid.runs.limits import RunLimits
from ibid.runs.turns import Work
from tests.fakes.app import ANN, FakeApp, scripted_turn, scripted_work
from tests.fakes.queue import FakeRunQueue

EVENTS = "/internal/events"
QUESTION = {"question": "Where is the planted total?", "pathPrefix": "./src/"}
NOTHING: dict[str, list[object]] = {"batchItemFailures": []}


def batch(bodies: Sequence[str]) -> dict[str, Any]:
    """The event that SQS brings these messages in, in order m0, m1 and so on."""
    return {
        "Records": [
            {
                "messageId": f"m{number}",
                "receiptHandle": "opaque",
                "body": body,
                "attributes": {"ApproximateReceiveCount": "1"},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:eu-central-1:000000000000:runs",
                "awsRegion": "eu-central-1",
            }
            for number, body in enumerate(bodies)
        ]
    }


class Two:
    """The server that takes questions, a worker on the same store, and the queue between."""

    def __init__(self, work: Work | None = None) -> None:
        self.queue = FakeRunQueue()
        self.front = FakeApp(change=lambda services: replace(services, queue=self.queue))
        self.worker = FakeApp(
            work or scripted_turn("It is ", "here [1]."),
            lambda services: replace(services, queue_events=True),
            records=self.front.records,
            limits=RunLimits(poll_s=0.01),
        )

    async def asked(self, conversation: Conversation, **headers: str) -> httpx.Response:
        async with self.front.client() as ann:
            path = f"/conversations/{conversation.id}/runs"
            return await ann.post(path, json=QUESTION, headers=headers)

    async def deliver(self, *bodies: str, **headers: str) -> object:
        async with self.worker.client(None) as adapter:
            answer = await adapter.post(EVENTS, json=batch(bodies), headers=headers)
        assert answer.status_code == 200
        return answer.json()

    async def run(self, answer: httpx.Response) -> Run:
        return await self.front.records.runs.get(answer.json()["runId"], principal=ANN)


async def test_a_background_run_waits_in_the_queue_and_is_worked_on_where_its_ticket_comes() -> (
    None
):
    two = Two()
    conversation = await two.front.conversation()

    begun = await two.asked(conversation)
    before = await two.run(begun)
    answer = await two.deliver(*two.queue.messages)
    after = await two.run(begun)

    assert begun.status_code == 202
    assert begun.headers["location"] == f"/runs/{before.id}"
    assert (before.state, after.state, answer) == ("queued", "completed", NOTHING)
    kept = await two.front.kept(conversation, messages=2)
    assert [message.content for message in kept] == [QUESTION["question"], "It is here [1]."]


async def test_the_queue_never_holds_what_was_asked() -> None:
    two = Two()

    await two.asked(await two.front.conversation())

    (ticket,) = two.queue.tickets
    assert "planted" not in two.queue.messages[0]
    assert (ticket.tenant, ticket.subject, ticket.path_prefix) == ("acme", "ann", "src/")


async def test_all_runs_of_a_batch_are_worked_on_at_once() -> None:
    met = asyncio.Barrier(3)  # two runs and this test
    two = Two(scripted_work(met.wait))
    for _ in range(2):
        await two.asked(await two.front.conversation())

    async with asyncio.timeout(10):
        delivering = asyncio.create_task(two.deliver(*two.queue.messages))
        await met.wait()
        answer = await delivering

    assert answer == NOTHING


async def test_a_ticket_that_came_before_or_to_nobody_is_through() -> None:
    two = Two()
    conversation = await two.front.conversation()
    begun = await two.asked(conversation)
    await two.deliver(*two.queue.messages)
    ended = await two.run(begun)
    gone = RunTicket(tenant="acme", subject="ann", run_id="none-1").to_json()

    answer = await two.deliver(*two.queue.messages, gone, *two.queue.messages)

    assert answer == NOTHING
    assert await two.run(begun) == ended
    assert len(await two.front.kept(conversation, messages=2)) == 2


async def test_only_what_was_not_taken_up_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    two = Two()
    begun = [await two.asked(await two.front.conversation()) for _ in range(2)]
    store, adopt = two.worker.records.runs, two.worker.records.runs.adopt

    async def away(run: Run, **given: Any) -> Run:  # noqa: ANN401 - the store's own
        if run.id == begun[0].json()["runId"]:
            raise StoreUnavailable("away")
        return await adopt(run, **given)

    monkeypatch.setattr(store, "adopt", away)
    answer = await two.deliver(*two.queue.messages, "planted, and no ticket")

    assert answer == {"batchItemFailures": [{"itemIdentifier": "m0"}, {"itemIdentifier": "m2"}]}
    assert [(await two.run(one)).state for one in begun] == ["queued", "completed"]


async def test_a_worker_that_stops_leaves_its_tickets() -> None:
    two = Two()
    begun = await two.asked(await two.front.conversation())
    await two.worker.engine.drain(1)

    answer = await two.deliver(*two.queue.messages)

    assert answer == {"batchItemFailures": [{"itemIdentifier": "m0"}]}
    assert (await two.run(begun)).state == "queued"


async def test_a_run_that_its_asker_may_not_have_any_more_ends_and_says_so() -> None:
    two = Two()
    conversation = await two.front.conversation()
    begun = await two.asked(conversation)
    project = await two.front.records.projects.get(conversation.project_id, tenant="acme")
    two.front.rows.projects["acme", project.id] = replace(project, members={})

    answer = await two.deliver(*two.queue.messages)

    async with two.front.client() as ann:
        run = (await ann.get(begun.headers["location"])).json()
    assert answer == NOTHING
    assert (run["state"], run["code"]) == ("failed", "PROJECT_NOT_FOUND")


@pytest.mark.parametrize(
    "event",
    [
        b"",
        b"planted",
        b"\xff",
        b"[" * 100_000,
        b"null",
        b"[]",
        b"{}",
        b'{"Records": null}',
        b'{"Records": [null, 7, {}]}',
        json.dumps({"source": "aws.events", "detail-type": "Scheduled Event"}).encode(),
        json.dumps({"Records": [{"eventSource": "aws:s3", "s3": {}}]}).encode(),
        json.dumps({"Records": [{"eventSource": "aws:sqs", "messageId": 7, "body": "x"}]}).encode(),
        json.dumps({"Records": [{"eventSource": "aws:sqs", "messageId": "m0"}]}).encode(),
    ],
)
async def test_any_other_event_is_ignored(event: bytes) -> None:
    async with Two().worker.client(None) as adapter:
        answer = await adapter.post(EVENTS, content=event)

    assert (answer.status_code, answer.json()) == (200, NOTHING)


async def test_without_the_adapter_there_is_no_such_route() -> None:
    app = FakeApp()
    async with app.client() as ann:
        answers = [await ann.request(method, EVENTS, json={}) for method in ("POST", "GET")]
        nowhere = await ann.post("/internal/nowhere", json={})

    for answer in answers:
        assert (answer.status_code, answer.content) == (404, nowhere.content)


async def test_the_route_is_not_in_the_schema() -> None:
    async with Two().worker.client(None) as adapter:
        document = (await adapter.get("/openapi.json")).json()

    assert EVENTS not in document["paths"]


@pytest.mark.parametrize("left_s", [5.01, -100.0])
async def test_a_run_ends_a_margin_before_the_function_is_stopped(left_s: float) -> None:
    two = Two(scripted_work(TokenDelta(text="It is"), asyncio.Event().wait))
    begun = await two.asked(await two.front.conversation())
    until = two.worker.clock.now() + timedelta(seconds=left_s)
    context = {"request_id": "r1", "deadline": int(until.timestamp() * 1_000)}

    async with asyncio.timeout(10):
        await two.deliver(*two.queue.messages, **{"x-amzn-lambda-context": json.dumps(context)})

    assert (await two.run(begun)).state == "timed_out"


@pytest.mark.parametrize(
    "context", ["", "planted", "null", "{}", '{"deadline": null}', '{"deadline": "soon"}', "[1]"]
)
async def test_a_context_that_tells_no_deadline_sets_none(context: str) -> None:
    two = Two()
    begun = await two.asked(await two.front.conversation())

    await two.deliver(*two.queue.messages, **{"x-amzn-lambda-context": context})

    assert (await two.run(begun)).state == "completed"


async def test_the_same_request_again_gets_the_same_run_and_one_ticket() -> None:
    two = Two()
    conversation = await two.front.conversation()

    first = await two.asked(conversation, **{"Idempotency-Key": "key"})
    await two.deliver(*two.queue.messages)
    second = await two.asked(conversation, **{"Idempotency-Key": "key"})

    assert (first.status_code, first.json()) == (second.status_code, second.json())
    assert len(two.queue.messages) == 1


async def test_a_queue_that_is_away_is_503_and_the_key_may_be_tried_again() -> None:
    two = Two()
    conversation = await two.front.conversation()
    two.queue.error = QueueUnavailable("away")

    refused = await two.asked(conversation, **{"Idempotency-Key": "key"})
    two.queue.error = None
    again = await two.asked(conversation, **{"Idempotency-Key": "key"})

    assert refused.status_code == 503
    assert refused.json()["detail"]["code"] == "QUEUE_UNAVAILABLE"
    assert again.status_code == 202
    (ticket,) = two.queue.tickets
    assert ticket.run_id == again.json()["runId"]
    async with two.front.client() as ann:
        before = (await ann.get(f"/runs/{conversation.id}-1")).json()
    assert (before["state"], before["code"]) == ("failed", "QUEUE_UNAVAILABLE")


async def test_a_cancel_before_the_ticket_came_is_the_end() -> None:
    two = Two()
    conversation = await two.front.conversation()
    begun = await two.asked(conversation)

    async with two.front.client() as ann:
        cancelled = await ann.post(f"{begun.headers['location']}/cancel")
    answer = await two.deliver(*two.queue.messages)

    assert (cancelled.status_code, cancelled.json()["state"]) == (202, "cancelled")
    assert answer == NOTHING
    assert (await two.run(begun)).state == "cancelled"
    assert (await two.front.kept(conversation, messages=2))[1].content == ""


async def test_a_deletion_before_the_ticket_came_leaves_nothing_to_do() -> None:
    two = Two()
    conversation = await two.front.conversation()
    begun = await two.asked(conversation)

    async with two.front.client() as ann:
        deleted = await ann.delete(f"/conversations/{conversation.id}")
        answer = await two.deliver(*two.queue.messages)
        run = await ann.get(begun.headers["location"])

    assert (deleted.status_code, answer, run.status_code) == (204, NOTHING, 404)


async def test_no_log_record_holds_what_a_message_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    two = Two()
    await two.asked(await two.front.conversation())

    await two.deliver(*two.queue.messages, "planted", '{"version": 1, "tenant": "planted"}')

    assert caplog.records
    assert "planted" not in "".join(str(vars(record)) for record in caplog.records)
