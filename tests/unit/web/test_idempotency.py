"""Idempotency-Key on every POST: one answer a key, whatever happens meanwhile."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from ibid.domain.answers import TurnInput, TurnPause, TurnResult
from ibid.domain.conversations import Conversation
from ibid.domain.errors import ModelUnavailable, StoreUnavailable
from ibid.domain.events import TokenDelta, TurnEvent
from ibid.domain.projects import GitSource
from ibid.ports.idempotency import KeyScope
from ibid.runs.turns import Proceed, Work
from ibid.web.claimant import KeyLimits
from ibid.web.idempotency import Idempotency
from ibid.web.idempotency_keys import Likeness
from tests.fakes.app import ANN, BOB, EVE, FakeApp, pausing_work, scripted_turn, scripted_work

KEY = {"Idempotency-Key": "k1"}
STREAM = {"Accept": "text/event-stream"}
QUESTION = {"question": "Where is the total?"}
QUICK = KeyLimits(poll_s=0.001)
HEADERS = ("location", "ibid-run-id", "content-type")


def quick(work: Work | None = None) -> FakeApp:
    return FakeApp(work, lambda services: replace(services, key_limits=QUICK))


class Counted:
    """Work that counts how often it was begun."""

    def __init__(self, work: Work) -> None:
        self.times = 0
        self._work = work

    def __call__(
        self, turn: TurnInput, proceed: Proceed
    ) -> AsyncIterator[TurnEvent | TurnResult | TurnPause]:
        self.times += 1
        return self._work(turn, proceed)


def same(one: httpx.Response, other: httpx.Response) -> bool:
    return (one.status_code, one.content, *map(one.headers.get, HEADERS)) == (
        other.status_code,
        other.content,
        *map(other.headers.get, HEADERS),
    )


def messages(conversation: Conversation) -> str:
    return f"/conversations/{conversation.id}/messages"


async def test_every_post_gives_its_answer_again_and_does_its_work_once() -> None:
    app = quick()
    project = await app.project(source=GitSource(url="https://git.test/shop"))
    conversation = await app.conversation(project=project)
    posts: Mapping[str, Mapping[str, object]] = {
        "/projects": {"name": "shop"},
        f"/projects/{project.id}/uploads": {"fileName": "shop.zip", "bytes": 4},
        f"/projects/{project.id}/index": {},
        "/conversations": {"projectId": project.id, "title": "Carts"},
        messages(conversation): QUESTION,
        f"/conversations/{conversation.id}/runs": QUESTION,
        "/ask": {"dataset_id": project.id, **QUESTION},
        "/feedback": {"thread_id": conversation.id, "rating": "up"},
        f"/runs/{conversation.id}-1/cancel": {},
    }

    async with app.client(headers=KEY) as ann:
        for path, body in posts.items():
            first = await ann.post(path, json=body)
            if path.endswith("/runs"):
                await app.kept(conversation, messages=4)
            second = await ann.post(path, json=body)

            assert first.status_code in {200, 201, 202}, path
            assert same(first, second), path
        projects = (await ann.get("/projects")).json()["items"]
        conversations = (await ann.get("/conversations")).json()["items"]
        kept = (await ann.get(messages(conversation))).json()["items"]

    assert len(projects) == 2
    assert len(conversations) == 3
    assert len(kept) == 4
    assert len(app.indexed) == 1


async def test_a_run_is_told_again_as_it_is_asked_for() -> None:
    work = Counted(scripted_turn("It is ", "here [1]."))
    app = quick(work)
    conversation = await app.conversation()
    async with app.client(headers=KEY) as ann:
        stream = await ann.post(messages(conversation), json=QUESTION, headers=STREAM)
        body = await ann.post(messages(conversation), json=QUESTION)
        again = await ann.post(messages(conversation), json=QUESTION, headers=STREAM)
        body_again = await ann.post(messages(conversation), json=QUESTION)

    assert work.times == 1
    assert same(stream, again)
    assert same(body, body_again)
    assert body.json()["content"] == "It is here [1]."
    assert body.headers["ibid-run-id"] == stream.headers["ibid-run-id"]


async def test_a_run_that_failed_is_the_answer_again() -> None:
    work = Counted(scripted_work(TokenDelta(text="It is"), ModelUnavailable("broke off")))
    app = quick(work)
    conversation = await app.conversation()
    async with app.client(headers=KEY) as ann:
        answers = [await ann.post(messages(conversation), json=QUESTION) for _ in range(2)]

    assert work.times == 1
    assert answers[0].json()["code"] == "LLM_UNAVAILABLE"
    assert same(*answers)


async def test_a_second_request_follows_the_run_of_the_first_and_may_leave() -> None:
    go = asyncio.Event()
    work = Counted(scripted_work(TokenDelta(text="It is"), go.wait, TokenDelta(text=" here.")))
    app = quick(work)
    conversation = await app.conversation()
    async with app.client(headers={**KEY, **STREAM}) as ann:
        first = asyncio.create_task(ann.post(messages(conversation), json=QUESTION))
        await app.begun(conversation)
        second = asyncio.create_task(ann.post(messages(conversation), json=QUESTION))
        leaving = asyncio.create_task(ann.post(messages(conversation), json=QUESTION))
        await asyncio.sleep(0.05)

        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        go.set()
        answers = await asyncio.gather(first, second)

    assert work.times == 1
    assert same(*answers)
    assert b" here." in answers[0].content


async def test_requests_at_once_do_the_work_once() -> None:
    app = quick()
    async with app.client(headers=KEY) as ann:
        answers = await asyncio.gather(
            *(ann.post("/projects", json={"name": "shop"}) for _ in range(8))
        )
        listed = (await ann.get("/projects")).json()["items"]

    assert {answer.content for answer in answers} == {answers[0].content}
    assert len(listed) == 1


async def test_another_body_is_refused_in_the_surface_s_case_or_any() -> None:
    app = quick()
    project = await app.project()
    async with app.client(headers=KEY) as ann:
        await ann.post("/projects", json={"name": "shop"})
        await ann.post("/ask", json={"dataset_id": project.id, **QUESTION})

        answers = [
            await ann.post("/projects", json={"name": "another"}),
            await ann.post("/ask", json={"dataset_id": project.id, "question": "And?"}),
        ]

    for answer in answers:
        assert answer.status_code == 422
        assert answer.json()["detail"]["code"] == "IDEMPOTENCY_KEY_REUSED"


async def test_a_key_is_its_caller_s_and_its_path_s() -> None:
    app = quick()
    ids = set()
    for principal in (ANN, BOB, EVE):
        async with app.client(principal, headers=KEY) as client:
            ids.add((await client.post("/projects", json={"name": "shop"})).json()["id"])
    conversation = await app.conversation()
    async with app.client(headers=KEY) as ann:
        begun = await ann.post("/conversations", json={"projectId": conversation.project_id})

    assert len(ids) == 3
    assert begun.status_code == 201


@pytest.mark.parametrize("key", ["", "a b", "é".encode(), "x" * 256])
async def test_a_malformed_key_is_422_and_nothing_is_done(key: str | bytes) -> None:
    app = quick()
    async with app.client() as ann:
        raw = key if isinstance(key, bytes) else key.encode()
        answer = await ann.post(
            "/projects", json={"name": "shop"}, headers=[(b"Idempotency-Key", raw)]
        )
        listed = (await ann.get("/projects")).json()["items"]

    assert answer.status_code == 422
    assert list(answer.json()["detail"]["fields"]) == ["Idempotency-Key"]
    assert listed == []


async def test_what_was_refused_can_be_asked_again_with_its_key() -> None:
    app = quick()
    project = await app.project(ready=False)
    conversation = await app.conversation(project=project)
    async with app.client(headers=KEY) as ann:
        invalid = await ann.post("/projects", json={"name": ""})
        valid = await ann.post("/projects", json={"name": "shop"})
        early = await ann.post(messages(conversation), json=QUESTION)
        missing = await ann.post("/nothing", json={})
        await app.make_ready(project)
        answer = await ann.post(messages(conversation), json=QUESTION)

    statuses = [one.status_code for one in (invalid, valid, early, missing, answer)]
    assert statuses == [422, 201, 409, 404, 200]


async def test_what_failed_can_be_asked_again_at_once_and_is_made_once() -> None:
    app = quick()
    create = app.records.projects.create

    async def away(project: object, **_: object) -> None:
        await create(project)  # type: ignore[arg-type] # as it came
        raise StoreUnavailable("it was kept, but nobody was told")

    async with app.client(headers=KEY) as ann:
        app.records.projects.create = away  # type: ignore[method-assign] # a fault in one call
        failed = await ann.post("/projects", json={"name": "shop"})
        app.records.projects.create = create  # type: ignore[method-assign] # over again
        made = await ann.post("/projects", json={"name": "shop"})
        listed = (await ann.get("/projects")).json()["items"]

    assert failed.status_code == 503
    assert made.status_code == 201
    assert [one["id"] for one in listed] == [made.json()["id"]]


async def test_a_question_whose_run_could_not_be_kept_can_be_asked_again() -> None:
    work = Counted(scripted_turn("Here [1]."))
    app = quick(work)
    project = await app.project()
    begin = app.records.runs.begin

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("the store gave no answer")

    async with app.client(headers=KEY) as ann:
        app.records.runs.begin = away  # type: ignore[assignment, method-assign] # a fault in one call
        failed = await ann.post("/ask", json={"dataset_id": project.id, **QUESTION})
        app.records.runs.begin = begin  # type: ignore[method-assign] # over again
        answer = await ann.post("/ask", json={"dataset_id": project.id, **QUESTION})
        threads = (await ann.get("/conversations")).json()["items"]

    assert (failed.status_code, answer.status_code) == (503, 200)
    assert work.times == 1
    assert [one["id"] for one in threads] == [answer.json()["thread_id"]]


class Died(BaseException):
    """Stands for the end of a process."""


async def dead_request(app: FakeApp, path: str, body: Mapping[str, object], *, at: str) -> None:
    """Let a request with the key die as it calls one of the records' methods, after its effect."""
    store, _, name = at.partition(".")
    records = getattr(app.records, store)
    method = getattr(records, name)

    async def dies(*given: object, **named: object) -> None:
        await method(*given, **named)
        raise Died

    setattr(records, name, dies)
    async with app.client(headers=KEY) as ann:
        with pytest.raises(Died):
            await ann.post(path, json=body)
    setattr(records, name, method)


async def taken_over(app: FakeApp, path: str, body: Mapping[str, object]) -> httpx.Response:
    """Ask again, from another process, for longer than a lease's term."""
    other = FakeApp(
        app.work, lambda services: replace(services, key_limits=QUICK), records=app.records
    )
    async with other.client(headers=KEY) as ann:
        asking = asyncio.create_task(ann.post(path, json=body))
        for _ in range(20):
            await asyncio.sleep(0.002)
        assert not asking.done()
        other.clock.move(QUICK.term_s)
        async with asyncio.timeout(5):
            return await asking


@pytest.mark.parametrize("at", ["idempotency.beat", "projects.create"])
async def test_a_thing_that_a_dead_request_made_is_not_made_twice(at: str) -> None:
    app = quick()
    await dead_request(app, "/projects", {"name": "shop"}, at=at)

    made = await taken_over(app, "/projects", {"name": "shop"})

    async with app.client() as ann:
        listed = (await ann.get("/projects")).json()["items"]
    assert made.status_code == 201
    assert [one["id"] for one in listed] == [made.json()["id"]]


@pytest.mark.parametrize("at", ["idempotency.beat", "jobs.begin"])
async def test_a_job_that_a_dead_request_began_is_not_begun_twice(at: str) -> None:
    app = quick()
    project = await app.project(source=GitSource(url="https://git.test/shop"))
    path = f"/projects/{project.id}/index"
    await dead_request(app, path, {}, at=at)

    begun = await taken_over(app, path, {})

    async with app.client() as ann:
        listed = (await ann.get(f"/projects/{project.id}/jobs")).json()["items"]
    assert begun.json() == {"jobId": listed[0]["id"], "enqueued": True}
    assert len(listed) == 1


@pytest.mark.parametrize("at", ["idempotency.beat", "conversations.create"])
async def test_a_conversation_that_a_dead_request_began_is_not_begun_twice(at: str) -> None:
    app = quick()
    project = await app.project()
    await dead_request(app, "/conversations", {"projectId": project.id}, at=at)

    begun = await taken_over(app, "/conversations", {"projectId": project.id})

    async with app.client() as ann:
        listed = (await ann.get("/conversations")).json()["items"]
    assert [one["id"] for one in listed] == [begun.json()["id"]]


@pytest.mark.parametrize("at", ["idempotency.beat", "conversations.create"])
async def test_a_thread_that_a_dead_request_began_is_gone_on_with(at: str) -> None:
    app = quick()
    project = await app.project()
    body = {"dataset_id": project.id, **QUESTION}
    await dead_request(app, "/ask", body, at=at)

    answer = await taken_over(app, "/ask", body)

    async with app.client() as ann:
        threads = (await ann.get("/conversations")).json()["items"]
    assert answer.json()["kind"] == "answer"
    assert [one["id"] for one in threads] == [answer.json()["thread_id"]]


@pytest.mark.parametrize("style", ["messages", "runs"])
async def test_a_run_that_a_dead_request_began_is_the_answer(style: str) -> None:
    app = quick()
    conversation = await app.conversation()
    path = f"/conversations/{conversation.id}/{style}"
    await dead_request(app, path, QUESTION, at="idempotency.finish")

    answer = await taken_over_done(app, path, conversation)

    assert answer.headers["ibid-run-id"] == f"{conversation.id}-1"
    kept = await app.kept(conversation, messages=2)
    assert len(kept) == 2


async def taken_over_done(app: FakeApp, path: str, conversation: Conversation) -> httpx.Response:
    # what finish kept is taken back: the process died on its way there
    scope = KeyScope(tenant="acme", subject="ann", method="POST", path=path, key="k1")
    record = await app.records.idempotency.get(scope.record_id, tenant="acme", now=app.clock.now())
    assert record is not None
    app.rows.keys["acme", record.id].record = replace(record, answer=None)
    await app.kept(conversation, messages=2)
    return await taken_over(app, path, QUESTION)


async def test_a_run_of_the_planned_number_that_another_request_began_is_not_the_answer() -> None:
    app = quick()
    conversation = await app.conversation()
    path = messages(conversation)
    scope = KeyScope(tenant="acme", subject="ann", method="POST", path=path, key="k1")
    async with app.client() as ann:
        body = ann.build_request("POST", path, json=QUESTION).content
        likeness = Likeness(key="k1", query=b"", body=body)
        now = app.clock.now()
        record = await app.records.idempotency.claim(
            scope,
            fingerprint=likeness.fingerprint,
            owner="dead",
            now=now,
            expires_at=now.replace(year=now.year + 1),
        )
        await app.records.idempotency.beat(
            record.id, tenant="acme", owner="dead", plan=f"{conversation.id}-1 {uuid.uuid4().hex}"
        )
        other = await ann.post(path, json={"question": "Something else?"})

    answer = await taken_over(app, path, QUESTION)

    assert other.headers["ibid-run-id"] == f"{conversation.id}-1"
    assert answer.headers["ibid-run-id"] == f"{conversation.id}-2"


async def test_a_pause_and_its_answer_are_told_again() -> None:
    app = quick(pausing_work(scripted_turn("Here [1].")))
    project = await app.project()
    async with app.client(headers=KEY) as ann:
        asked = [
            await ann.post("/ask", json={"dataset_id": project.id, **QUESTION}) for _ in range(2)
        ]
        thread = asked[0].json()["thread_id"]
        answers = [
            await ann.post("/resume", json={"thread_id": thread, "message": "the shop's"})
            for _ in range(2)
        ]
        late = await ann.post("/ask", json={"dataset_id": project.id, **QUESTION})

    assert same(*asked)
    assert same(*answers)
    assert same(asked[0], late)
    assert answers[0].json()["narration"] == "Here [1]."


async def test_no_kept_answer_shows_what_was_sent() -> None:
    app = quick()
    async with app.client(headers=KEY) as ann:
        await ann.post("/projects", json={"name": "the crown jewels"})

    ((_, row),) = app.rows.keys.items()
    assert row.record.answer is not None
    assert b"crown" not in row.record.answer.body


async def test_the_key_of_a_deleted_conversation_is_gone() -> None:
    app = quick()
    conversation = await app.conversation()
    async with app.client(headers=KEY) as ann:
        await ann.post(messages(conversation), json=QUESTION)
        await ann.delete(f"/conversations/{conversation.id}")
        answer = await ann.post(messages(conversation), json=QUESTION)

    assert answer.status_code == 404
    assert app.rows.keys == {}


async def test_a_body_over_the_limit_is_413_with_a_key_too() -> None:
    app = FakeApp(
        change=lambda services: replace(
            services, limits=replace(services.limits, max_body_bytes=100)
        )
    )
    async with app.client(headers=KEY) as ann:
        answer = await ann.post("/projects", json={"name": "x" * 100})

    assert answer.status_code == 413


async def test_a_body_over_the_limit_is_413_as_it_comes() -> None:
    app = FakeApp(
        change=lambda services: replace(
            services, limits=replace(services.limits, max_body_bytes=100)
        )
    )

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 10

    async with app.client(headers=KEY) as ann:
        answer = await ann.post("/projects", content=pieces())

    assert answer.status_code == 413
    assert answer.json()["detail"]["code"] == "BODY_TOO_LARGE"


async def test_a_client_that_goes_before_its_body_s_end_is_sent_nothing() -> None:
    app = quick()
    gone = iter([{"type": "http.request", "body": b"{", "more_body": True}])

    async def receive() -> Message:
        return next(gone, {"type": "http.disconnect"})

    async def send(message: Message) -> None:
        pytest.fail(f"sent {message['type']}")

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/projects",
        "query_string": b"",
        "headers": [(b"idempotency-key", b"k1")],
    }
    await app.app(scope, receive, send)

    assert app.rows.keys == {}


async def test_an_answer_too_large_to_keep_is_sent_and_its_key_let_go(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = replace(QUICK, max_answer_bytes=10)
    app = FakeApp(change=lambda services: replace(services, key_limits=limits))

    async with app.client(headers=KEY) as ann:
        answers = [await ann.post("/projects", json={"name": "shop"}) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    assert "answer too large for its key" in caplog.text


async def test_a_fault_of_the_key_store_is_500_and_logged_by_its_type(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = quick()

    async def broken(*_: object, **__: object) -> None:
        raise ValueError("the secret key")

    app.records.idempotency.claim = broken  # type: ignore[assignment, method-assign] # a fault in one call
    async with app.client(headers=KEY) as ann:
        answer = await ann.post("/projects", json={"name": "shop"})

    assert answer.status_code == 500
    assert answer.json()["detail"]["code"] == "INTERNAL_ERROR"
    assert "secret" not in caplog.text


async def test_an_answer_that_comes_in_pieces_is_kept_whole() -> None:
    app = quick()

    async def piecemeal(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": b"in ", "more_body": True})
        await send({"type": "http.response.body", "body": b"pieces"})
        with pytest.raises(StopAsyncIteration):
            await receive()

    async def receive() -> Message:
        if bodies:
            return {"type": "http.request", "body": bodies.pop()}
        raise StopAsyncIteration

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(dict(message))

    edge = Idempotency(piecemeal, app.services)
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/projects",
        "query_string": b"",
        "headers": [(b"idempotency-key", b"k1")],
    }
    for _ in range(2):
        bodies = [b"{}"]
        await edge(scope, receive, send)

    assert [one.get("body") for one in sent] == [None, b"in pieces", None, b"in pieces"]


async def test_an_upload_s_form_passes_a_key_by() -> None:
    app = quick()
    project = await app.project()
    async with app.client(headers=KEY) as ann:
        announced = (
            await ann.post(
                f"/projects/{project.id}/uploads", json={"fileName": "shop.zip", "bytes": 4}
            )
        ).json()
        posts = [
            await ann.post(announced["url"], data=announced["fields"], files={"file": b"none"})
            for _ in range(2)
        ]

    assert [one.status_code for one in posts] == [204, 404]


async def test_a_store_of_keys_that_is_away_is_503() -> None:
    app = quick()

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("the store gave no answer")

    app.records.idempotency.claim = away  # type: ignore[assignment, method-assign] # a fault in one call
    async with app.client(headers=KEY) as ann:
        answer = await ann.post("/projects", json={"name": "shop"})

    assert answer.status_code == 503
    assert "retry-after" in answer.headers


async def test_a_first_request_that_lives_on_is_waited_for_then_409() -> None:
    app = FakeApp(change=lambda services: replace(services, key_limits=replace(QUICK, wait_s=0.0)))
    create, hold, go = app.records.projects.create, asyncio.Event(), asyncio.Event()

    async def slow(project: object, **_: object) -> None:
        hold.set()
        await go.wait()
        await create(project)  # type: ignore[arg-type] # as it came

    app.records.projects.create = slow  # type: ignore[method-assign] # one that takes long
    async with app.client(headers=KEY) as ann:
        first = asyncio.create_task(ann.post("/projects", json={"name": "shop"}))
        await hold.wait()
        second = await ann.post("/projects", json={"name": "shop"})
        go.set()

    assert second.status_code == 409
    assert second.json()["detail"]["code"] == "IDEMPOTENCY_KEY_IN_USE"
    assert "retry-after" in second.headers
    assert (await first).status_code == 201
