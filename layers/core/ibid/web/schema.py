"""The OpenAPI document: what FastAPI knows of the routes, and the models of all events."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from ibid.web.edges import is_upload_form
from ibid.web.errors import is_snake_case
from ibid.web.event_registry import EVENT_MODELS
from ibid.web.idempotency_keys import KEY_HEADER, KEY_PATTERN
from ibid.web.wire import Wire

_TEMPLATE = "#/components/schemas/{model}"
_KEY = {
    "name": KEY_HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string", "pattern": KEY_PATTERN},
    "description": (
        "The same key and body get the same answer for 24 hours, and the work is done once; "
        "another body is 422. What was refused or failed may be tried again with the same key."
    ),
}


def event_stream_schema(*surfaces: Mapping[str, type[Wire]]) -> dict[str, Any]:
    """Describe a stream of the surfaces' events, as OpenAPI 3.2 does: `itemSchema` is one event."""
    events = [
        {
            "type": "object",
            "required": ["event", "data", "id"],
            "properties": {
                "event": {"const": name},
                "data": {
                    "type": "string",
                    "contentMediaType": "application/json",
                    "contentSchema": {"$ref": _TEMPLATE.format(model=model.__name__)},
                },
                "id": {"type": "string", "pattern": "^[1-9][0-9]*$"},
            },
        }
        for models in surfaces
        for name, model in models.items()
    ]
    # two surfaces may have an event of one name
    return {"itemSchema": {"oneOf" if len(surfaces) == 1 else "anyOf": events}}


def _add_keys(document: dict[str, Any]) -> None:
    """Describe the Idempotency-Key, which is taken before any route is found."""
    for path, operations in document["paths"].items():
        operation = operations.get("post")
        if operation is None:
            continue
        if is_upload_form(path):
            operation["description"] += (
                "\n\nTakes no Idempotency-Key: the archive is streamed, and taken once anyway."
            )
            continue
        operation.setdefault("parameters", []).append(_KEY)
        body = "SnakeErrorBody" if is_snake_case(path) else "ErrorBody"
        for status, phrase in ((409, "Conflict"), (422, "Unprocessable Content")):
            operation["responses"].setdefault(
                str(status),
                {
                    "description": phrase,
                    "content": {
                        "application/json": {"schema": {"$ref": _TEMPLATE.format(model=body)}}
                    },
                },
            )


def openapi_of(app: FastAPI) -> dict[str, Any]:
    """Return the whole document; made once, then remembered."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes
        )
        models = {model for surface in EVENT_MODELS.values() for model in surface.values()}
        _, events = models_json_schema(
            [(model, "serialization") for model in sorted(models, key=lambda m: m.__name__)],
            ref_template=_TEMPLATE,
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for name, schema in events["$defs"].items():
            schemas.setdefault(name, schema)
        _add_keys(document)
        app.openapi_schema = document
    return app.openapi_schema
