"""The OpenAPI document: true, whole, and with the models of all events."""

from collections.abc import Iterator
from typing import Any

import ibid.web.message_events
from ibid.web.event_registry import EVENT_MODELS
from ibid.web.message_events import MESSAGE_EVENTS
from ibid.web.wire import Wire
from tests.fakes.app import FakeApp

REF = "#/components/schemas/"


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
            names = {field.alias for field in model.model_fields.values()}
            assert set(schemas[model.__name__]["properties"]) == names


def test_every_event_model_stands_in_the_registry() -> None:
    registered = {model for surface in EVENT_MODELS.values() for model in surface.values()}

    named = {model for model in Wire.__subclasses__() if model.__name__.endswith("Event")}

    assert named == registered


def test_the_registry_names_the_events_of_the_messages_surface() -> None:
    assert list(EVENT_MODELS["messages"]) == ["status", "citations", "token", "done", "error"]
    assert {model.__module__ for model in MESSAGE_EVENTS.values()} == {
        ibid.web.message_events.__name__
    }


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

    for path in whole["paths"].values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                if status[0] in "45":
                    content = response["content"]["application/json"]
                    assert content["schema"] == {"$ref": f"{REF}ErrorBody"}


async def test_no_property_of_the_wire_is_snake_case() -> None:
    schemas = (await document())["components"]["schemas"]

    odd = [
        (name, field)
        for name, schema in schemas.items()
        for field in schema.get("properties", {})
        if "_" in field
    ]

    assert odd == []


async def test_the_document_is_made_once() -> None:
    app = FakeApp()

    assert app.app.openapi() is app.app.openapi()
