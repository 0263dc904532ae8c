"""Conversations over HTTP, and the application's own life."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from ibid.domain.events import TokenDelta
from tests.fakes.app import ANN, FakeApp, scripted_work


async def test_a_conversation_begins_without_a_title_and_takes_the_first_questions() -> None:
    app = FakeApp()
    project = await app.project()
    async with app.client() as ann:
        begun = await ann.post("/conversations", json={"projectId": project.id})
        await ann.post(
            f"/conversations/{begun.json()['id']}/messages", json={"question": "Where is it?"}
        )

        read = await ann.get(f"/conversations/{begun.json()['id']}")

    assert begun.status_code == 201
    assert begun.json() == {
        "id": begun.json()["id"],
        "projectId": project.id,
        "title": None,
        "createdAt": "2026-01-02T03:04:05.678901Z",
    }
    assert read.json() == {**begun.json(), "title": "Where is it?"}


async def test_a_conversation_can_begin_before_its_project_is_ready() -> None:
    app = FakeApp()
    project = await app.project(ready=False)

    async with app.client() as ann:
        begun = await ann.post(
            "/conversations",
            json={"projectId": project.id, "title": " Cart ", "replyLanguage": "pt-BR"},
        )

    assert begun.json()["title"] == "Cart"
    kept = await app.records.conversations.get(begun.json()["id"], principal=ANN)
    assert kept.reply_language == "pt-BR"


async def test_conversations_are_listed_newest_first_page_by_page() -> None:
    app = FakeApp()
    project = await app.project()
    async with app.client() as ann:
        for title in ("one", "two", "three"):
            await ann.post("/conversations", json={"projectId": project.id, "title": title})
            app.clock.move(1)

        first = (await ann.get("/conversations?limit=2")).json()
        second = (await ann.get(f"/conversations?cursor={first['nextCursor']}")).json()

    assert [item["title"] for item in first["items"]] == ["three", "two"]
    assert [item["title"] for item in second["items"]] == ["one"]


async def test_a_conversation_is_renamed() -> None:
    app = FakeApp()
    conversation = await app.conversation()

    async with app.client() as ann:
        renamed = await ann.patch(f"/conversations/{conversation.id}", json={"title": "Cart"})

    assert renamed.json()["title"] == "Cart"


@pytest.mark.parametrize("title", ["", "  ", "x" * 201, None, 1])
async def test_a_title_that_is_none_is_422(title: object) -> None:
    app = FakeApp()
    conversation = await app.conversation()

    async with app.client() as ann:
        answer = await ann.patch(f"/conversations/{conversation.id}", json={"title": title})

    assert answer.status_code == 422


async def test_a_deleted_conversation_is_gone_and_its_run_is_stopped() -> None:
    never = asyncio.Event()
    app = FakeApp(scripted_work(TokenDelta(text="It is"), never.wait))
    conversation = await app.conversation()
    async with app.client() as ann:
        path = f"/conversations/{conversation.id}"
        asking = asyncio.create_task(ann.post(f"{path}/messages", json={"question": "Where?"}))
        await app.kept(conversation, messages=1)

        deleted = await ann.delete(path)
        answer = await asking

        after = [await ann.get(path), await ann.get(answer.headers["location"])]

    assert deleted.status_code == 204
    assert answer.json()["finishReason"] == "cancelled"
    assert [one.status_code for one in after] == [404, 404]


async def test_messages_are_listed_oldest_first_page_by_page() -> None:
    app = FakeApp()
    conversation = await app.conversation()
    async with app.client() as ann:
        path = f"/conversations/{conversation.id}/messages"
        await ann.post(path, json={"question": "One?"})
        await ann.post(path, json={"question": "Two?"})

        first = (await ann.get(f"{path}?limit=3")).json()
        second = (await ann.get(f"{path}?limit=3&cursor={first['nextCursor']}")).json()

    shown = [(item["role"], item["content"]) for item in first["items"] + second["items"]]
    assert shown == [
        ("user", "One?"),
        ("assistant", "It is here [1]."),
        ("user", "Two?"),
        ("assistant", "It is here [1]."),
    ]


async def test_health_names_the_version() -> None:
    async with FakeApp().client(None) as anyone:
        answer = await anyone.get("/healthz")

    assert answer.json() == {"status": "ok", "version": "0.0.0"}


async def test_the_applications_life_is_the_one_it_was_given() -> None:
    life: list[str] = []

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        life.append("begun")
        yield
        life.append("ended")

    app = FakeApp(change=lambda services: replace(services, lifespan=lifespan)).app

    async with app.router.lifespan_context(app):
        assert life == ["begun"]

    assert life == ["begun", "ended"]


async def test_an_application_without_a_life_of_its_own_starts_and_stops() -> None:
    app = FakeApp().app

    async with app.router.lifespan_context(app):
        pass
