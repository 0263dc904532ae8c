"""The one builder of the answering graphs; its arguments say which nodes a graph has."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from ibid.domain.answers import Intent
from ibid.graphs.answer.ask_state import AskState
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.nodes.answer_from_history import answer_from_history
from ibid.graphs.answer.nodes.clarify import clarify as ask_back
from ibid.graphs.answer.nodes.classify import classify
from ibid.graphs.answer.nodes.classify_or_ask import classify_or_ask
from ibid.graphs.answer.nodes.generate import generate
from ibid.graphs.answer.nodes.grade import grade
from ibid.graphs.answer.nodes.refuse import refuse
from ibid.graphs.answer.nodes.retrieve import retrieve
from ibid.graphs.answer.nodes.retrieve_or_ask import retrieve_or_ask
from ibid.graphs.answer.state import AnswerState

AnswerGraph = CompiledStateGraph[AnswerState, AnswerDeps, AnswerState, AnswerState]
AskNode = Callable[[AskState, Runtime[AnswerDeps]], Awaitable[AskState]]
AskEdge = Callable[[AskState, Runtime[AnswerDeps]], Awaitable[str]]


class Routed(Protocol):
    """A node that says where it leads."""

    def __call__(self, state: AskState, runtime: Runtime[AnswerDeps]) -> Awaitable[Command[str]]:
        """Return what it writes, and the name of the next node."""


def build_answer_graph(
    *,
    guardrails: bool = False,
    clarify: bool = False,
    review: bool = False,
    propose_target: str | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
) -> AnswerGraph:
    """Build and compile a graph; with no argument it is `messages`, with `clarify` it is `ask`.

    A graph that can't pause keeps nothing between its steps, and its crash is one error and a new
    try. One that can keeps every step with its checkpointer.

    Args:
        guardrails: Checks before and after, with intake and closing.
        clarify: Asks the asker when the question has several readings.
        review: Asks a reviewer when the draft needs one.
        propose_target: What a change set is proposed for.
        checkpointer: A saver that leases its threads; for a graph that can pause, and only then.

    Raises:
        ValueError: An argument asks for nodes that this version does not have; a graph without
            them would answer what it should have checked. Or the checkpointer is missing, or
            too many.
    """
    asked = {
        "guardrails": guardrails,
        "review": review,
        "propose_target": propose_target is not None,
    }
    absent = [name for name, wanted in asked.items() if wanted]
    if absent:
        raise ValueError(f"this version has no nodes for {', '.join(absent)}")
    if clarify is (checkpointer is None):
        raise ValueError("a graph has a checkpointer if it can pause, and only then")
    return _ask(checkpointer) if checkpointer is not None else _messages()


def _messages() -> AnswerGraph:
    graph = StateGraph(AnswerState, context_schema=AnswerDeps)
    graph.add_node("classify", classify)
    graph.add_node("retrieve", retrieve)
    graph.add_node("grade", grade)
    graph.add_node("generate", generate)
    graph.add_node("answer_from_history", answer_from_history)
    graph.add_node("refuse", refuse)
    graph.add_edge(START, "classify")
    graph.add_conditional_edges("classify", after_classify)
    graph.add_conditional_edges("retrieve", after_retrieve)
    graph.add_conditional_edges("grade", after_grade)
    graph.add_edge("generate", END)
    graph.add_edge("answer_from_history", END)
    graph.add_edge("refuse", END)
    return graph.compile(name="messages")


def _ask(checkpointer: BaseCheckpointSaver[Any]) -> AnswerGraph:
    graph = StateGraph(AskState, context_schema=AnswerDeps)
    for name, node, after, destinations in (
        (
            "classify",
            classify_or_ask,
            after_classify_or_ask,
            ("clarify", "retrieve", "answer_from_history", "refuse"),
        ),
        ("retrieve", retrieve_or_ask, after_retrieve_or_ask, ("clarify", "grade", "generate")),
        ("clarify", ask_back, after_clarify, ("clarify", "grade", "retrieve", END)),
        ("grade", cast("AskNode", grade), after_grade, ("retrieve", "generate")),
    ):
        graph.add_node(name, routed(node, after), destinations=destinations)
    graph.add_node("generate", generate)
    graph.add_node("answer_from_history", answer_from_history)
    graph.add_node("refuse", refuse)
    graph.add_edge(START, "classify")
    graph.add_edge("generate", END)
    graph.add_edge("answer_from_history", END)
    graph.add_edge("refuse", END)
    compiled = graph.compile(name="ask", checkpointer=checkpointer)
    return cast("AnswerGraph", compiled)  # its state has every key of an answer's, and more


def routed(node: AskNode, after: AskEdge) -> Routed:
    """Make a node also say where it leads, so that both are kept together or not at all.

    LangGraph runs a conditional edge behind its node's writes, and keeps those without the edge's
    if the run is cancelled in between: the turn would have no way on.
    """

    async def node_and_edge(state: AskState, runtime: Runtime[AnswerDeps]) -> Command[str]:
        writes = await node(state, runtime)
        return Command(update=writes, goto=await after({**state, **writes}, runtime))

    return node_and_edge


# The edges are coroutines, since LangGraph runs a plain function in a thread: three hops a turn,
# milliseconds each on a busy machine.


async def after_classify(
    state: AnswerState,
) -> Literal["retrieve", "answer_from_history", "refuse"]:
    """Search for what is about the code base, and for nothing else."""
    match Intent(state["intent"]):
        case Intent.CODEBASE_QUESTION:
            return "retrieve"
        case Intent.CONVERSATIONAL:
            return "answer_from_history"
        case Intent.OUT_OF_SCOPE:
            return "refuse"


async def after_retrieve(state: AnswerState) -> Literal["grade", "generate"]:
    """Judge what was found; where nothing was, go to the fixed text."""
    return "grade" if state["passages"] else "generate"


async def after_grade(
    state: AnswerState, runtime: Runtime[AnswerDeps]
) -> Literal["retrieve", "generate"]:
    """Search again after a bad verdict, as long as there are attempts left."""
    attempts_left = state["attempts"] < runtime.context.settings.max_retrieval_attempts
    return "retrieve" if state["evidence_ok"] is False and attempts_left else "generate"


async def after_classify_or_ask(
    state: AskState, _: Runtime[AnswerDeps]
) -> Literal["clarify", "retrieve", "answer_from_history", "refuse"]:
    """Ask where the router is unsure; else go on as `after_classify` says."""
    return "clarify" if state["doubt"] else await after_classify(state)


async def after_retrieve_or_ask(
    state: AskState, _: Runtime[AnswerDeps]
) -> Literal["clarify", "grade", "generate"]:
    """Ask where two things tie; else go on as `after_retrieve` says."""
    return "clarify" if state["doubt"] else await after_retrieve(state)


async def after_clarify(
    state: AskState, _: Runtime[AnswerDeps]
) -> Literal["clarify", "grade", "retrieve", "__end__"]:
    """End with a plain question, ask once more, judge what is left, or search again."""
    if state["plain"] is not None:
        return "__end__"
    if state["doubt"]:
        return "clarify"
    return "grade" if state["narrowed"] and state["passages"] else "retrieve"
