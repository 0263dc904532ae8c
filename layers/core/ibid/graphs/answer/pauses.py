"""The pause of a turn: found in its checkpoint, and checked before anything answers it."""

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from ibid.domain.answers import Clarification, TurnPause
from ibid.domain.errors import GraphChanged, InterruptStale, NothingPending, ThreadGone
from ibid.graphs.answer.build import AnswerGraph


async def pending_pause(
    graph: AnswerGraph, turn_id: str, *, interrupt_id: str, node: str, answered: bool = False
) -> None:
    """See that an answer to a pause would be heard; before the first byte of the answer's run.

    LangGraph itself starts an empty run on an unknown thread, ignores an unknown id, and loses the
    answer to a node that is gone.

    Args:
        graph: As it is deployed now.
        turn_id: The checkpoint thread.
        interrupt_id: Of the pause that is to be answered.
        node: The one that waits, as `Paused` keeps it.
        answered: An earlier run took the same answer and died with it: the turn may be past the
            pause, and goes on from wherever it is.

    Raises:
        GraphChanged: The graph has no such node.
        NothingPending: Nothing of the turn is kept, or it does not wait.
        InterruptStale: It waits for the answer to another question.
        CheckpointFailed: The checkpoint can't be read.
        StoreUnavailable: The store gave no answer.
    """
    if node not in graph.nodes:
        raise GraphChanged(f"the graph {graph.name!r} has no node {node!r} any more")
    try:
        snapshot = await graph.aget_state(thread_config(turn_id))
    except ThreadGone as error:
        raise NothingPending(f"nothing of turn {turn_id!r} is kept") from error
    if snapshot.created_at is None:
        raise NothingPending(f"nothing of turn {turn_id!r} is kept")
    if answered:
        return
    pause = pause_of(snapshot)
    if pause is None:
        raise NothingPending(f"turn {turn_id!r} does not wait for an answer")
    if pause.interrupt_id != interrupt_id:
        raise InterruptStale(f"turn {turn_id!r} waits at {pause.interrupt_id!r}")


def pause_of(snapshot: StateSnapshot) -> TurnPause | None:
    """Return the pause that a turn waits in; None if it waits in none."""
    for task in snapshot.tasks:
        for asked in task.interrupts:
            value: dict[str, Any] = asked.value
            return TurnPause(
                interrupt_id=asked.id,
                node=task.name,
                clarification=Clarification(
                    question=value["question"], options=tuple(value["options"])
                ),
            )
    return None


def thread_config(turn_id: str) -> RunnableConfig:
    """Return the config that reads a turn's checkpoints."""
    return {"configurable": {"thread_id": turn_id}}
