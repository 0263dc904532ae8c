"""The Ask surface: datasets, questions, what is asked back and by whom it is answered, ratings."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest

from ibid.domain.answers import Clarification, FinishReason, Resumption, TurnInput, TurnPause
from ibid.domain.conversations import Run
from ibid.domain.errors import GraphChanged, ModelUnavailable
from ibid.domain.events import TokenDelta
from ibid.domain.projects import Role
from ibid.runs.turns import Proceed, Work
from tests.fakes.app import ANN, BOB, FakeApp, pausing_work, scripted_turn, scripted_work
from tests.fakes.event_source import EventSourceReader

STREAM = {"Accept": "text/event-stream"}
WHERE = "Where is the total?"
ANSWER = scripted_turn("It is ", "here [1].")


def read(stream: httpx.Response) -> list[tuple[str, Any]]:
    return [
        (event.type, json.loads(event.data)) for event in EventSourceReader().feed(stream.content)
    ]


async def asked(app: FakeApp, **more: object) -> dict[str, Any]:
    """Ask about a new dataset of Ann's, and return the envelope."""
    project = await app.project()
    async with app.client() as ann:
        answer = await ann.post("/ask", json={"dataset_id": project.id, "question": WHERE, **more})
    assert answer.status_code == 200
    envelope: dict[str, Any] = answer.json()
    return envelope


async def resumed(app: FakeApp, envelope: Mapping[str, Any], **body: object) -> httpx.Response:
    given = {"thread_id": envelope["thread_id"], "message": "the shop's", **body}
    async with app.client() as ann:
        return await ann.post("/resume", json=given)


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["detail"]["code"]


async def test_datasets_are_the_caller_s_projects_that_can_be_asked() -> None:
    app = FakeApp()
    mine, lexical = await app.project(), await app.project(signature=None)
    await app.project(ready=False)
    await app.project(signature="other:model:3")
    await app.project(BOB)
    shared = await app.project(BOB, members={ANN.subject: Role.VIEWER})

    async with app.client() as ann:
        listed = (await ann.get("/datasets")).json()

    assert {one["dataset_id"] for one in listed["items"]} == {mine.id, lexical.id, shared.id}
    assert listed["next_cursor"] is None
    assert set(listed["items"][0]) == {
        "dataset_id",
        "name",
        "path_count",
        "chunk_count",
        "commit_sha",
        "created_at",
    }


async def test_datasets_come_by_page() -> None:
    app = FakeApp()
    ids = {(await app.project()).id for _ in range(3)}
    seen, cursor = set(), None

    async with app.client() as ann:
        while True:
            query = {"limit": 2} if cursor is None else {"limit": 2, "cursor": cursor}
            page = (await ann.get("/datasets", params=query)).json()
            seen |= {one["dataset_id"] for one in page["items"]}
            if (cursor := page["next_cursor"]) is None:
                break

    assert seen == ids


async def test_a_question_without_a_thread_begins_one() -> None:
    app = FakeApp(ANSWER)

    envelope = await asked(app)

    async with app.client() as ann:
        (thread,) = (await ann.get("/conversations")).json()["items"]
        kept = (await ann.get(f"/conversations/{thread['id']}/messages")).json()["items"]
    assert envelope["thread_id"] == thread["id"]
    assert thread["title"] == WHERE
    assert [message["content"] for message in kept] == [WHERE, envelope["narration"]]
    assert envelope["kind"] == "answer"
    assert envelope["narration"] == "It is here [1]."


async def test_a_stream_ends_with_the_envelope_that_json_is() -> None:
    app = FakeApp(ANSWER)
    project = await app.project()
    async with app.client(headers={"Idempotency-Key": "k"}) as ann:
        body = {"dataset_id": project.id, "question": WHERE}
        stream = await ann.post("/ask", json=body, headers=STREAM)
        whole = await ann.post("/ask", json=body)

    names = [name for name, _ in read(stream)]
    assert names == ["status", "status", "token_delta", "token_delta", "answer"]
    assert b"data: " + whole.content + b"\n" in stream.content
    assert stream.headers["ibid-run-id"] == read(stream)[-1][1]["run_id"]
    assert stream.headers["location"] == f"/runs/{stream.headers['ibid-run-id']}"
    assert stream.headers["cache-control"] == "no-cache"


async def test_a_question_goes_on_with_its_thread() -> None:
    app = FakeApp(ANSWER)
    first = await asked(app)
    async with app.client() as ann:
        thread = (await ann.get(f"/conversations/{first['thread_id']}")).json()
        body = {"dataset_id": thread["projectId"], "question": "And tax?"}
        second = (await ann.post("/ask", json={**body, "thread_id": thread["id"]})).json()

    assert second["thread_id"] == first["thread_id"]
    assert second["run_id"] != first["run_id"]
    assert second["trace_id"] != first["trace_id"]


async def test_a_failure_after_the_start_is_an_error_either_way() -> None:
    app = FakeApp(scripted_work(TokenDelta(text="It is"), ModelUnavailable("broke off")))
    project = await app.project()
    async with app.client(headers={"Idempotency-Key": "k"}) as ann:
        body = {"dataset_id": project.id, "question": WHERE}
        stream = await ann.post("/ask", json=body, headers=STREAM)
        whole = await ann.post("/ask", json=body)

    assert read(stream)[-1] == ("error", whole.json())
    assert whole.status_code == 200
    assert whole.json() == {
        "code": "LLM_UNAVAILABLE",
        "message": "broke off",
        "run_id": stream.headers["ibid-run-id"],
        "finish_reason": "error",
    }


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"question": ""},
        {"question": " \n"},
        {"question": "x" * 4_001},
        {"question": "Where?", "threadId": "1"},
        {"question": "Where?", "thread_id": ""},
        {"question": "Where?", "multitask_strategy": "rollback"},
        {"question": "Where?", "on_disconnect": "wait"},
        {"question": "Where?", "onDisconnect": "stop"},
    ],
)
async def test_a_malformed_question_is_422_and_begins_nothing(body: dict[str, object]) -> None:
    app = FakeApp()
    project = await app.project()

    async with app.client() as ann:
        answer = await ann.post("/ask", json={"dataset_id": project.id, **body})
        threads = (await ann.get("/conversations")).json()["items"]

    assert refusal(answer) == (422, "VALIDATION_ERROR")
    assert threads == []


async def test_who_may_not_ask_begins_nothing() -> None:
    app = FakeApp()
    unready, foreign, mine = (
        await app.project(ready=False),
        await app.project(BOB),
        await app.project(),
    )
    about, theirs = await app.conversation(), await app.conversation(BOB)
    bodies = [
        {"dataset_id": unready.id},
        {"dataset_id": foreign.id},
        {"dataset_id": mine.id, "thread_id": theirs.id},
        {"dataset_id": mine.id, "thread_id": "never"},
        {"dataset_id": mine.id, "thread_id": about.id},
    ]

    async with app.client() as ann:
        answers = [await ann.post("/ask", json={"question": WHERE, **body}) for body in bodies]
        threads = (await ann.get("/conversations")).json()["items"]

    assert [refusal(answer) for answer in answers] == [
        (409, "PROJECT_NOT_READY"),
        (404, "PROJECT_NOT_FOUND"),
        (404, "CONVERSATION_NOT_FOUND"),
        (404, "CONVERSATION_NOT_FOUND"),
        (422, "VALIDATION_ERROR"),
    ]
    assert list(answers[-1].json()["detail"]["fields"]) == ["dataset_id"]
    assert [thread["id"] for thread in threads] == [about.id]


async def test_a_stopping_server_leaves_no_thread_behind() -> None:
    app = FakeApp()
    project = await app.project()
    await app.engine.drain(timeout_s=1)

    async with app.client() as ann:
        answer = await ann.post("/ask", json={"dataset_id": project.id, "question": WHERE})
        threads = (await ann.get("/conversations")).json()["items"]

    assert refusal(answer) == (503, "SHUTTING_DOWN")
    assert threads == []


async def test_a_busy_thread_names_its_run_in_snake_case() -> None:
    go = asyncio.Event()
    app = FakeApp(scripted_work(TokenDelta(text="It is"), go.wait))
    conversation = await app.conversation()
    body = {
        "dataset_id": conversation.project_id,
        "thread_id": conversation.id,
        "question": WHERE,
    }
    async with app.client() as ann:
        first = asyncio.create_task(ann.post("/ask", json=body))
        run = await app.begun(conversation)
        answer = await ann.post("/ask", json=body)
        go.set()
        await first

    assert refusal(answer) == (409, "THREAD_BUSY")
    assert answer.json()["detail"]["run_id"] == run.id


async def test_a_pause_asks_back_and_its_answer_finishes_the_same_turn() -> None:
    app = FakeApp(pausing_work(ANSWER))

    asked_back = await asked(app)
    answer = await resumed(app, asked_back, interrupt_id=asked_back["interrupt_id"])

    assert asked_back["kind"] == "clarification"
    assert (asked_back["resumable"], asked_back["interrupt_id"]) == (True, "interrupt-1")
    assert asked_back["clarification"] == {
        "question": "Which cart?",
        "options": ["the shop's", "the API's"],
    }
    envelope = answer.json()
    assert envelope["kind"] == "answer"
    assert (envelope["trace_id"], envelope["thread_id"]) == (
        asked_back["trace_id"],
        asked_back["thread_id"],
    )
    assert envelope["run_id"] == answer.headers["ibid-run-id"] != asked_back["run_id"]
    async with app.client() as ann:
        path = f"/conversations/{envelope['thread_id']}/messages"
        kept = (await ann.get(path)).json()["items"]
    assert [message["content"] for message in kept if message["role"] == "user"] == [
        WHERE,
        f"{WHERE} (the shop's)",
    ]
    assert [run.id for run in app.checked] == [asked_back["run_id"]]


async def test_a_resumption_streams_too() -> None:
    app = FakeApp(pausing_work(ANSWER))
    asked_back = await asked(app)

    async with app.client(headers=STREAM) as ann:
        body = {"thread_id": asked_back["thread_id"], "message": "the shop's"}
        stream = await ann.post("/resume", json=body)

    assert [name for name, _ in read(stream)][-2:] == ["token_delta", "answer"]


async def test_what_is_still_ambiguous_pauses_again() -> None:
    second = TurnPause(
        interrupt_id="interrupt-2",
        node="clarify",
        clarification=Clarification(question="Which total?"),
    )
    app = FakeApp(pausing_work(scripted_work(second)))
    first = await asked(app)

    again = (await resumed(app, first)).json()
    stale = await resumed(app, first, interrupt_id=first["interrupt_id"])
    app.work = ANSWER
    answer = await resumed(app, again, message="the net one", interrupt_id="interrupt-2")

    assert (again["interrupt_id"], again["clarification"]["options"]) == ("interrupt-2", [])
    assert refusal(stale) == (409, "PAUSE_RESOLVED")
    assert stale.json()["detail"]["run_id"] == again["run_id"]
    assert answer.json()["kind"] == "answer"
    assert answer.json()["trace_id"] == first["trace_id"]


async def test_a_thread_that_waits_for_nothing_is_409() -> None:
    app = FakeApp(ANSWER)
    envelope = await asked(app)
    empty = await app.conversation()

    answers = [
        await resumed(app, envelope),
        await resumed(app, envelope, interrupt_id="interrupt-1"),
        await resumed(app, {"thread_id": empty.id}),
    ]

    assert [refusal(answer) for answer in answers] == [(409, "NOTHING_PENDING")] * 3


async def test_an_interrupt_of_another_thread_is_stale() -> None:
    app = FakeApp(pausing_work(ANSWER))
    asked_back = await asked(app)

    answer = await resumed(app, asked_back, interrupt_id="foreign")

    assert refusal(answer) == (409, "INTERRUPT_STALE")


async def test_a_second_decision_is_told_the_first_one_s_outcome() -> None:
    app = FakeApp(pausing_work(ANSWER))
    asked_back = await asked(app)
    first = await resumed(app, asked_back)

    later = [
        await resumed(app, asked_back, message="the API's", interrupt_id="interrupt-1"),
        await resumed(app, asked_back),
    ]

    for answer in later:
        assert refusal(answer) == (409, "PAUSE_RESOLVED")
        assert answer.json()["detail"]["run_id"] == first.json()["run_id"]
        assert answer.json()["detail"]["state"] == "completed"


async def test_an_old_pause_stays_resolved_when_the_thread_has_gone_on() -> None:
    app = FakeApp(pausing_work(ANSWER))
    asked_back = await asked(app)
    first = await resumed(app, asked_back)
    app.work = ANSWER
    async with app.client() as ann:
        path = f"/conversations/{asked_back['thread_id']}/messages"
        await ann.post(path, json={"question": "And tax?"})

    answers = [
        await resumed(app, asked_back, interrupt_id="interrupt-1"),
        await resumed(app, asked_back),
    ]

    assert [refusal(answer) for answer in answers] == [
        (409, "PAUSE_RESOLVED"),
        (409, "NOTHING_PENDING"),
    ]
    assert answers[0].json()["detail"]["run_id"] == first.json()["run_id"]


async def test_of_decisions_at_once_one_counts_and_the_others_hear_of_it() -> None:
    app = FakeApp(pausing_work(ANSWER))
    asked_back = await asked(app)

    answers = await asyncio.gather(
        *(resumed(app, asked_back, message=f"cart {number}") for number in range(8))
    )

    done = [answer for answer in answers if answer.status_code == 200]
    lost = [answer for answer in answers if answer.status_code != 200]
    assert len(done) == 1
    for answer in lost:
        assert refusal(answer) == (409, "PAUSE_RESOLVED")
        assert answer.json()["detail"]["run_id"] == done[0].headers["ibid-run-id"]


async def test_a_failed_resumption_takes_the_same_answer_once_more_and_no_other() -> None:
    app = FakeApp(pausing_work(scripted_work(ModelUnavailable("broke off"))))
    asked_back = await asked(app)
    failed = await resumed(app, asked_back)
    app.work = ANSWER

    other = await resumed(app, asked_back, message="the API's")
    same = await resumed(app, asked_back)

    assert failed.json()["code"] == "LLM_UNAVAILABLE"
    assert refusal(other) == (409, "PAUSE_RESOLVED")
    assert other.json()["detail"] | {"message": ""} == {
        "code": "PAUSE_RESOLVED",
        "message": "",
        "run_id": failed.json()["run_id"],
        "state": "failed",
    }
    assert same.json()["kind"] == "answer"
    assert same.json()["trace_id"] == asked_back["trace_id"]


@pytest.mark.parametrize(("between", "status"), [(25, 200), (250, 409)])
async def test_a_question_is_found_among_the_last_messages(between: int, status: int) -> None:
    app = FakeApp(pausing_work(ANSWER))
    asked_back = await asked(app)
    kept = app.rows.messages["acme", asked_back["thread_id"]]
    kept += [replace(kept[1], id=f"m{number}", run_id="later") for number in range(between)]

    answer = await resumed(app, asked_back)

    assert answer.status_code == status


@pytest.mark.parametrize("swept", [False, True])
async def test_a_pause_past_its_time_is_410_and_frees_the_thread(*, swept: bool) -> None:
    app = FakeApp(pausing_work(ANSWER))
    asked_back = await asked(app)
    app.clock.move(timedelta(days=1).total_seconds())
    if swept:
        for run in await app.records.runs.due_pauses(app.clock.now()):
            await app.records.runs.expire(run)

    answers = [
        await resumed(app, asked_back),
        await resumed(app, asked_back, interrupt_id="interrupt-1"),
    ]
    app.work = ANSWER
    async with app.client() as ann:
        path = f"/conversations/{asked_back['thread_id']}/messages"
        free = await ann.post(path, json={"question": "And tax?"})

    assert [refusal(answer) for answer in answers] == [(410, "PAUSE_EXPIRED")] * 2
    assert free.status_code == 200


async def test_a_changed_graph_is_409_and_loses_no_answer() -> None:
    app = FakeApp(pausing_work(ANSWER))
    asked_back = await asked(app)
    changed = FakeApp(
        ANSWER,
        lambda services: replace(services, check_pause=graph_changed),
        records=app.records,
    )

    refused = await resumed(changed, asked_back)
    answer = await resumed(app, asked_back)

    assert refusal(refused) == (409, "GRAPH_CHANGED")
    assert answer.json()["kind"] == "answer"


async def graph_changed(_: Run) -> None:
    raise GraphChanged("the graph 'ask' has no node 'clarify' any more")


@pytest.mark.parametrize("message", ["", " \n\t", "x" * 4_001, None, 7, "a\0b"])
async def test_an_empty_or_overlong_answer_is_422_and_the_pause_stays(message: object) -> None:
    app = FakeApp(pausing_work(ANSWER))
    asked_back = await asked(app)

    refused = await resumed(app, asked_back, message=message)
    answer = await resumed(app, asked_back, message="  x" + "y" * 3_999 + " ")

    assert refusal(refused) == (422, "VALIDATION_ERROR")
    assert answer.json()["kind"] == "answer"


async def test_the_turn_goes_on_with_the_answer_as_it_was_typed() -> None:
    given: list[TurnInput] = []

    def noted(work: Work) -> Work:
        def note(turn: TurnInput, proceed: Proceed):  # type: ignore[no-untyped-def] # noqa: ANN202 - as the work's
            given.append(turn)
            return work(turn, proceed)

        return note

    app = FakeApp(noted(pausing_work(ANSWER)))
    asked_back = await asked(app)

    await resumed(app, asked_back, message=" The SHOP's ")

    first, second = given
    assert (first.resumption, second.turn_id) == (None, first.turn_id)
    assert second.resumption == Resumption(interrupt_id="interrupt-1", answer="The SHOP's")
    assert second.run_id != first.run_id


async def test_nobody_else_can_answer_or_rate() -> None:
    app = FakeApp(pausing_work(ANSWER))
    asked_back = await asked(app)
    thread = {"thread_id": asked_back["thread_id"]}
    async with app.client(BOB) as bob:
        answers = [
            await bob.post("/resume", json={**thread, "message": "the shop's"}),
            await bob.post("/feedback", json={**thread, "rating": "up"}),
        ]

    assert [refusal(answer) for answer in answers] == [(404, "CONVERSATION_NOT_FOUND")] * 2


async def test_an_asker_who_left_the_project_can_not_go_on() -> None:
    app = FakeApp(pausing_work(ANSWER))
    project = await app.project(BOB, members={ANN.subject: Role.VIEWER})
    async with app.client() as ann:
        body = {"dataset_id": project.id, "question": WHERE}
        asked_back = (await ann.post("/ask", json=body)).json()
    left = replace(project, members={BOB.subject: Role.OWNER})
    app.rows.projects[project.tenant, project.id] = left

    answer = await resumed(app, asked_back)

    assert refusal(answer) == (404, "PROJECT_NOT_FOUND")


async def test_the_last_answer_of_a_thread_is_rated_and_rated_again() -> None:
    app = FakeApp(ANSWER)
    envelope = await asked(app)
    thread = {"thread_id": envelope["thread_id"]}
    async with app.client() as ann:
        rated = await ann.post(
            "/feedback", json={**thread, "rating": "down", "comment": " It is wrong. "}
        )
        first = await app.records.feedback.get(envelope["run_id"], tenant="acme", subject="ann")
        await ann.post("/feedback", json={**thread, "rating": "up"})
    second = await app.records.feedback.get(envelope["run_id"], tenant="acme", subject="ann")

    assert rated.status_code == 200
    assert rated.json()["run_id"] == envelope["run_id"]
    assert rated.json()["rating"] == "down"
    assert first is not None
    assert second is not None
    assert (first.rating, first.comment) == ("down", "It is wrong.")
    assert (second.rating, second.comment) == ("up", None)


async def test_a_thread_without_an_answer_can_not_be_rated() -> None:
    app = FakeApp(pausing_work(ANSWER))
    asked_back = await asked(app)
    empty = await app.conversation()

    async with app.client() as ann:
        answers = [
            await ann.post("/feedback", json={"thread_id": thread, "rating": "up"})
            for thread in (asked_back["thread_id"], empty.id)
        ]

    assert [refusal(answer) for answer in answers] == [(404, "FEEDBACK_TARGET_NOT_FOUND")] * 2
    assert answers[0].json()["detail"]["message"] == "There is no such feedback target."


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"rating": "good"},
        {"rating": "up", "comment": ""},
        {"rating": "up", "comment": "x" * 501},
        {"rating": "up", "reasonCodes": []},
    ],
)
async def test_a_malformed_rating_is_422(body: dict[str, object]) -> None:
    app = FakeApp(ANSWER)
    envelope = await asked(app)

    async with app.client() as ann:
        answer = await ann.post("/feedback", json={"thread_id": envelope["thread_id"], **body})

    assert refusal(answer) == (422, "VALIDATION_ERROR")


async def test_a_deleted_thread_is_gone_with_its_checkpoints() -> None:
    app = FakeApp(pausing_work(ANSWER))
    asked_back = await asked(app)
    async with app.client() as ann:
        deleted = await ann.delete(f"/conversations/{asked_back['thread_id']}")
        answer = await resumed(app, asked_back)

    assert deleted.status_code == 204
    assert refusal(answer) == (404, "CONVERSATION_NOT_FOUND")
    assert set(app.checkpoints.deleted) == {asked_back["trace_id"]}


async def test_a_paused_message_is_marked_in_the_thread() -> None:
    app = FakeApp(pausing_work(ANSWER))
    asked_back = await asked(app)

    async with app.client() as ann:
        path = f"/conversations/{asked_back['thread_id']}/messages"
        kept = (await ann.get(path)).json()["items"]

    assert [message["finishReason"] for message in kept] == [None, FinishReason.PAUSED.value]
