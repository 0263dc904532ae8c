"""Plain values as DynamoDB's attribute values, and back."""

from collections.abc import Mapping
from typing import Any

Value = str | int | bool | bytes | frozenset[str]
Item = Mapping[str, Any]


def packed(value: Value) -> dict[str, Any]:
    """Return the attribute value of a plain one; a set is not empty."""
    match value:
        case bool():
            return {"BOOL": value}
        case int():
            return {"N": str(value)}
        case str():
            return {"S": value}
        case bytes():
            return {"B": value}
        case frozenset():
            return {"SS": sorted(value)}


def pack(values: Mapping[str, Value | None]) -> dict[str, Any]:
    """Return an item of these values without those that are None."""
    return {name: packed(value) for name, value in values.items() if value is not None}


def unpack(item: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the plain values of an item."""
    return {name: _unpacked(value) for name, value in item.items()}


def _unpacked(value: Mapping[str, Any]) -> Value:
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return int(content)
        case "SS":
            return frozenset(content)
        case "B":
            return bytes(content)
        case "BOOL":
            return bool(content)
        case _:
            return str(content)
