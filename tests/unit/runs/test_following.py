"""Any number of followers, in any process, see what the run has shown and will show."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from ibid.domain.errors import JournalExpired, RunNotFound, StoreUnavailable
from ibid.domain.events import RESERVED_IDS, Entry, Failed, Paused
from ibid.domain.principals import Principal
from ibid.runs.engine import RunEngine
from tests.fakes.faults import Gate
from tests.fakes.run_bench import LIMITS, Bench, followed, read
from tests.fakes.samples import ANN, a_turn, scripted_work
from tests.fakes.sweep import EAGER
from tests.fakes.works import asking_work, stepped_work

FAST = replace(LIMITS, poll_s=0.001)


def _forever() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


async def _recorded(bench: Bench) -> tuple[str, Sequence[Entry]]:
    live = await bench.engine.start(a_turn(), scripted_work("It ", "is ", "[1]."))
    return live.id, await read(live)


async def _steps() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_recorded_run_is_replayed_from_every_id_by_every_process(bench: Bench) -> None:
    run_id, entries = await _recorded(bench)
    other = bench.another(owner="other")

    for after in range(len(entries)):
        for engine in (bench.engine, other):
            assert await followed(engine, run_id, after=after) == entries[after:]


async def test_a_live_run_is_followed_from_every_id_in_its_process(bench: Bench) -> None:
    go = _forever()
    live = await bench.engine.start(a_turn(), scripted_work("a", "b", pause=lambda: go))
    reading = asyncio.create_task(read(live))
    await _steps()
    following = [asyncio.create_task(followed(bench.engine, live.id, after=n)) for n in range(5)]
    await _steps()

    go.set_result(None)
    entries = await reading

    assert [await one for one in following] == [entries[after:] for after in range(5)]
    await bench.check(live.id, entries)


async def test_a_live_run_is_followed_from_every_id_in_another_process(bench: Bench) -> None:
    engine, other = bench.another(limits=EAGER), bench.another(owner="other", limits=FAST)
    go = _forever()
    live = await engine.start(a_turn(), scripted_work("a", "b", pause=lambda: go))
    reading = asyncio.create_task(read(live))
    following = [asyncio.create_task(followed(other, live.id, after=n)) for n in range(5)]
    await _steps()
    assert (await bench.run(live.id)).last_event_id == 4

    go.set_result(None)
    entries = await reading

    assert [await one for one in following] == [entries[after:] for after in range(5)]


async def test_a_follower_that_goes_changes_nothing(bench: Bench) -> None:
    go = _forever()
    live = await bench.engine.start(a_turn(), scripted_work("a", pause=lambda: go))
    reading = asyncio.create_task(read(live))
    for engine in (bench.engine, bench.another(owner="other", limits=FAST)):
        events = (await engine.follow(live.id, principal=ANN)).events(0.001)
        await anext(events)
        await events.aclose()

    go.set_result(None)

    await bench.check(live.id, await reading)


async def test_what_a_follower_saw_is_kept_though_the_reader_left_before(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), scripted_work("a", "b", pause=_forever))
    events = (await bench.engine.follow(live.id, principal=ANN)).events(30)
    seen = [await anext(events) for _ in range(4)]

    await read(live, most=1)
    end = [entry async for entry in events]

    await bench.check(live.id, [entry for entry in [*seen, *end] if entry is not None])


async def test_a_background_run_is_joined_by_its_events(bench: Bench) -> None:
    turn = replace(a_turn(), attended=False)
    engine = bench.another(limits=replace(LIMITS, attach_s=0.001))
    live = await engine.start(turn, scripted_work(*(f"{n} " for n in range(100))))

    entries = await followed(engine, live.id)

    await bench.check(live.id, entries)


async def test_nobody_follows_what_is_not_his(bench: Bench) -> None:
    run_id, _ = await _recorded(bench)
    live = await bench.engine.start(a_turn(), scripted_work(pause=_forever))
    for principal in (
        Principal(tenant="acme", subject="bob"),
        Principal(tenant="rival", subject="ann"),
    ):
        for one in (run_id, live.id, "c1-9", "nonsense"):
            with pytest.raises(RunNotFound):
                await bench.engine.follow(one, principal=principal)


async def test_at_or_past_the_terminator_there_is_nothing_to_read(bench: Bench) -> None:
    run_id, entries = await _recorded(bench)
    for after in (len(entries), len(entries) + 1):
        view = await bench.engine.follow(run_id, principal=ANN, after=after)

        assert view.is_over
        assert [entry async for entry in view.events(30)] == []
    assert not (await bench.engine.follow(run_id, principal=ANN, after=len(entries) - 1)).is_over


@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_whoever_claims_more_than_there_is_still_gets_the_terminator(
    bench: Bench, where: str
) -> None:
    go = _forever()
    live = await bench.engine.start(a_turn(), scripted_work("a", pause=lambda: go))
    reading = asyncio.create_task(read(live))
    await _steps()
    engine = bench.engine if where == "here" else bench.another(owner="other", limits=FAST)
    following = asyncio.create_task(followed(engine, live.id, after=999))
    await _steps()

    go.set_result(None)

    assert await following == (await reading)[-1:]


async def test_the_terminator_comes_with_the_run_as_it_is_kept(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), asking_work())
    await read(live)
    view = await bench.engine.follow(live.id, principal=ANN)

    entries = [entry async for entry in view.events(30)]

    assert view.ended == await bench.run(live.id) == live.run
    assert isinstance(entries[-1] and entries[-1].event, Paused)


@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_silence_gives_pings(bench: Bench, where: str) -> None:
    live = await bench.engine.start(a_turn(), scripted_work("a", pause=_forever))
    reading = asyncio.create_task(read(live))
    engine = bench.engine if where == "here" else bench.another(owner="other")
    events = (await engine.follow(live.id, principal=ANN, after=3)).events(0.001)

    assert [await anext(events) for _ in range(3)] == [None] * 3

    await events.aclose()
    reading.cancel()
    await live.wait_ended()


async def test_a_store_that_is_away_for_a_while_is_waited_for(bench: Bench) -> None:
    faults = 0

    async def away(point: str) -> None:
        nonlocal faults
        faults += point == "entries:before"
        if point == "entries:before" and 1 < faults < 5:
            raise StoreUnavailable("away")

    engine, other = bench.another(limits=EAGER), bench.another(owner="o", limits=FAST, at=away)
    live = await engine.start(a_turn(), stepped_work("a", "b", "c"))
    following = asyncio.create_task(followed(other, live.id))

    entries = await read(live)

    assert await following == entries
    assert faults >= 5


@pytest.mark.parametrize("point", ["read_dead:before", "end_dead:before"])
async def test_a_store_that_is_away_as_a_dead_run_is_ended_is_waited_for(
    bench: Bench, point: str
) -> None:
    faults = 0

    async def away(at: str) -> None:
        nonlocal faults
        faults += at == point
        if at == point and faults < 4:
            raise StoreUnavailable("away")

    gate = Gate("append:before", "is_cancelled:before", "end:before")
    live = await bench.another(at=gate).start(a_turn(), scripted_work("a", pause=_forever))
    gate.shut()

    entries = await _follow_dead(bench, bench.another(owner="o", limits=FAST, at=away), live.id)

    assert isinstance(entries[-1].event, Failed)
    assert faults >= 4
    gate.open()


async def test_a_store_that_is_away_as_a_run_is_deleted_is_waited_for(bench: Bench) -> None:
    faults = 0

    async def away(at: str) -> None:
        nonlocal faults
        faults += at == "read_dead:before"
        if at == "read_dead:before" and faults < 4:
            raise StoreUnavailable("away")

    live = await bench.engine.start(a_turn(), scripted_work("a", pause=_forever))
    other = bench.another(owner="other", limits=FAST, at=away)
    following = asyncio.create_task(followed(other, live.id))
    await _steps()

    await bench.delete()

    (end,) = await following
    assert isinstance(end.event, Failed)
    assert faults >= 4


async def test_whoever_claims_more_than_there_is_gets_no_ping_for_what_it_claims(
    bench: Bench,
) -> None:
    live = await bench.engine.start(a_turn(), scripted_work(*(f"{n} " for n in range(30))))
    view = await bench.engine.follow(live.id, principal=ANN, after=999)
    reading = asyncio.create_task(read(live))

    told = [entry async for entry in view.events(30)]

    assert told == (await reading)[-1:]


async def test_the_journal_of_a_run_is_gone_after_its_time(bench: Bench) -> None:
    run_id, entries = await _recorded(bench)
    later = bench.clock.now() + timedelta(seconds=LIMITS.journal_s + 1)

    await bench.records.runs.purge(later)

    with pytest.raises(JournalExpired):
        await bench.engine.follow(run_id, principal=ANN, after=1)
    assert (await bench.engine.follow(run_id, principal=ANN, after=len(entries))).is_over


async def test_a_journal_that_goes_while_it_is_read_still_ends_with_the_terminator(
    bench: Bench,
) -> None:
    run_id, entries = await _recorded(bench)
    view = await bench.another(owner="other", limits=FAST).follow(run_id, principal=ANN)
    view._first = replace(view._first, entries=view._first.entries[:2], has_more=True)  # type: ignore[attr-defined]  # noqa: SLF001 - a first page
    await bench.records.runs.purge(bench.clock.now() + timedelta(days=9))

    read_on = [entry async for entry in view.events(30)]

    assert read_on == [*entries[:2], entries[-1]]


async def test_a_run_that_is_deleted_while_it_is_followed_ends(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), scripted_work("a", pause=_forever))
    other = bench.another(owner="other", limits=FAST)
    following = asyncio.create_task(followed(other, live.id))
    await _steps()

    await bench.delete()

    (end,) = await following
    assert isinstance(end.event, Failed)
    assert (end.event.code, end.event.message_id) == ("CONVERSATION_NOT_FOUND", None)


async def _follow_dead(bench: Bench, engine: RunEngine, run_id: str) -> list[Entry]:
    following = asyncio.create_task(followed(engine, run_id))
    while not following.done():
        bench.clock.move(1.0)
        await asyncio.sleep(0.001)
    return await following


async def test_a_reader_that_finds_a_dead_lease_ends_the_run(bench: Bench) -> None:
    gate = Gate("append:before", "is_cancelled:before", "end:before")
    engine = bench.another(at=gate, limits=EAGER)
    live = await engine.start(a_turn(), scripted_work("a", "b", pause=_forever))
    reading = asyncio.create_task(read(live))
    await _steps()
    gate.shut()

    entries = await _follow_dead(bench, bench.another(owner="other", limits=FAST), live.id)

    assert [entry.id for entry in entries] == [1, 2, 3, 4, 5 + RESERVED_IDS]
    end = entries[-1].event
    assert isinstance(end, Failed)
    assert (end.code, end.kept_through_id) == ("RUN_LOST", 4)
    assert (await bench.messages())[-1].content == "ab"
    gate.open()
    await engine.look()
    assert await reading == entries


async def test_many_readers_of_a_dead_run_make_one_end(bench: Bench) -> None:
    gate = Gate("append:before", "is_cancelled:before", "end:before")
    live = await bench.another(at=gate).start(a_turn(), scripted_work("a", pause=_forever))
    gate.shut()
    others = [bench.another(owner=f"other {n}", limits=FAST) for n in range(5)]

    following = [asyncio.create_task(_follow_dead(bench, one, live.id)) for one in others]
    seen = [await one for one in following]

    assert seen == [seen[0]] * 5
    assert len(await bench.messages()) == 2
    gate.open()


async def test_a_slow_run_that_another_ended_keeps_and_shows_no_other_end(bench: Bench) -> None:
    gate = Gate("append:before", "is_cancelled:before", "end:before")
    go = _forever()
    engine = bench.another(at=gate, limits=EAGER)
    live = await engine.start(a_turn(), stepped_work("a", lambda: go, "b", "c"))
    reading = asyncio.create_task(read(live))
    await _steps()
    gate.shut()
    entries = await _follow_dead(bench, bench.another(owner="other", limits=FAST), live.id)

    go.set_result(None)
    await _steps()
    gate.open()

    seen = await reading
    assert seen[-1] == entries[-1]
    assert isinstance(seen[-1].event, Failed)
    assert seen[: seen[-1].event.kept_through_id] == entries[:-1]
    assert len(await bench.messages()) == 2
    assert (await bench.messages())[-1].content == "a"
    await bench.check_free()
