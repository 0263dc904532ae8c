"""Conditional writes, as they are called one by one or as parts of a transaction."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ibid.adapters.dynamodb.records.keys import Key
from ibid.adapters.dynamodb.records.wire import Value, pack, packed

_NAMES = re.compile(r"#(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One conditional write.

    Attributes:
        key: Of the item.
        item: To put, without its key; None updates, deletes or checks.
        update: An update expression; None where there is none.
        deletes: Whether the item is to go.
        condition: What must hold, None for nothing.
        values: Of both expressions.
        names: Attribute names that are no words, by what the expressions call them.
    """

    key: Key
    item: Mapping[str, Value | None] | None = None
    update: str | None = None
    deletes: bool = False
    condition: str | None = None
    values: Mapping[str, Value] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def alone(self) -> tuple[str, dict[str, Any]]:
        """Return the client's method and its arguments; an update tells the item as it is then."""
        if self.item is not None:
            return "put_item", {"Item": self._whole(), **self._expressions()}
        params = {"Key": key_of(self.key), **self._expressions()}
        if self.update is not None:
            return "update_item", {"ReturnValues": "ALL_NEW", **params}
        return "delete_item", params

    def part(self, table: str) -> dict[str, Any]:
        """Return it as a part of a transaction."""
        params = {
            "TableName": table,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            **self._expressions(),
        }
        if self.item is not None:
            return {"Put": {"Item": self._whole(), **params}}
        kind = "Delete" if self.deletes else "ConditionCheck"
        return {"Update" if self.update is not None else kind: {"Key": key_of(self.key), **params}}

    def _whole(self) -> dict[str, Any]:
        return {**key_of(self.key), **pack(self.item or {})}

    def _expressions(self) -> dict[str, Any]:
        given = {"UpdateExpression": self.update, "ConditionExpression": self.condition}
        params: dict[str, Any] = {name: text for name, text in given.items() if text is not None}
        names = {name for text in params.values() for name in _NAMES.findall(text)}
        if names:
            params["ExpressionAttributeNames"] = {
                f"#{name}": self.names.get(name, name) for name in names
            }
        if self.values:
            params["ExpressionAttributeValues"] = {
                f":{name}": packed(value) for name, value in self.values.items()
            }
        return params


def key_of(key: Key) -> dict[str, Any]:
    """Return a key as DynamoDB has it."""
    return {"pk": packed(key[0]), "sk": packed(key[1])}
