"""A fault at every await of the answer path, one at a time."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from ibid.domain.answers import TurnInput, TurnResult
from ibid.domain.errors import ModelUnavailable, StoreUnavailable
from ibid.domain.events import Entry, Failed, TokenDelta, TurnEvent
from ibid.runs.live_run import LiveRun
from ibid.runs.turns import Proceed
from tests.fakes.faults import Injector, Kind
from tests.fakes.run_bench import Bench, text
from tests.fakes.samples import a_result, a_turn, scripted_work
from tests.fakes.sweep import (
    EAGER,
    Asked,
    Deed,
    asking,
    asking_and_answering,
    cancelled_elsewhere,
    one_behind_the_other,
    sweep_once,
)
from tests.fakes.works import stepped_work

TOKENS = ["It ", "is ", "he", "re ", "[1]."]
STORE_CALLS = 12  # begin, is_cancelled, append or two, end: before and after
KINDS: Sequence[Kind] = ("error", "late error", "cancel")
DEEDS: dict[str, Deed] = {
    "plain": asking(scripted_work(*TOKENS)),
    "steps": asking(stepped_work(*TOKENS)),
    "pause and resume": asking_and_answering,
    "cancel": cancelled_elsewhere,
    "enqueue": one_behind_the_other,
}


async def _bench(*, eager: bool) -> Bench:
    bench = await Bench.make()
    if eager:
        bench.engine = bench.another(limits=EAGER)
    return bench


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("deed", "eager"),
    [(deed, True) for deed in DEEDS] + [("plain", False), ("pause and resume", False)],
)
async def test_a_fault_at_any_suspension_of_any_task_leaves_one_terminator(
    deed: str, kind: Kind, *, eager: bool
) -> None:
    counting = Injector()
    await sweep_once(await _bench(eager=eager), DEEDS[deed], counting)
    met = 0

    for at in range(1, counting.suspensions + 1):
        injector = Injector(at, kind)
        await sweep_once(await _bench(eager=eager), DEEDS[deed], injector)
        met += injector.suspensions >= at

    assert met >= 7
    if deed != "enqueue":  # which polls, and so suspends as often as it takes
        assert met == counting.suspensions


@pytest.mark.parametrize("error", [StoreUnavailable("away"), RuntimeError()])
@pytest.mark.parametrize("deed", ["steps", "pause and resume"])
async def test_a_fault_of_any_store_call_leaves_one_terminator(deed: str, error: Exception) -> None:
    for at in range(1, STORE_CALLS + 1):
        calls = 0

        async def fail(_: str, at: int = at) -> None:
            nonlocal calls
            calls += 1
            if calls == at:
                raise error

        bench = await Bench.make()
        bench.engine = bench.another(at=fail, limits=EAGER)
        asked = Asked(bench)

        doing = asyncio.create_task(DEEDS[deed](asked))
        await asyncio.wait({doing})

        assert doing.exception() in {None, error}
        assert calls >= at
        await asked.check()


@pytest.mark.parametrize("error", [ModelUnavailable("away"), RuntimeError()])
async def test_a_fault_before_any_event_of_the_turn_leaves_one_terminator(
    error: Exception,
) -> None:
    for at in range(len(TOKENS) + 1):
        said = TOKENS[:at]

        async def work(
            _: TurnInput, __: Proceed, said: list[str] = said
        ) -> AsyncIterator[TurnEvent | TurnResult]:
            for token in said:
                yield TokenDelta(text=token)
                await asyncio.sleep(0)
            raise error

        bench = await Bench.make()
        asked = Asked(bench)

        await asked.ask(work)

        assert text(asked.entries) == "".join(said)
        await asked.check()


async def test_a_client_that_goes_after_any_event_leaves_one_message_of_what_it_saw() -> None:
    for most in range(1, len(TOKENS) + 4):
        bench = await Bench.make()
        live = await bench.engine.start(a_turn(), scripted_work(*TOKENS))
        entries: list[Entry] = []
        events = live.events(30)
        while len(entries) < most and (entry := await anext(events, None)) is not None:
            entries.append(entry)

        await events.aclose()

        await _check_left(bench, entries, live)


async def _check_left(bench: Bench, entries: list[Entry], live: LiveRun) -> None:
    await live.wait_ended()
    _, answer = await bench.messages()
    assert answer.content == text(entries)
    await bench.check_free()


async def test_a_turn_cancelled_before_its_first_step_still_ends(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), scripted_work("a"))

    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    entries = [entry async for entry in live.events(30) if entry is not None]

    end = await bench.check(live.id, entries)
    assert isinstance(end, Failed)
    assert end.code == "RUN_CANCELLED"


async def test_a_supervisor_that_is_cancelled_again_and_again_still_ends(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), scripted_work("a"))
    reading = asyncio.create_task(_collect(live))
    mine = {asyncio.current_task(), reading}

    while not live.ended.done():
        for task in asyncio.all_tasks() - mine:
            if task.get_name().startswith(("run ", "end of")):
                task.cancel()
        await asyncio.sleep(0)

    entries = await reading
    await bench.settle()
    await bench.check(live.id, entries)
    await bench.check_free()


async def _collect(live: LiveRun) -> list[Entry]:
    return [entry async for entry in live.events(30) if entry is not None]


async def test_an_answer_without_a_token_is_kept_as_one(bench: Bench) -> None:
    async def work(_: TurnInput, __: Proceed) -> AsyncIterator[TurnEvent | TurnResult]:
        await asyncio.sleep(0)
        yield a_result()

    live = await bench.engine.start(a_turn(), work)

    await bench.check(live.id, await _collect(live))
