"""A turn goes on from its checkpoint: once, from wherever its last run left it, under its lease."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import StateSnapshot

from ibid.adapters.sqlite.saver import EmbeddedSaver
from ibid.domain.answers import TurnPause
from ibid.domain.errors import (
    GraphChanged,
    InterruptStale,
    ModelUnavailable,
    NothingPending,
    ThreadLeased,
)
from ibid.domain.events import CitationsFound, TokenDelta
from ibid.graphs.answer.ask_state import AskState
from ibid.graphs.answer.build import AnswerGraph, build_answer_graph
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.pauses import pending_pause
from ibid.graphs.answer.turn import stream_turn
from tests.fakes.leased_memory import LeasedMemorySaver
from tests.fakes.scripted_model import ScriptedModel
from tests.fakes.search import FakePassageSearch
from tests.unit.graphs.answer.asking import ASKED, TIED, Killed, MortalSaver, ask_graph
from tests.unit.graphs.answer.turns import Seen, deps, read, resumed, turn

ANSWER = "It is in the first excerpt [1]."


async def paused(graph: AnswerGraph, given: AnswerDeps) -> TurnPause:
    return (await read(turn(ASKED), given, graph=graph)).pause


async def at(graph: AnswerGraph) -> StateSnapshot:
    return await graph.aget_state({"configurable": {"thread_id": "t-1"}})


def renamed(saver: LeasedMemorySaver) -> AnswerGraph:
    """A later version of the graph, whose asking node has another name."""

    async def ask_the_asker(state: AskState) -> AskState:
        return {"answer": state["question"]}

    graph = StateGraph(AskState, context_schema=AnswerDeps)
    graph.add_node("ask_the_asker", ask_the_asker)
    graph.add_edge(START, "ask_the_asker")
    graph.add_edge("ask_the_asker", END)
    compiled: Any = graph.compile(name="ask", checkpointer=saver)
    later: AnswerGraph = compiled
    return later


async def test_a_pause_outlives_its_process_with_all_that_was_computed(tmp_path: Path) -> None:
    search = FakePassageSearch(TIED)
    saver = await EmbeddedSaver.open(tmp_path / "c.sqlite")
    pause = await paused(build_answer_graph(clarify=True, checkpointer=saver), deps(search=search))
    await saver.close()

    later = await EmbeddedSaver.open(tmp_path / "c.sqlite")
    graph = build_answer_graph(clarify=True, checkpointer=later)
    model = ScriptedModel()
    await pending_pause(graph, "t-1", interrupt_id=pause.interrupt_id, node=pause.node)
    seen = await read(resumed(turn(ASKED), pause, "2"), deps(model, search), graph=graph)
    await later.close()

    assert seen.result.answer == ANSWER
    assert [request.task for request in model.requests] == ["grade", "answer"]
    assert len(search.searches) == 1


async def test_a_finished_turn_gives_its_result_again_without_a_model_or_a_search() -> None:
    graph, model, search = ask_graph(), ScriptedModel(), FakePassageSearch(TIED)
    given = deps(model, search)
    pause = await paused(graph, given)
    once = await read(resumed(turn(ASKED), pause, "2"), given, graph=graph)
    calls = len(model.requests)

    again = await read(resumed(turn(ASKED), pause, "2", run="t-3"), given, graph=graph)

    assert again.result == once.result
    assert again.text == ANSWER
    assert [type(event) for event in again.events] == [CitationsFound, TokenDelta]
    assert len(model.requests) == calls
    assert len(search.searches) == 1


async def test_a_run_that_failed_behind_the_answer_is_gone_on_with_from_there() -> None:
    graph, search = ask_graph(), FakePassageSearch(TIED)
    pause = await paused(graph, deps(search=search))
    broken = ScriptedModel(["It is ", ModelUnavailable("broke off")])
    failed = await read(resumed(turn(ASKED), pause, "2"), deps(broken, search), graph=graph)
    snapshot = await at(graph)
    model = ScriptedModel()

    seen = await read(resumed(turn(ASKED), pause, "2", run="t-3"), deps(model, search), graph=graph)

    assert isinstance(failed.error, ModelUnavailable)
    assert failed.text == "It is "
    assert snapshot.next == ("generate",)
    assert snapshot.interrupts == ()
    assert [request.task for request in model.requests] == ["answer"]
    assert seen.text == seen.result.answer == ANSWER
    assert [type(event) for event in seen.events].count(CitationsFound) == 1
    assert seen.result.passages[0].file_path == "src/data.py"


async def test_a_run_that_dies_at_any_write_is_gone_on_with_and_the_answer_counts_once() -> None:
    graph = ask_graph(saver := MortalSaver())
    given = deps(search=FakePassageSearch(TIED))
    pause = await paused(graph, given)
    before = saver.life.stored
    whole = await read(resumed(turn(ASKED), pause, "2"), given, graph=graph)
    writes = saver.life.stored - before
    assert writes > 5

    for life in range(1, writes + 1):
        graph = ask_graph(saver := MortalSaver())
        model, search = ScriptedModel(), FakePassageSearch(TIED)
        given = deps(model, search)
        pause = await paused(graph, given)
        saver.life.left = life
        with suppress(Killed):
            await read(resumed(turn(ASKED), pause, "2"), given, graph=graph)
        saver.life.left = None

        seen = await read(resumed(turn(ASKED), pause, "2", run="t-3"), given, graph=graph)

        assert seen.result.answer == ANSWER, life
        assert seen.result.passages == whole.result.passages, life
        assert len(search.searches) == 1, life
        assert len(model.calls("classify")) == 1, life


async def test_an_answer_that_led_to_another_pause_is_told_that_pause() -> None:
    graph, given = ask_graph(), deps(search=FakePassageSearch(TIED))
    asked = turn("How does it work?")
    first = (await read(asked, given, graph=graph)).pause
    second = (await read(resumed(asked, first, "`load`"), given, graph=graph)).pause

    seen = await read(resumed(asked, first, "`load`", run="t-3"), given, graph=graph)

    assert seen.pause == second
    assert seen.events == []


@pytest.mark.parametrize("answer", ["0", "false", "null", "{}", "[]", "\x00", "2\n", "\ud83d", "é"])
async def test_odd_answers_are_applied_and_never_pause_again(answer: str) -> None:
    graph, given = ask_graph(), deps(search=FakePassageSearch(TIED))
    pause = await paused(graph, given)

    seen = await read(resumed(turn(ASKED), pause, answer), given, graph=graph)

    assert seen.pauses == []
    assert seen.result.answer == ANSWER


async def test_a_pending_pause_is_found_and_anything_else_is_refused() -> None:
    saver = LeasedMemorySaver()
    graph, given = ask_graph(saver), deps(search=FakePassageSearch(TIED))

    with pytest.raises(NothingPending):
        await pending_pause(graph, "t-1", interrupt_id="i", node="clarify")
    pause = await paused(graph, given)
    await pending_pause(graph, "t-1", interrupt_id=pause.interrupt_id, node="clarify")
    with pytest.raises(InterruptStale):
        await pending_pause(graph, "t-1", interrupt_id="another", node="clarify")
    with pytest.raises(GraphChanged):
        await pending_pause(graph, "t-1", interrupt_id=pause.interrupt_id, node="ask_the_asker")
    with pytest.raises(GraphChanged):
        await pending_pause(renamed(saver), "t-1", interrupt_id=pause.interrupt_id, node="clarify")
    await read(resumed(turn(ASKED), pause, "2"), given, graph=graph)
    with pytest.raises(NothingPending):
        await pending_pause(graph, "t-1", interrupt_id=pause.interrupt_id, node="clarify")
    await pending_pause(
        graph, "t-1", interrupt_id=pause.interrupt_id, node="clarify", answered=True
    )


async def test_a_deleted_turn_has_nothing_pending(tmp_path: Path) -> None:
    saver = await EmbeddedSaver.open(tmp_path / "c.sqlite")
    graph = build_answer_graph(clarify=True, checkpointer=saver)
    given = deps(search=FakePassageSearch(TIED))
    pause = await paused(graph, given)
    await saver.adelete_thread("t-1")

    for answered in (False, True):
        with pytest.raises(NothingPending):
            await pending_pause(
                graph, "t-1", interrupt_id=pause.interrupt_id, node="clarify", answered=answered
            )
    await saver.close()


async def test_a_graph_that_lost_the_node_meanwhile_says_so_and_the_answer_is_not_lost() -> None:
    saver = LeasedMemorySaver()
    graph, given = ask_graph(saver), deps(search=FakePassageSearch(TIED))
    pause = await paused(graph, given)

    lost = await read(resumed(turn(ASKED), pause, "2"), given, graph=renamed(saver))
    seen = await read(resumed(turn(ASKED), pause, "2", run="t-3"), given, graph=graph)

    assert isinstance(lost.error, GraphChanged)
    assert seen.result.passages[0].file_path == "src/data.py"


async def test_a_resumption_of_a_turn_that_is_gone_starts_nothing() -> None:
    model = ScriptedModel()

    seen = await read(resumed(turn(ASKED), "i", "2"), deps(model), graph=ask_graph())

    assert isinstance(seen.error, NothingPending)
    assert model.requests == []


async def test_every_run_holds_the_turns_lease_in_its_own_name_and_gives_it_back() -> None:
    saver = LeasedMemorySaver()
    graph = ask_graph(saver)
    held: list[dict[str, str]] = []

    async def look() -> None:
        held.append(dict(saver.holders))

    given = deps(search=FakePassageSearch(TIED))
    seen = await read(turn(ASKED), given, graph=graph, proceed=look)
    await read(resumed(turn(ASKED), seen.pause, "2"), given, graph=graph, proceed=look)

    assert held == [{"t-1": "t-1"}, {"t-1": "t-2"}, {"t-1": "t-2"}]
    assert saver.holders == {}


async def test_a_dead_runs_lease_is_waited_for_and_a_live_ones_only_so_long() -> None:
    seen = await read(
        turn(ASKED), deps(lease_wait_s=0.4), graph=ask_graph(LeasedMemorySaver({"t-1": 3}))
    )
    refused = await read(
        turn(ASKED), deps(lease_wait_s=0.05), graph=ask_graph(LeasedMemorySaver({"t-1": 9_999}))
    )

    assert seen.result.answer == ANSWER
    assert isinstance(refused.error, ThreadLeased)


async def test_a_dead_processs_lease_is_taken_over_from_the_embedded_saver(tmp_path: Path) -> None:
    saver = await EmbeddedSaver.open(tmp_path / "c.sqlite", term_s=0.2)
    graph = build_answer_graph(clarify=True, checkpointer=saver)
    given = deps(search=FakePassageSearch(TIED), lease_wait_s=30.0)
    pause = await paused(graph, given)
    await saver.take_lease("t-1", "a run that died")

    seen = await read(resumed(turn(ASKED), pause, "2"), given, graph=graph)
    await saver.close()

    assert seen.result.answer == ANSWER


async def test_two_resumptions_at_once_run_one_behind_the_other_and_call_no_model_twice(
    tmp_path: Path,
) -> None:
    saver = await EmbeddedSaver.open(tmp_path / "c.sqlite", term_s=5.0)
    graph = build_answer_graph(clarify=True, checkpointer=saver)
    model = ScriptedModel()
    given = deps(model, FakePassageSearch(TIED), lease_wait_s=30.0)
    pause = await paused(graph, given)

    both: Sequence[Seen] = await asyncio.gather(
        *(
            read(resumed(turn(ASKED), pause, "2", run=run), given, graph=graph)
            for run in ("t-2", "t-3")
        )
    )
    await saver.close()

    assert [seen.result.answer for seen in both] == [ANSWER, ANSWER]
    assert [request.task for request in model.requests] == ["classify", "grade", "answer"]


async def _steps(given: AnswerDeps, graph: AnswerGraph, pause: TurnPause) -> None:
    asked = resumed(turn(ASKED), pause, "2")
    async with aclosing(stream_turn(graph, asked, given)) as items:
        async for _ in items:
            await asyncio.sleep(0)


async def test_cancelling_a_resumption_at_any_step_frees_the_turn_and_it_goes_on_later() -> None:
    at_step, done = 0, False
    while not done:
        graph = ask_graph(saver := LeasedMemorySaver())
        model, search = ScriptedModel(), FakePassageSearch(TIED)
        given = deps(model, search, pending_events=1)
        pause = await paused(graph, given)
        reader = asyncio.create_task(_steps(given, graph, pause))
        for _ in range(at_step):
            await asyncio.sleep(0)
        done = reader.done()

        reader.cancel()
        await asyncio.wait([reader])

        assert asyncio.all_tasks() == {asyncio.current_task()}, at_step
        assert saver.holders == {}, at_step
        assert model.open_streams == 0, at_step
        seen = await read(resumed(turn(ASKED), pause, "2", run="t-3"), given, graph=graph)
        assert seen.result.answer == ANSWER, at_step
        assert len(search.searches) == 1, at_step
        at_step += 1
