"""What a definition is called: the names in its syntax node."""

import re

from tree_sitter import Node

MAX_NAME = 200
_MAX_DECLARATORS = 16
_GENERICS = re.compile(r"<[^<>]*>")
_SEPARATORS = re.compile(r"::|\\|\.|/")
_NOT_NAMES = frozenset({"module", "exports", "prototype", "this", "window", "self", "global"})
_USUAL = ("name", "property")
_FIELDS = {"impl_item": ("type",), "create_index": ("column",)}
_FIXED = {
    "companion_object": "Companion",
    "conversion_operator_declaration": "operator",
    "indexer_declaration": "this",
    "secondary_constructor": "constructor",
}
_DECLARED = frozenset(
    {"identifier", "field_identifier", "qualified_identifier", "type_identifier"}
    | {"destructor_name", "operator_name", "template_function"}
)


def name_of(node: Node) -> str:
    """Name a definition: dotted where it names its owner, several parted by spaces, or empty."""
    kind = node.type
    if kind == "type_declaration":  # Go's: one or a group
        specs = (child.child_by_field_name("name") for child in node.named_children)
        return " ".join(_clean(_text(name)) for name in specs if name is not None)
    if kind == "method_declaration" and (receiver := node.child_by_field_name("receiver")):  # Go
        return ".".join(filter(None, (_receiver(receiver), _field(node, "name"))))
    if kind == "assignment_expression":
        return _assigned(node)
    if kind == "operator_declaration":
        return "operator" + _text(node.child_by_field_name("operator"))
    named = next((name for field in _FIELDS.get(kind, _USUAL) if (name := _field(node, field))), "")
    return named or _FIXED.get(kind, "") or _declared(node)


def _text(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode("utf-8", "replace")


def _clean(name: str) -> str:
    """Write a name dotted and without spaces, quotes and type parameters."""
    before = None
    while before != name:
        before, name = name, _GENERICS.sub("", name)
    parts = _SEPARATORS.split("".join(name.split()).strip("\"'`"))
    return ".".join(filter(None, parts))[:MAX_NAME]


def _field(node: Node, field: str) -> str:
    return _clean(_text(node.child_by_field_name(field)))


def _receiver(parameters: Node) -> str:
    """Name the type that a Go method is of: the last identifier before its type parameters."""
    words = re.findall(r"\w+", _text(parameters).partition("[")[0])
    return words[-1] if words else ""


def _assigned(node: Node) -> str:
    """Name the left side of `exports.name = function`, without the words that name nothing."""
    left = _field(node, "left")
    if not re.fullmatch(r"[\w$.]+", left):
        return ""
    return ".".join(part for part in left.split(".") if part not in _NOT_NAMES)


def _declared(node: Node) -> str:
    """Name what has no name field: C's declarators, SQL's references."""
    for child in node.named_children:
        if child.type == "object_reference":
            return _clean(_text(child))
    current: Node | None = node
    for _ in range(_MAX_DECLARATORS):
        if current is None:
            break
        if current.type in _DECLARED:
            return _clean(_text(current))
        inner = current.child_by_field_name("declarator")
        if inner is None and current.type == "reference_declarator":
            inner = current.named_children[0] if current.named_children else None
        current = inner
    return ""
