"""Source code by its syntax: functions, methods, class heads, and the statements between."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node, Parser, Point

from ibid.domain.errors import IbidError
from ibid.indexing.grammars import GRAMMARS, Grammar, load
from ibid.indexing.names import name_of
from ibid.indexing.spans import WINDOW_LINES, Span

PARSE_TIMEOUT_S = 5.0
_READ_BYTES = 1 << 16
_MAX_WRAPPERS = 8


class ParseFailed(IbidError):
    """A file that its grammar can't take, or not in time."""

    code = "PARSE_FAILED"


def code_spans(
    lines: Sequence[str],
    grammar_name: str,
    *,
    timeout_s: float = PARSE_TIMEOUT_S,
    monotonic: Callable[[], float] = time.monotonic,
) -> list[Span]:
    """Cut a file at its definitions; between them they cover every line that is not blank.

    A definition takes along the comments, attributes and decorators right above it. A class of
    more than 60 lines is its head and its members, a namespace always is.

    Args:
        lines: The whole file's, without their ends.
        grammar_name: A key of `GRAMMARS`.
        timeout_s: For the parsing, above 0.
        monotonic: The clock that `timeout_s` is measured on.

    Raises:
        GrammarMissing: The grammar is not installed.
        ParseFailed: No tree in time.
    """
    source = "\n".join(lines).encode("utf-8", "replace")
    parser = Parser(load(grammar_name))
    deadline = monotonic() + timeout_s

    def read(offset: int, _: Point) -> bytes:
        return source[offset : offset + _READ_BYTES]

    try:
        tree = parser.parse(read, progress_callback=lambda _offset, _error: monotonic() > deadline)
    except ValueError as error:
        raise ParseFailed(f"no syntax tree within {timeout_s} s") from error
    return list(_spans(tree.root_node, len(lines), GRAMMARS[grammar_name]))


@dataclass(slots=True)
class _Scope:
    """One opened body: what is left of it, and how far its lines have been given out.

    Attributes:
        pending: Nodes still to see, the next one last.
        cursor: First line not given out.
        end: Line after the body's last.
        prefix: Dotted name of the container, empty at the top.
        lead: First line of the run of comments just passed, or None.
        lead_end: Line after that run.
        last_row: Line of the end of the last node that is no comment.
    """

    pending: list[Node]
    cursor: int
    end: int
    prefix: str
    lead: int | None = None
    lead_end: int = 0
    last_row: int = -1


def _spans(root: Node, line_count: int, grammar: Grammar) -> Iterator[Span]:
    """Walk without recursion, so that no nesting is too deep."""
    scopes = [_Scope(_pending(root), 0, line_count, "")]
    while scopes:
        scope = scopes[-1]
        if not scope.pending:
            yield from _between(scope, scope.end)
            scopes.pop()
            continue
        node = scope.pending.pop()
        if node.type in grammar.leading:
            _pass_comment(scope, node)
        elif node.type in grammar.transparent:
            scope.pending.extend(_pending(node))
        elif (definition := _definition(node, grammar)) is not None:
            inner = yield from _define(scope, node, definition, grammar)
            if inner is not None:
                scopes.append(inner)
        else:
            scope.lead, scope.last_row = None, _end(node) - 1


def _pending(node: Node) -> list[Node]:
    return node.named_children[::-1]


def _end(node: Node) -> int:
    """Return the line after a node's last; some end with their line's end."""
    row, column = node.end_point
    return row if column == 0 and row > node.start_point[0] else row + 1


def _between(scope: _Scope, until: int) -> Iterator[Span]:
    if until > scope.cursor:
        yield Span(scope.cursor, until, scope.prefix, scope.prefix)
        scope.cursor = until


def _pass_comment(scope: _Scope, node: Node) -> None:
    row = node.start_point[0]
    if row <= scope.last_row:
        return  # it stands behind a statement
    if scope.lead is None or row > scope.lead_end:
        scope.lead = row
    scope.lead_end = _end(node)


def _definition(node: Node, grammar: Grammar) -> Node | None:
    """Look through wrappers for the definition that a node is, or None."""
    current = node
    for _ in range(_MAX_WRAPPERS):
        kind = current.type
        if kind in grammar.containers or kind in grammar.spaces:
            return current
        if kind in grammar.units:
            return current if _defines(current, grammar) else None
        if kind not in grammar.wrappers:
            return None
        inner = next((child for child in current.named_children if _leads_on(child, grammar)), None)
        if inner is None:
            return None
        current = inner
    return None


def _leads_on(node: Node, grammar: Grammar) -> bool:
    return (
        node.type in grammar.units
        or node.type in grammar.containers
        or node.type in grammar.spaces
        or node.type in grammar.wrappers
    )


def _defines(node: Node, grammar: Grammar) -> bool:
    """Say if a unit is one: a variable needs a function on its right side."""
    if node.type in {"variable_declarator", "field_definition", "public_field_definition"}:
        value = node.child_by_field_name("value")
    elif node.type == "assignment_expression":
        value = node.child_by_field_name("right")
    else:
        return True
    return value is not None and value.type in grammar.values


def _define(
    scope: _Scope, node: Node, definition: Node, grammar: Grammar
) -> Generator[Span, None, _Scope | None]:
    """Give out what stood before a definition, then it or, if it is to be opened, its scope."""
    start, end = node.start_point[0], _end(node)
    if scope.lead is not None and scope.lead_end >= start:
        start = scope.lead
    scope.lead, scope.last_row = None, end - 1
    start = max(start, scope.cursor)
    if start >= end:
        return None  # another definition on the same line has it
    yield from _between(scope, start)
    scope.cursor = end
    name = name_of(definition)
    symbol = " ".join(f"{scope.prefix}.{part}" if scope.prefix else part for part in name.split())
    body = _body_to_open(definition, start, end, grammar)
    if body is not None:
        return _Scope(_pending(body), start, end, symbol or scope.prefix)
    yield Span(start, end, symbol or scope.prefix, scope.prefix or symbol)
    return None


def _body_to_open(definition: Node, start: int, end: int, grammar: Grammar) -> Node | None:
    if definition.type in grammar.containers:
        if end - start <= WINDOW_LINES:
            return None
    elif definition.type not in grammar.spaces:
        return None
    body = definition.child_by_field_name("body")
    if body is not None:
        return body
    return next(
        (child for child in definition.named_children if child.type in grammar.bodies), None
    )
