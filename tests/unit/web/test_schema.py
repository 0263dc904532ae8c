"""The OpenAPI document: true, whole, and with the models of all events."""

from collections.abc import Iterator
from typing import Any

import ibid.web.message_events
from ibid.web.ask_events import AnswerEnvelope
from ibid.web.event_registry import EVENT_MODELS
from ibid.web.message_events import MESSAGE_EVENTS
from ibid.web.wire import SnakeWire, Wire
from tests.fakes.app import FakeApp

REF = "#/components/schemas/"
SNAKE_CASE = {"/ask", "/datasets", "/feedback", "/resume"}


async def document() -> dict[str, Any]:
    async with FakeApp().client() as ann:
        answer = await ann.get("/openapi.json")
    whole: dict[str, Any] = answer.json()
    return whole


def references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


async def test_the_schema_holds_the_model_of_every_event_under_its_wire_names() -> None:
    schemas = (await document())["components"]["schemas"]

    for surface in EVENT_MODELS.values():
        for model in surface.values():
            fields = model.model_fields.items()
            names = {field.serialization_alias or name for name, field in fields}
            assert set(schemas[model.__name__]["properties"]) == names


def test_every_event_model_stands_in_the_registry() -> None:
    registered = {model for surface in EVENT_MODELS.values() for model in surface.values()}

    bases = (Wire, SnakeWire)
    kinds = {model for base in bases for model in base.__subclasses__()}
    named = {model for model in kinds if model.__name__.endswith("Event")}

    assert named | {AnswerEnvelope} == registered


def test_the_registry_names_the_events_of_the_messages_surface() -> None:
    assert list(EVENT_MODELS["messages"]) == ["status", "citations", "token", "done", "error"]
    assert {model.__module__ for model in MESSAGE_EVENTS.values()} == {
        ibid.web.message_events.__name__
    }


def test_the_registry_names_the_events_of_the_ask_surface() -> None:
    assert list(EVENT_MODELS["ask"]) == ["status", "token_delta", "answer", "error"]


async def test_every_reference_of_the_schema_is_there() -> None:
    whole = await document()

    missing = {
        name
        for name in references(whole)
        if name.removeprefix(REF) not in whole["components"]["schemas"]
    }

    assert missing == set()


async def test_the_answer_to_a_question_is_json_or_the_stream_of_its_events() -> None:
    operation = (await document())["paths"]["/conversations/{conversationId}/messages"]["post"]

    answer = operation["responses"]["200"]

    assert set(answer["content"]) == {"application/json", "text/event-stream"}
    assert answer["content"]["application/json"]["schema"] == {"$ref": f"{REF}AnswerBody"}
    events = answer["content"]["text/event-stream"]["itemSchema"]["oneOf"]
    assert [one["properties"]["event"]["const"] for one in events] == list(MESSAGE_EVENTS)
    assert set(answer["headers"]) == {"Ibid-Run-Id", "Location"}


async def test_every_refusal_has_the_one_form() -> None:
    whole = await document()

    for path, operations in whole["paths"].items():
        form = "SnakeErrorBody" if path in SNAKE_CASE else "ErrorBody"
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if status[0] in "45":
                    content = response["content"]["application/json"]
                    assert content["schema"] == {"$ref": f"{REF}{form}"}


async def test_every_surface_keeps_its_own_case() -> None:
    whole = await document()
    schemas = whole["components"]["schemas"]
    camel = {path: whole["paths"][path] for path in set(whole["paths"]) - SNAKE_CASE}
    snake = {path: whole["paths"][path] for path in SNAKE_CASE}

    def names(node: object, seen: set[str]) -> Iterator[str]:
        for reference in references(node):
            if reference not in seen:
                seen.add(reference)
                schema = schemas[reference.removeprefix(REF)]
                yield from schema.get("properties", {})
                yield from names(schema, seen)

    # both surfaces' events are told on one path
    del camel["/runs/{runId}/events"]

    assert [name for name in names(camel, set()) if "_" in name] == []
    assert [name for name in names(snake, set()) if name != name.lower()] == []


async def test_every_post_but_an_uploads_form_takes_an_idempotency_key() -> None:
    paths = (await document())["paths"]

    without = {
        path
        for path, operations in paths.items()
        if "post" in operations
        and "Idempotency-Key"
        not in {parameter["name"] for parameter in operations["post"].get("parameters", [])}
    }

    assert without == {"/projects/{projectId}/uploads/{uploadId}"}


async def test_the_document_is_made_once() -> None:
    app = FakeApp()

    assert app.app.openapi() is app.app.openapi()
