"""One turn, or what is left of it after a pause, as a stream that can be left at any time."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

import anyio

from ibid.domain.answers import Intent, TurnInput, TurnPause, TurnResult
from ibid.domain.events import TokenDelta, TurnEvent
from ibid.graphs.answer.ask_state import AskState, plain_clarification
from ibid.graphs.answer.build import AnswerGraph
from ibid.graphs.answer.channel import Channel
from ibid.graphs.answer.citations import check_citations, citation_of
from ibid.graphs.answer.deps import AnswerDeps, Proceed, unhindered
from ibid.graphs.answer.runs import Ended, run_through, run_under_lease
from ibid.graphs.answer.state import AnswerState, history_of, passages_of
from ibid.graphs.answer.warnings import grounding_warnings


async def stream_turn(
    graph: AnswerGraph, turn: TurnInput, deps: AnswerDeps, proceed: Proceed = unhindered
) -> AsyncGenerator[TurnEvent | TurnResult | TurnPause, None]:
    """Run a turn, or go on with it; yield its events, then its result or its pause, once.

    The graph runs in a task of its own, since LangGraph stops its nodes when a task is cancelled
    but not when an anyio scope is. Closing this iterator, or cancelling whoever reads it, cancels
    that task and waits until every node has stopped. The graph runs at most
    `deps.pending_events` ahead of the reader.

    A resumption shows what happens from then on; what an earlier run of the turn has computed is
    kept. Where one had finished already, its answer is shown again, and no model is called.

    Args:
        graph: One that can pause runs under the lease of the turn's checkpoints.
        turn: With a `resumption`, the pause was looked at by `pending_pause` before.
        deps: Of the project.
        proceed: Awaited before each model call.

    Raises:
        IbidError: Why the turn failed, just as a node raised it; what was yielded stays valid.
        GraphChanged: The graph has lost the node that waited since that was looked at.
        NothingPending: The turn's checkpoints are gone since then.
        ThreadLeased: Another run of the turn is alive.
    """
    repinned = None if turn.resumption is None else turn.generation
    deps = replace(deps, proceed=proceed, repinned=repinned)
    events: Channel[TurnEvent] = Channel(room=deps.pending_events)
    run = run_through if graph.checkpointer is None else run_under_lease
    task = asyncio.create_task(run(graph, turn, deps, events))
    # However the task ends, this comes after its last event: the reader never waits in vain.
    task.add_done_callback(lambda _: events.end())
    shown: list[str] = []
    try:
        async for event in events:
            if isinstance(event, TokenDelta):
                shown.append(event.text)
            yield event
        ended = task.result()
        yield ended if isinstance(ended, TurnPause) else _result("".join(shown), ended, deps)
    finally:
        # LangGraph can swallow a cancellation at the very end of a graph: then it is the open
        # channel that lets the task end.
        events.leave()
        await _stop(task)


async def _stop(task: "asyncio.Task[Ended | TurnPause]") -> None:
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


def _result(answer: str, ended: Ended, deps: AnswerDeps) -> TurnResult:
    """Check the answer's citations and look for what may be wrong with it."""
    state: AnswerState = ended.state
    asking: AskState | None = ended.asking
    passages = passages_of(state)
    clarification = None if asking is None else plain_clarification(asking)
    searched = state["attempts"] > 0 and clarification is None
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
        clarification=clarification,
        assumptions=() if asking is None else tuple(asking["assumptions"]),
        suggestions=ended.suggestions,
    )
