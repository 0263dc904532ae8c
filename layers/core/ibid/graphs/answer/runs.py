"""The graph's part of a run: from the input, or from where the turn stands, to its end or a pause.

What a resumption finds decides how it goes on:

- the pause that it answers: the answer goes in under the pause's id, since it may be any text;
- another pause: an earlier run took the answer, and asks something else now;
- an answer: an earlier run had finished, and died before it could say so;
- anything else: an earlier run took the answer and died on the way.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from ibid.domain.answers import TurnInput, TurnPause
from ibid.domain.errors import GraphChanged, NothingPending
from ibid.domain.events import CitationsFound, TokenDelta, TurnEvent
from ibid.graphs.answer.ask_state import AskState, first_ask_state
from ibid.graphs.answer.build import AnswerGraph
from ibid.graphs.answer.channel import Channel
from ibid.graphs.answer.citations import shown_citations
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.holding import LeasingSaver, holding
from ibid.graphs.answer.pauses import pause_of
from ibid.graphs.answer.state import AnswerState, first_state, passages_of
from ibid.graphs.answer.suggestions import suggestions

_INTERRUPTED = "__interrupt__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a finished turn leaves.

    Attributes:
        asking: The same state, where the graph can pause.
    """

    state: AnswerState
    asking: AskState | None = None
    suggestions: tuple[str, ...] = ()


async def run_through(
    graph: AnswerGraph, turn: TurnInput, deps: AnswerDeps, events: Channel[TurnEvent]
) -> Ended | TurnPause:
    """Run a graph that can't pause to its end."""
    state = first_state(turn)
    stream = graph.astream(state, context=deps, stream_mode=["custom", "values"])
    # Closed here and not by the garbage collector, which would leave nodes running for a while.
    async with aclosing(cast("AsyncGenerator[tuple[str, Any], None]", stream)) as parts:
        async for mode, part in parts:
            if mode == "custom":
                await events.put(part)
            else:
                state = part
    return Ended(state=state)


async def run_under_lease(
    graph: AnswerGraph, turn: TurnInput, deps: AnswerDeps, events: Channel[TurnEvent]
) -> Ended | TurnPause:
    """Run a graph that can pause, from its input or from where the turn stands.

    Raises:
        GraphChanged: The node that waited is gone.
        NothingPending: Nothing of the turn is kept.
        ThreadLeased: Another run of it is alive.
    """
    saver = cast("LeasingSaver", graph.checkpointer)
    async with holding(saver, turn.turn_id, owner=turn.run_id, wait_s=deps.lease_wait_s) as lease:
        config: RunnableConfig = {"configurable": lease.configurable}
        return await _run(graph, turn, deps, _Shown(events, deps), config)


async def _run(
    graph: AnswerGraph,
    turn: TurnInput,
    deps: AnswerDeps,
    shown: "_Shown",
    config: RunnableConfig,
) -> Ended | TurnPause:
    if turn.resumption is None:
        state = first_ask_state(turn)
        return await _go(graph, state, state, deps, shown=shown, config=config)
    snapshot = await graph.aget_state(config)
    if snapshot.created_at is None:
        raise NothingPending(f"nothing of turn {turn.turn_id!r} is kept")
    state = cast("AskState", snapshot.values)
    pause = pause_of(snapshot)
    if pause is None and state["answer"]:
        await shown.answer_of(state)
        return await _ended(state, deps)
    if pause is None:
        return await _go(graph, None, state, deps, shown=shown, config=config)
    if pause.interrupt_id != turn.resumption.interrupt_id:
        return pause
    answer: Command[str] = Command(resume={pause.interrupt_id: turn.resumption.answer})
    return await _go(graph, answer, state, deps, shown=shown, config=config)


async def _go(
    graph: AnswerGraph,
    given: AskState | Command[str] | None,
    state: AskState,
    deps: AnswerDeps,
    *,
    shown: "_Shown",
    config: RunnableConfig,
) -> Ended | TurnPause:
    """Run the graph on what it is given, from the state that it has."""
    stream = graph.astream(
        given, config, context=deps, stream_mode=["custom", "values"], durability="sync"
    )
    async with aclosing(cast("AsyncGenerator[tuple[str, Any], None]", stream)) as parts:
        async for mode, part in parts:
            if mode == "custom":
                await shown.event(part, state)
            elif _INTERRUPTED not in part:
                state = part
    if state["answer"]:
        await shown.sources_of(state)
        return await _ended(state, deps)
    pause = pause_of(await graph.aget_state(config))
    if pause is None:
        raise GraphChanged(f"the graph {graph.name!r} lost its way in a turn that waited")
    return pause


async def _ended(state: AskState, deps: AnswerDeps) -> Ended:
    return Ended(state=state, asking=state, suggestions=await suggestions(state, deps))


class _Shown:
    """What this run has shown; every run shows its sources once, before its first token."""

    def __init__(self, events: Channel[TurnEvent], deps: AnswerDeps) -> None:
        self._events = events
        self._deps = deps
        self._has_sources = False

    async def event(self, event: TurnEvent, state: AnswerState) -> None:
        """Hand an event on, behind the sources that it needs."""
        if isinstance(event, TokenDelta):
            await self.sources_of(state)
        if isinstance(event, CitationsFound):
            self._has_sources = True
        await self._events.put(event)

    async def sources_of(self, state: AnswerState) -> None:
        """Show a state's sources, unless this run has shown some."""
        if not self._has_sources:
            self._has_sources = True
            found = shown_citations(passages_of(state), self._deps.permalink)
            await self._events.put(found)

    async def answer_of(self, state: AnswerState) -> None:
        """Show an answer that is there already."""
        await self.event(TokenDelta(text=state["answer"]), state)
