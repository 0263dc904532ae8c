from typing import Any

import pytest

from ibid.adapters.models.schema_check import accepts, is_strict, parse_decision
from ibid.domain.errors import ModelFaulty

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "why": {"type": "string", "maxLength": 3}},
    "required": ["ok"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string"}, "a", 1),
        ({"type": "string", "minLength": 1}, "a", ""),
        ({"type": "string", "maxLength": 1}, "a", "ab"),
        ({"type": "boolean"}, True, 1),
        ({"type": "integer"}, 1, True),
        ({"type": "integer"}, 1, 1.5),
        ({"type": "number"}, 1.5, "1.5"),
        ({"type": ["string", "null"]}, None, 1),
        ({"type": "array", "items": {"type": "integer"}}, [1, 2], [1, "2"]),
        ({"enum": ["a", "b"]}, "a", "c"),
        ({"const": 1}, 1, 2),
        ({"description": "a note"}, 1, None),
        (SCHEMA, {"ok": True, "why": "abc"}, {"why": "abc"}),
        (SCHEMA, {"ok": True}, {"ok": True, "else": 1}),
        (SCHEMA, {"ok": True}, {"ok": True, "why": "abcd"}),
        ({"type": "object"}, {"any": 1}, []),
    ],
)
def test_a_value_is_of_its_schema_or_not(schema: dict[str, Any], good: object, bad: object) -> None:
    assert accepts(schema, good)
    assert not accepts(schema, bad) or schema == {"description": "a note"}


@pytest.mark.parametrize(
    "text",
    [
        '{"ok": true}',
        ' \n{"ok": true}\n',
        'Sure:\n```json\n{"ok": true}\n```\nDone.',
        '```\n{"ok": true}\n``` {',
        'I think {"ok": true} is right.',
    ],
)
def test_a_decision_is_found_in_what_surrounds_it(text: str) -> None:
    assert parse_decision(SCHEMA, text) == {"ok": True}


@pytest.mark.parametrize(
    "text", ["", "no", "true", "[1]", '{"ok": 1}', '{"ok": true', "{" * 100_000, "}{"]
)
def test_what_holds_no_decision_is_faulty(text: str) -> None:
    with pytest.raises(ModelFaulty):
        parse_decision(SCHEMA, text)


def test_strict_mode_takes_only_what_requires_everything() -> None:
    assert not is_strict(SCHEMA)
    assert is_strict(SCHEMA | {"required": ["ok", "why"]})
    assert not is_strict({"type": "object"})
