"""Every refusal and every fault: one form, one status, no input in it."""

import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from starlette.types import Message

from ibid.domain.errors import LeaseLost, SourceRejected, StoreUnavailable, Unauthorized
from ibid.domain.projects import GitSource
from ibid.web.edges import CatchAll
from ibid.web.services import StartIndex, WebLimits
from tests.fakes.app import FakeApp

JSON = {"Content-Type": "application/json"}
TELLTALE = "where-do-we-keep-the-crown"


def assert_form(answer: httpx.Response, status: int, code: str) -> dict[str, str]:
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json()) == ["detail"]
    detail = answer.json()["detail"]
    assert detail["code"] == code
    assert detail["message"]
    assert set(detail) <= {"code", "message", "fields"}
    fields: dict[str, str] = detail.get("fields", {})
    return fields


def failing(error: Exception) -> StartIndex:
    async def start_index(*_: object, **__: object) -> tuple[str, bool]:
        raise error

    return start_index


@pytest.mark.parametrize("path", ["/", "/nothing", "/projects/1/2/3/4", "/docs", "/projects/"])
async def test_an_unknown_path_is_404_in_the_one_form(path: str) -> None:
    async with FakeApp().client() as ann:
        answer = await ann.get(path)

    assert_form(answer, 404, "NOT_FOUND")


async def test_an_unknown_method_is_405_and_names_the_known_ones() -> None:
    async with FakeApp().client() as ann:
        answer = await ann.put("/projects/1")

    assert_form(answer, 405, "METHOD_NOT_ALLOWED")
    assert answer.headers["allow"] == "DELETE, GET, PATCH"


@pytest.mark.parametrize(
    "body",
    [b"{", b'{"name": }', b"\xff\xfe", b'{"name": "\xff"}', b"[" * 100_000, b"nothing", b"[1]"],
)
async def test_a_body_that_is_no_such_json_is_422(body: bytes) -> None:
    async with FakeApp().client(headers=JSON) as ann:
        answer = await ann.post("/projects", content=body)

    assert "body" in assert_form(answer, 422, "VALIDATION_ERROR")


async def test_a_body_of_another_media_type_is_422() -> None:
    async with FakeApp().client(headers={"Content-Type": "text/plain"}) as ann:
        answer = await ann.post("/projects", content=b'{"name": "shop"}')

    assert_form(answer, 422, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "shop", TELLTALE: 1}, TELLTALE),
        ({"name": "shop", f"{TELLTALE}?": 1}, "(unnamed)"),
        ({"name": {"a": TELLTALE}}, "name"),
        ({"name": "shop", "replyLanguage": TELLTALE}, "replyLanguage"),
        ({"name": "shop", "source": {"kind": TELLTALE}}, "source"),
        ({"name": "shop", "source": {}}, "source"),
        (
            {"name": "shop", "settings": {"maxRetrievalAttempts": 6}},
            "settings.maxRetrievalAttempts",
        ),
        ({"name": TELLTALE * 20}, "name"),
        ({"name": "a\0b"}, "name"),
    ],
)
async def test_an_invalid_field_is_named_and_its_value_is_not_repeated(
    body: dict[str, object], field: str
) -> None:
    async with FakeApp().client() as ann:
        answer = await ann.post("/projects", json=body)

    fields = assert_form(answer, 422, "VALIDATION_ERROR")
    assert list(fields) == [field]
    assert TELLTALE not in "".join(fields.values())


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=201", "limit=x", "cursor=never-given", "limit=99999999999999999999"]
)
async def test_a_page_that_can_not_be_asked_for_is_422(query: str) -> None:
    async with FakeApp().client() as ann:
        answer = await ann.get(f"/projects?{query}")

    assert_form(answer, 422, "VALIDATION_ERROR")


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_over_the_limit_is_413(*, announced: bool) -> None:
    limits = WebLimits(max_body_bytes=1_000)
    app = FakeApp(change=lambda services: replace(services, limits=limits))
    body = b'{"name": "' + b"x" * 1_000 + b'"}'
    headers = {**JSON, **({"Content-Length": str(len(body))} if announced else {})}

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 100):
            yield body[start : start + 100]

    async with app.client(headers=headers) as ann:
        answer = await ann.post("/projects", content=pieces())

    assert_form(answer, 413, "BODY_TOO_LARGE")
    assert "1,000 bytes" in answer.json()["detail"]["message"]


@pytest.mark.parametrize("body", [{"data": {"name": "x"}}, {"json": ["x"]}, {"json": "x"}])
async def test_a_body_that_is_no_object_is_told_what_it_must_be(body: dict[str, Any]) -> None:
    async with FakeApp().client() as ann:
        answer = await ann.post("/projects", **body)

    assert_form(answer, 422, "VALIDATION_ERROR")
    told = answer.json()["detail"]["fields"]
    assert told == {"body": "must be a JSON object, sent as Content-Type: application/json"}


async def test_a_get_with_a_huge_body_is_413() -> None:
    app = FakeApp(change=lambda services: replace(services, limits=WebLimits(max_body_bytes=10)))

    async with app.client() as ann:
        answer = await ann.request("GET", "/healthz", content=b"x" * 11)

    assert_form(answer, 413, "BODY_TOO_LARGE")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (StoreUnavailable("away"), 503, "STORE_UNAVAILABLE"),
        (SourceRejected("the archive is a bomb"), 422, "SOURCE_REJECTED"),
        (Unauthorized("nobody"), 401, "UNAUTHORIZED"),
        (LeaseLost("gone"), 500, "INTERNAL_ERROR"),
        (ValueError(TELLTALE), 500, "INTERNAL_ERROR"),
        (ExceptionGroup(TELLTALE, [ValueError(TELLTALE)]), 500, "INTERNAL_ERROR"),
    ],
)
async def test_an_error_of_a_collaborator_has_its_status_and_no_secret(
    error: Exception, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = FakeApp(change=lambda services: replace(services, start_index=failing(error)))
    project = await app.project(source=GitSource(url="https://git.test/shop"))

    with caplog.at_level(logging.DEBUG):
        async with app.client() as ann:
            answer = await ann.post(f"/projects/{project.id}/index")

    assert_form(answer, status, code)
    assert TELLTALE not in answer.text
    assert TELLTALE not in caplog.text


async def test_a_fault_is_logged_by_its_type_only(caplog: pytest.LogCaptureFixture) -> None:
    fault = ValueError(TELLTALE)
    app = FakeApp(change=lambda services: replace(services, start_index=failing(fault)))
    project = await app.project(source=GitSource(url="https://git.test/shop"))

    async with app.client() as ann:
        await ann.post(f"/projects/{project.id}/index")

    (record,) = [one for one in caplog.records if one.name == "ibid.web.edges"]
    assert (record.message, record.__dict__["error"]) == ("request failed", "ValueError")
    assert record.exc_info is None


async def test_nothing_escapes_even_when_the_answer_has_begun() -> None:
    sent: list[Message] = []

    async def broken(_scope: object, _receive: object, send: object) -> None:
        del send
        raise RuntimeError(TELLTALE)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await CatchAll(broken)({"type": "http"}, receive, send)

    assert sent == []
