"""The graphs that a checkpoint saver is tried on, with the input and the end of each.

A builder takes the saver and gives a compiled graph whose nodes are plain functions, so that it
runs by `invoke` and by `ainvoke`. `log` and `answers` add up, so a node whose writes count twice,
or not at all, shows in the state. What really ran shows in a file: name one as
`configurable["__ran"]` and every node appends its name to it when it starts.
"""

import itertools
import operator
import os
import random
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Durability, Send, StateSnapshot, interrupt

Saver = BaseCheckpointSaver[Any]
Graph = CompiledStateGraph[Any, Any, Any, Any]

DURABILITIES: tuple[Durability, ...] = ("sync", "async", "exit")
RAN = "__ran"  # "__" keeps it out of the metadata


class State(TypedDict, total=False):
    """What most of the graphs share; a graph leaves out what it has no use for."""

    log: Annotated[list[str], operator.add]
    answers: Annotated[list[Any], operator.add]
    x: str
    y: str
    doc: str
    blob: bytes
    count: int
    size: int


Node = Callable[[State, RunnableConfig], dict[str, Any]]


def thread(thread_id: str, **configurable: object) -> RunnableConfig:
    """Return the config of a thread, with more `configurable` keys if need be."""
    return {"configurable": {"thread_id": thread_id, **configurable}}


def pending(snapshot: StateSnapshot) -> dict[Any, str]:
    """Return the ids of the pending interrupts by what each asks; `{}` when nothing is pending."""
    return {asked.value: asked.id for asked in snapshot.interrupts}


def ran(path: str) -> list[str]:
    """Return the nodes that started, in order; empty when the file was never made."""
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123 - child scripts pass strings
            return file.read().split()
    except FileNotFoundError:
        return []


def _note(config: RunnableConfig, name: str) -> None:
    path = config["configurable"].get(RAN)
    if path is None:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, f"{name}\n".encode())  # one write: processes may share the file
    finally:
        os.close(descriptor)


def _step(name: str, **writes: object) -> Node:
    def node(state: State, config: RunnableConfig) -> dict[str, Any]:  # noqa: ARG001 - LangGraph reads the signature
        _note(config, name)
        return {"log": [name], **writes}

    return node


def _ask(name: str, *questions: str) -> Node:
    def node(state: State, config: RunnableConfig) -> dict[str, Any]:  # noqa: ARG001 - LangGraph reads the signature
        _note(config, name)
        answers = [interrupt(question) for question in questions]
        return {"log": [name], "answers": answers}

    return node


def _graph(nodes: Mapping[str, Node]) -> "StateGraph[State, None, State, State]":
    builder = StateGraph(State)
    for name, node in nodes.items():
        # `Node` is no overload of add_node, which wants one of its own protocols
        builder.add_node(name, node)  # type: ignore[call-overload]
    return builder


def _in_line(builder: "StateGraph[State, None, State, State]", *names: str) -> None:
    builder.add_edge(START, names[0])
    for before, after in itertools.pairwise(names):
        builder.add_edge(before, after)
    builder.add_edge(names[-1], END)


# The kill sweep: a and b in parallel, a -> c, b -> d, [c, d] -> e.

DIAMOND_INPUT: dict[str, Any] = {"log": ["in"]}
DIAMOND_END: dict[str, Any] = {
    "log": ["in", "a", "b", "c", "d", "e"],
    "answers": [],
    "x": "ax",
    "y": "by",
}


def diamond(saver: Saver) -> Graph:
    """Fork, follow both ways, join."""
    builder = _graph(
        {
            "a": _step("a", x="ax"),
            "b": _step("b", y="by"),
            "c": _step("c"),
            "d": _step("d"),
            "e": _step("e"),
        }
    )
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.add_edge("a", "c")
    builder.add_edge("b", "d")
    builder.add_edge(["c", "d"], "e")
    builder.add_edge("e", END)
    return builder.compile(checkpointer=saver)


# A pause in the middle: before -> ask -> after.

PAUSE_INPUT: dict[str, Any] = {"log": ["in"]}
PAUSE_QUESTION = "which?"
PAUSE_ANSWER = "this"
PAUSE_END: dict[str, Any] = {"log": ["in", "before", "ask", "after"], "answers": [PAUSE_ANSWER]}


def pausing(saver: Saver) -> Graph:
    """One node, a pause, one node."""
    builder = _graph(
        {
            "before": _step("before"),
            "ask": _ask("ask", PAUSE_QUESTION),
            "after": _step("after"),
        }
    )
    _in_line(builder, "before", "ask", "after")
    return builder.compile(checkpointer=saver)


# The reference workload: five nodes in line, a pause in the third, 20 KB of text in `doc`.

REFERENCE_QUESTION = "go on?"
REFERENCE_END_LOG = ["n1", "n2", "n3", "n4", "n5"]


def reference_input(size: int = 20_000) -> dict[str, Any]:
    """Return an input with a text of `size` ASCII characters, always the same one.

    It compresses about as English prose does.
    """
    return {"log": [], "doc": prose(size)}


def prose(size: int, *, seed: int = 7) -> str:
    """Return `size` characters of made-up words, some of them frequent, always the same."""
    draw = random.Random(seed)  # noqa: S311 - no secret
    syllables = [c + v for c in "bcdfghlmnprstvw" for v in ("a", "e", "i", "o", "u", "er", "in")]
    words = ["".join(draw.choices(syllables, k=draw.choice((1, 2, 2, 3, 3)))) for _ in range(900)]
    weights = [1 / (rank + 3) for rank in range(len(words))]
    return " ".join(draw.choices(words, weights=weights, k=size // 2))[:size]


def reference(saver: Saver) -> Graph:
    """Five nodes in line; the third pauses."""
    builder = _graph(
        {
            "n1": _step("n1"),
            "n2": _step("n2"),
            "n3": _ask("n3", REFERENCE_QUESTION),
            "n4": _step("n4"),
            "n5": _step("n5"),
        }
    )
    _in_line(builder, *REFERENCE_END_LOG)
    return builder.compile(checkpointer=saver)


# A subgraph that pauses twice, with a namespace of its own.

NESTED_INPUT: dict[str, Any] = {"log": ["in"]}
NESTED_QUESTIONS = ("name?", "colour?")


def nested(saver: Saver) -> Graph:
    """Two pauses inside a subgraph that stands between two nodes; see `nested_end`."""
    inner = _graph({"name": _ask("name", "name?"), "colour": _ask("colour", "colour?")})
    _in_line(inner, "name", "colour")
    subgraph = inner.compile()

    def child(state: State, config: RunnableConfig) -> dict[str, Any]:  # noqa: ARG001 - LangGraph reads the signature
        _note(config, "child")
        # a state of its own: what it was given must not be added a second time
        found = subgraph.invoke({"log": [], "answers": []})
        return {"log": found["log"], "answers": found["answers"]}

    builder = _graph({"open": _step("open"), "child": child, "close": _step("close")})
    _in_line(builder, "open", "child", "close")
    return builder.compile(checkpointer=saver)


def nested_end(name: object, colour: object) -> dict[str, Any]:
    """Return what `nested` ends with after these answers."""
    return {"log": ["in", "open", "name", "colour", "close"], "answers": [name, colour]}


# Two nodes that pause at the same time; each is resumed by its interrupt's id.

FORKED_INPUT: dict[str, Any] = {"log": ["in"]}
FORKED_QUESTIONS = ("left?", "right?")


def forked(saver: Saver) -> Graph:
    """Two pauses in parallel, then a join; see `forked_end`."""
    builder = _graph(
        {
            "left": _ask("left", "left?"),
            "right": _ask("right", "right?"),
            "join": _step("join"),
        }
    )
    builder.add_edge(START, "left")
    builder.add_edge(START, "right")
    builder.add_edge(["left", "right"], "join")
    builder.add_edge("join", END)
    return builder.compile(checkpointer=saver)


def forked_end(left: object, right: object) -> dict[str, Any]:
    """Return what `forked` ends with after these answers."""
    return {"log": ["in", "left", "right", "join"], "answers": [left, right]}


# One node that pauses twice: its writes to `__resume__` come twice in one call.

TWICE_INPUT: dict[str, Any] = {"log": ["in"]}
TWICE_QUESTIONS = ("first?", "second?")


def twice(saver: Saver) -> Graph:
    """Two pauses in one node; see `twice_end`."""
    builder = _graph({"open": _step("open"), "ask": _ask("ask", *TWICE_QUESTIONS)})
    _in_line(builder, "open", "ask")
    return builder.compile(checkpointer=saver)


def twice_end(first: object, second: object) -> dict[str, Any]:
    """Return what `twice` ends with after these answers."""
    return {"log": ["in", "open", "ask"], "answers": [first, second]}


# Ten tasks of one superstep, or more.

FAN_OUT = 10


def fan_out(saver: Saver, *, width: int = FAN_OUT) -> Graph:
    """`width` tasks by `Send`, each adding its number to `answers`; then a join."""

    def spread(state: State) -> list[Send]:  # noqa: ARG001 - LangGraph reads the signature
        return [Send("work", {"count": number}) for number in range(width)]

    def work(state: State, config: RunnableConfig) -> dict[str, Any]:
        _note(config, "work")
        return {"answers": [state["count"]]}

    builder = _graph({"open": _step("open"), "work": work, "close": _step("close")})
    builder.add_edge(START, "open")
    builder.add_conditional_edges("open", spread, ["work"])
    builder.add_edge("work", "close")
    builder.add_edge("close", END)
    return builder.compile(checkpointer=saver)


# One invocation after the other on one checkpoint thread.


def counting(saver: Saver) -> Graph:
    """Add one to `count` at every invocation; `doc` goes along."""

    def add(state: State, config: RunnableConfig) -> dict[str, Any]:
        _note(config, "add")
        return {"count": state.get("count", 0) + 1}

    builder = _graph({"add": add})
    _in_line(builder, "add")
    return builder.compile(checkpointer=saver)


# A node that writes as many bytes as it is told.


def heavy(saver: Saver) -> Graph:
    """Write `size` bytes that nothing compresses to `blob`, then go one step further."""

    def make(state: State, config: RunnableConfig) -> dict[str, Any]:
        _note(config, "make")
        return {"log": ["make"], "blob": noise(state["size"])}

    builder = _graph({"make": make, "after": _step("after")})
    _in_line(builder, "make", "after")
    return builder.compile(checkpointer=saver)


def noise(size: int, *, seed: int = 7) -> bytes:
    """Return `size` bytes that nothing compresses, always the same."""
    return random.Random(seed).randbytes(size)  # noqa: S311 - no secret


GRAPHS: Mapping[str, Callable[[Saver], Graph]] = {
    "diamond": diamond,
    "pausing": pausing,
    "reference": reference,
    "nested": nested,
    "forked": forked,
    "twice": twice,
    "fan_out": fan_out,
    "counting": counting,
    "heavy": heavy,
}
