"""Check a decision against the small part of JSON Schema that decisions are described in."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from ibid.domain.errors import ModelFaulty

_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "null": type(None),
}
_FENCED: Final = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL)


def accepts(schema: Mapping[str, Any], value: object) -> bool:
    """Whether a value is of the schema.

    Known are `type`, `enum`, `const`, `properties`, `required`, `additionalProperties: false`,
    `items`, `minLength` and `maxLength`; other keywords are taken for notes.
    """
    if "const" in schema and value != schema["const"]:
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(_is(name, value) for name in names):
        return False
    if isinstance(value, str):
        least: int = schema.get("minLength", 0)
        most: int = schema.get("maxLength", len(value))
        return least <= len(value) <= most
    if isinstance(value, list):
        return all(accepts(schema.get("items", {}), each) for each in value)
    return not isinstance(value, dict) or _accepts_object(schema, value)


def parse_decision(schema: Mapping[str, Any], text: str) -> Mapping[str, Any]:
    """Find the object of the schema in a reply: the whole, a fenced block, or its outermost braces.

    Raises:
        ModelFaulty: There is none.
    """
    fenced = _FENCED.search(text)
    braces = text[text.find("{") : text.rfind("}") + 1]
    for candidate in (text, fenced[1] if fenced else "", braces):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and accepts(schema, value):
            return value
    raise ModelFaulty("the reply holds no object of the schema it was given")


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether OpenAI's strict mode takes it: no other properties, all of them required."""
    return schema.get("additionalProperties") is False and set(schema.get("required", [])) == set(
        schema.get("properties", {})
    )


def _is(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name])


def _accepts_object(schema: Mapping[str, Any], value: Mapping[str, object]) -> bool:
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    if any(name not in value for name in schema.get("required", [])):
        return False
    if schema.get("additionalProperties") is False and value.keys() - properties.keys():
        return False
    return all(accepts(properties.get(name, {}), each) for name, each in value.items())
