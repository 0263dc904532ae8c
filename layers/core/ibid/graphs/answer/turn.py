"""One turn from its question to its result, as a stream that can be left at any time."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

import anyio

from ibid.domain.answers import Intent, TurnInput, TurnResult
from ibid.domain.events import TokenDelta, TurnEvent
from ibid.graphs.answer.build import AnswerGraph
from ibid.graphs.answer.channel import Channel
from ibid.graphs.answer.citations import check_citations, citation_of
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.state import AnswerState, first_state, history_of, passages_of
from ibid.graphs.answer.warnings import grounding_warnings


async def stream_turn(
    graph: AnswerGraph, turn: TurnInput, deps: AnswerDeps
) -> AsyncGenerator[TurnEvent | TurnResult, None]:
    """Run a turn; yield its events as they happen, then its result, once.

    The graph runs in a task of its own, since LangGraph stops its nodes when a task is cancelled
    but not when an anyio scope is. Closing this iterator, or cancelling whoever reads it, cancels
    that task and waits until every node has stopped. The graph runs at most
    `deps.pending_events` ahead of the reader.

    Raises:
        IbidError: Why the turn failed, just as a node raised it; what was yielded stays valid.
    """
    events: Channel[TurnEvent] = Channel(room=deps.pending_events)
    task = asyncio.create_task(_run(graph, turn, deps, events))
    # However the task ends, this comes after its last event: the reader never waits in vain.
    task.add_done_callback(lambda _: events.end())
    shown: list[str] = []
    try:
        async for event in events:
            if isinstance(event, TokenDelta):
                shown.append(event.text)
            yield event
        yield _result("".join(shown), task.result(), deps)
    finally:
        # LangGraph can swallow a cancellation at the very end of a graph: then it is the open
        # channel that lets the task end.
        events.leave()
        await _stop(task)


async def _run(
    graph: AnswerGraph, turn: TurnInput, deps: AnswerDeps, events: Channel[TurnEvent]
) -> AnswerState:
    """Run the graph to its end, hand on what its nodes wrote, and return the last state."""
    state = first_state(turn)
    stream = graph.astream(state, context=deps, stream_mode=["custom", "values"])
    # Closed here and not by the garbage collector, which would leave nodes running for a while.
    async with aclosing(cast("AsyncGenerator[tuple[str, Any], None]", stream)) as parts:
        async for mode, part in parts:
            if mode == "custom":
                await events.put(part)
            else:
                state = part
    return state


async def _stop(task: "asyncio.Task[AnswerState]") -> None:
    """Cancel a task and wait for its end, whatever is done to the waiter meanwhile."""
    cancelled: asyncio.CancelledError | None = None
    task.cancel()
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
    if not task.cancelled():
        task.exception()  # looked at, so that no "never retrieved" is logged
    if cancelled is not None:
        raise cancelled


def _result(answer: str, state: AnswerState, deps: AnswerDeps) -> TurnResult:
    """Check the answer's citations and look for what may be wrong with it."""
    passages = passages_of(state)
    searched = state["attempts"] > 0
    cited = check_citations(answer, passages)
    return TurnResult(
        answer=answer,
        passages=passages,
        citations=tuple(
            citation_of(passage, index=index, url=deps.permalink(passage), cited=index in cited)
            for index, passage in enumerate(passages, start=1)
        ),
        cited_indexes=cited,
        warnings=grounding_warnings(
            answer,
            passages,
            searched=searched,
            cited_indexes=cited,
            evidence_ok=state["evidence_ok"],
            question=state["question"],
            history=history_of(state),
        ),
        intent=Intent(state["intent"]),
        retrieval_attempts=state["attempts"],
        degraded=tuple(state["degraded"]),
        model=deps.model.name,
    )
