"""A turn that is left stops at once, wherever it is, and leaves nothing running."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import anyio
import pytest

from ibid.domain.answers import TurnResult
from ibid.domain.events import TokenDelta
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.turn import stream_turn
from tests.fakes.scripted_model import ScriptedModel
from tests.fakes.search import FakePassageSearch
from tests.unit.graphs.answer.turns import GRAPH, deps, passage, read, turn

INSUFFICIENT = {"sufficient": False, "gap": "", "better_query": "better"}


class Place:
    """Somewhere that a node waits for ever, and what became of it."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.cancelled = 0

    async def wait(self) -> None:
        self.entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


async def _step() -> None:
    await asyncio.sleep(0)


def _slow_turn() -> tuple[ScriptedModel, AnswerDeps]:
    """Make a turn that takes every way there is and gives the loop a step between all of them."""
    model = ScriptedModel(
        ["a ", _step, "b ", _step, "c [1]."],
        decisions={"grade": [INSUFFICIENT]},
        before_decision=_step,
    )
    return model, deps(model, FakePassageSearch([passage()], before=_step), pending_events=1)


async def _read(given: AnswerDeps) -> None:
    async with aclosing(stream_turn(GRAPH, turn(), given)) as items:
        async for _ in items:
            await _step()


def _nothing_runs() -> bool:
    return asyncio.all_tasks() == {asyncio.current_task()}


async def _steps_of_a_turn() -> int:
    _, given = _slow_turn()
    reader = asyncio.create_task(_read(given))
    steps = 0
    while not reader.done():
        await asyncio.sleep(0)
        steps += 1
    return steps


async def test_cancelling_the_reader_at_any_step_leaves_no_task_and_no_open_stream() -> None:
    for steps in range(await _steps_of_a_turn() + 1):
        model, given = _slow_turn()
        reader = asyncio.create_task(_read(given))
        for _ in range(steps):
            await asyncio.sleep(0)

        reader.cancel()
        (outcome,) = await asyncio.gather(reader, return_exceptions=True)

        assert outcome is None or isinstance(outcome, asyncio.CancelledError), steps
        assert _nothing_runs(), steps
        assert model.open_streams == 0, steps


async def test_cancelling_the_scope_around_the_reader_stops_the_nodes_as_well() -> None:
    for steps in range(0, await _steps_of_a_turn() + 1, 3):
        model, given = _slow_turn()

        async with anyio.create_task_group() as group:
            group.start_soon(_read, given)
            for _ in range(steps):
                await asyncio.sleep(0)
            group.cancel_scope.cancel()

        assert _nothing_runs(), steps
        assert model.open_streams == 0, steps


@pytest.mark.parametrize("events", range(1, 11))
async def test_closing_the_iterator_after_any_event_leaves_no_task(events: int) -> None:
    model, given = _slow_turn()
    items = stream_turn(GRAPH, turn(), given)
    for _ in range(events):
        await anext(items)

    await items.aclose()

    assert _nothing_runs()
    assert model.open_streams == 0


async def test_an_iterator_that_was_never_read_started_nothing() -> None:
    model, given = _slow_turn()

    await stream_turn(GRAPH, turn(), given).aclose()

    assert _nothing_runs()
    assert model.requests == []


def _waits_in(where: str, place: Place) -> AnswerDeps:
    model = ScriptedModel(
        ["a ", place.wait, "b"] if where == "answer" else ["a"],
        before_decision=place.wait if where == "helper" else None,
    )
    search = FakePassageSearch([passage()], before=place.wait if where == "search" else None)
    return deps(model, search)


Leave = Callable[[AnswerDeps, Place], Awaitable[None]]


async def _by_cancelling(given: AnswerDeps, place: Place) -> None:
    reader = asyncio.create_task(_read(given))
    await place.entered.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader


async def _by_scope(given: AnswerDeps, place: Place) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(_read, given)
        await place.entered.wait()
        group.cancel_scope.cancel()


async def _by_time_out(given: AnswerDeps, place: Place) -> None:
    async def once_there(limit: asyncio.Timeout) -> None:
        await place.entered.wait()
        limit.reschedule(asyncio.get_running_loop().time())

    async def read_in_time() -> None:
        async with asyncio.timeout(None) as limit:
            waiting = asyncio.create_task(once_there(limit))
            try:
                await _read(given)
            finally:
                await waiting

    with pytest.raises(TimeoutError):
        await read_in_time()


@pytest.mark.parametrize("leave", [_by_cancelling, _by_scope, _by_time_out])
@pytest.mark.parametrize("where", ["helper", "search", "answer"])
async def test_a_node_that_waits_is_stopped_before_the_reader_is_gone(
    where: str, leave: Leave
) -> None:
    place = Place()
    given = _waits_in(where, place)

    await leave(given, place)

    assert place.cancelled == 1
    assert _nothing_runs()


async def test_a_second_cancellation_does_not_cut_the_clean_up_short() -> None:
    cleaned = asyncio.Event()
    stopping = asyncio.Event()
    go_on = asyncio.Event()
    place = Place()

    async def slow_to_stop() -> None:
        try:
            await place.wait()
        finally:
            stopping.set()
            await go_on.wait()
            cleaned.set()

    reader = asyncio.create_task(_read(deps(ScriptedModel(["a", slow_to_stop, "b"]))))
    await place.entered.wait()
    reader.cancel()
    await stopping.wait()
    reader.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await reader

    assert cleaned.is_set()
    assert _nothing_runs()


async def test_a_node_that_is_cancelled_from_within_is_a_failure_and_no_hang() -> None:
    seen = await read(turn(), deps(ScriptedModel(["a ", asyncio.CancelledError()])))

    assert seen.text == "a "
    assert isinstance(seen.error, Exception)
    assert _nothing_runs()


async def test_the_graph_does_not_hand_on_more_than_its_reader_has_room_for() -> None:
    model = ScriptedModel([f"{number} " for number in range(50)])
    items = stream_turn(GRAPH, turn(), deps(model, pending_events=1))
    seen: list[str] = []

    async for item in items:
        if isinstance(item, TokenDelta):
            seen.append(item.text)
            for _ in range(20):
                await asyncio.sleep(0)
        elif isinstance(item, TurnResult):
            break
    await items.aclose()

    assert seen == [f"{number} " for number in range(50)]
    assert _nothing_runs()


async def test_turns_of_one_graph_do_not_mix() -> None:
    def model(name: str) -> ScriptedModel:
        return ScriptedModel(
            [step for n in range(20) for step in (f"{name}{n} ", _step)], name=name
        )

    names = [f"model{number}-" for number in range(8)]

    seen = await asyncio.gather(*(read(turn(), deps(model(name))) for name in names))

    for name, one in zip(names, seen, strict=True):
        assert one.text == "".join(f"{name}{n} " for n in range(20))
        assert one.result.model == name
