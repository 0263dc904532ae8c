"""The OpenAPI document: what FastAPI knows of the routes, and the models of all events."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from ibid.web.event_registry import EVENT_MODELS
from ibid.web.wire import Wire

_TEMPLATE = "#/components/schemas/{model}"


def event_stream_schema(models: Mapping[str, type[Wire]]) -> dict[str, Any]:
    """Describe a stream of such events, as OpenAPI 3.2 does: `itemSchema` is one event."""
    return {
        "itemSchema": {
            "oneOf": [
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
                for name, model in models.items()
            ]
        }
    }


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
        app.openapi_schema = document
    return app.openapi_schema
