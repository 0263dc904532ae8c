"""A run's life: what starts it, what it shows, what it keeps."""

import asyncio
import gc
import logging
import weakref
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from ibid.domain.answers import FinishReason, TurnInput, TurnResult
from ibid.domain.conversations import RunState
from ibid.domain.errors import (
    ConversationNotFound,
    ModelUnavailable,
    ProjectNotReady,
    ShuttingDown,
    StoreUnavailable,
    ThreadBusy,
)
from ibid.domain.events import (
    RESERVED_IDS,
    CitationsFound,
    Done,
    Entry,
    Failed,
    Phase,
    StatusChanged,
    TokenDelta,
    TurnEvent,
)
from ibid.runs.live_run import LiveRun
from ibid.runs.states import finish_reason
from ibid.runs.turns import Proceed, Work
from tests.fakes.faults import Gate
from tests.fakes.run_bench import LIMITS, Bench, read, text
from tests.fakes.samples import (
    ANN,
    a_citation,
    a_conversation,
    a_project,
    a_result,
    a_turn,
    scripted_work,
)
from tests.fakes.works import asking_work


def _forever() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


def _failing(error: Exception) -> Work:
    async def work(_: TurnInput, __: Proceed) -> AsyncIterator[TurnEvent | TurnResult]:
        yield CitationsFound(citations=[a_citation(cited=None)])
        yield TokenDelta(text="half an ")
        raise error

    return work


def _code(entry: Entry) -> str:
    assert isinstance(entry.event, Failed)
    return entry.event.code


async def test_a_turn_is_shown_in_order_and_kept_as_it_was_shown(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), scripted_work("It is ", "[1]."))

    entries = await read(live)

    found = a_citation(cited=None)
    assert entries[:-1] == [
        Entry(id=1, event=StatusChanged(phase=Phase.RETRIEVING)),
        Entry(id=2, event=CitationsFound(citations=(found,))),
        Entry(id=3, event=TokenDelta(text="It is ")),
        Entry(id=4, event=TokenDelta(text="[1].")),
    ]
    assert isinstance(await bench.check(live.id, entries), Done)
    run = await bench.run(live.id)
    assert (run.state, run.last_event_id) == (RunState.COMPLETED, 5)
    assert run.lease_owner.startswith("me/")
    assert (run.id, run.number, run.turn_id, run.graph) == ("c1-1", 1, "c1-1", "messages")
    question, answer = await bench.messages()
    assert (question.role, question.content) == ("user", "Where is the app made?")
    assert (answer.id, answer.content) == (live.message_id, "It is [1].")


async def test_the_first_question_titles_the_conversation(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(question="é" * 4_000), scripted_work())
    await read(live)

    conversation = await bench.records.conversations.get("c1", principal=ANN)

    assert conversation.title == "é" * 200


async def test_the_next_turn_knows_the_one_before(bench: Bench) -> None:
    seen: list[TurnInput] = []

    async def work(turn: TurnInput, _: Proceed) -> AsyncIterator[TurnEvent | TurnResult]:
        seen.append(turn)
        yield TokenDelta(text="answer")
        yield a_result("answer")

    for question in ("one", "two"):
        await read(await bench.engine.start(a_turn(question=question), work))

    histories = [[(turn.question, turn.answer) for turn in one.history] for one in seen]
    assert histories == [[], [("one", "answer")]]


async def test_a_busy_thread_refuses_a_second_run_and_names_the_first(bench: Bench) -> None:
    first = await bench.engine.start(a_turn(), scripted_work("a", pause=_forever))

    with pytest.raises(ThreadBusy) as refusal:
        await bench.engine.start(a_turn(), scripted_work())

    assert refusal.value.run_id == first.id
    await read(first, most=1)
    await first.wait_ended()
    await bench.check_free()


async def test_a_refused_start_takes_no_place(bench: Bench) -> None:
    engine = bench.another(limits=replace(LIMITS, process=1))
    for _ in range(2):
        with pytest.raises(ConversationNotFound):
            await engine.start(a_turn(conversation=a_conversation("c9")), scripted_work())

    entries = await read(await engine.start(a_turn(), scripted_work("a")))

    assert StatusChanged(phase=Phase.QUEUED) not in [entry.event for entry in entries]


async def test_a_project_that_cant_be_searched_starts_nothing(bench: Bench) -> None:
    project = replace(a_project(), active_generation=None)

    with pytest.raises(ProjectNotReady):
        await bench.engine.start(a_turn(project=project), scripted_work())

    assert await bench.messages() == []


async def test_a_failure_after_the_first_token_keeps_what_was_shown(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), _failing(ModelUnavailable("the stream broke")))

    entries = await read(live)

    end = await bench.check(live.id, entries)
    assert isinstance(end, Failed)
    assert (end.code, end.message) == ("LLM_UNAVAILABLE", "the stream broke")
    assert end.message_id == live.message_id
    _, answer = await bench.messages()
    assert (answer.content, answer.finish_reason) == ("half an ", FinishReason.ERROR)
    assert answer.citations == (a_citation(cited=None),)


async def test_a_turn_without_a_result_is_a_failure(bench: Bench) -> None:
    async def work(_: TurnInput, __: Proceed) -> AsyncIterator[TurnEvent | TurnResult]:
        yield TokenDelta(text="a")

    live = await bench.engine.start(a_turn(), work)

    entries = await read(live)

    assert _code(entries[-1]) == "INTERNAL_ERROR"
    await bench.check(live.id, entries)


@pytest.mark.parametrize("is_empty", [False, True])
async def test_work_that_is_no_generator_serves_as_well(bench: Bench, *, is_empty: bool) -> None:
    class Once:
        def __init__(self, _: TurnInput, __: Proceed) -> None: ...

        def __aiter__(self) -> "Once":
            return self

        async def __anext__(self) -> TurnEvent | TurnResult:
            if is_empty:
                raise StopAsyncIteration
            return a_result()

    live = await bench.engine.start(a_turn(), Once)

    entries = await read(live)

    kinds = [Failed] if is_empty else [CitationsFound, Done]
    assert [type(entry.event) for entry in entries] == kinds
    await bench.check(live.id, entries)


async def test_a_silent_run_gives_pings(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), scripted_work("a", pause=_forever))
    events = live.events(0.001)

    seen = [await anext(events) for _ in range(5)]

    assert [entry is None for entry in seen] == [False, False, False, True, True]
    await events.aclose()
    await live.wait_ended()


async def test_a_client_that_goes_stops_the_run_and_its_work(bench: Bench) -> None:
    closed = asyncio.Event()

    async def work(_: TurnInput, __: Proceed) -> AsyncIterator[TurnEvent | TurnResult]:
        try:
            while True:
                yield TokenDelta(text="more ")
                await asyncio.sleep(0)
        finally:
            closed.set()

    live = await bench.engine.start(a_turn(), work)

    entries = await read(live, most=4)
    await live.wait_ended()

    assert closed.is_set()
    _, answer = await bench.messages()
    assert answer.content == text(entries) == "more " * 3  # not what nobody had read yet
    assert answer.finish_reason is FinishReason.DISCONNECTED
    run = await bench.run(live.id)
    assert (run.state, run.last_event_id) == (RunState.CANCELLED, 5)


async def test_a_run_that_is_to_continue_does(bench: Bench) -> None:
    tokens = [str(number) for number in range(100)]
    turn = replace(a_turn(), on_disconnect="continue")
    live = await bench.engine.start(turn, scripted_work(*tokens))

    await read(live, most=4)
    await live.wait_ended()

    _, answer = await bench.messages()
    assert (answer.content, answer.finish_reason) == ("".join(tokens), FinishReason.STOP)


async def test_a_second_reader_goes_on_where_the_first_left(bench: Bench) -> None:
    turn = replace(a_turn(), on_disconnect="continue")
    live = await bench.engine.start(turn, scripted_work("a", "b"))

    entries = await read(live, most=3)
    entries += await read(live)

    await bench.check(live.id, entries)
    assert await read(live) == []


async def test_a_run_has_one_reader_at_a_time(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), scripted_work("a"))
    events = live.events(30)
    await anext(events)

    with pytest.raises(RuntimeError):
        await anext(live.events(30))

    await events.aclose()


async def test_a_reader_that_lags_holds_the_turn_up(bench: Bench) -> None:
    said: list[int] = []

    async def work(_: TurnInput, __: Proceed) -> AsyncIterator[TurnEvent | TurnResult]:
        for number in range(100):
            said.append(number)
            yield TokenDelta(text=f"{number} ")
        yield a_result()

    live = await bench.engine.start(a_turn(), work)
    for _ in range(50):
        await asyncio.sleep(0)
    ahead = len(said)

    entries = await read(live)

    assert ahead <= LIMITS.unread
    assert len(said) == 100
    await bench.check(live.id, entries)


async def test_a_run_that_nobody_reads_counts_as_left(bench: Bench) -> None:
    engine = bench.another(limits=replace(LIMITS, attach_s=0.001))
    live = await engine.start(a_turn(), scripted_work(*"abc", pause=_forever))

    await live.wait_ended()

    _, answer = await bench.messages()
    assert (answer.content, answer.error_code) == ("", "CLIENT_DISCONNECTED")


async def test_a_time_out_keeps_the_tokens_so_far(bench: Bench) -> None:
    engine = bench.another(limits=replace(LIMITS, run_timeout_s=0.05))
    live = await engine.start(a_turn(), scripted_work("a", pause=_forever))

    entries = await read(live)

    end = await bench.check(live.id, entries)
    assert (text(entries), finish_reason(end)) == ("a", FinishReason.TIMEOUT)
    assert (await bench.run(live.id)).state is RunState.TIMED_OUT


async def test_work_that_does_not_heed_its_cancellation_is_left_behind(bench: Bench) -> None:
    released = asyncio.Event()

    async def work(_: TurnInput, __: Proceed) -> AsyncIterator[TurnEvent | TurnResult]:
        yield TokenDelta(text="a")
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        yield TokenDelta(text="too late")

    engine = bench.another(limits=replace(LIMITS, run_timeout_s=0.01, stop_s=0.01))
    live = await engine.start(a_turn(), work)

    entries = await read(live)
    released.set()
    for _ in range(20):
        await asyncio.sleep(0)

    assert text(entries) == "a"
    assert _code(entries[-1]) == "RUN_TIMED_OUT"
    await bench.check(live.id, entries)


async def test_a_failing_clean_up_changes_nothing(bench: Bench) -> None:
    async def work(_: TurnInput, __: Proceed) -> AsyncIterator[TurnEvent | TurnResult]:
        try:
            yield TokenDelta(text="a")
            await _forever()
        finally:
            raise RuntimeError

    engine = bench.another(limits=replace(LIMITS, run_timeout_s=0.01))
    live = await engine.start(a_turn(), work)

    entries = await read(live)

    assert _code(entries[-1]) == "RUN_TIMED_OUT"
    await bench.check(live.id, entries)


async def test_a_run_without_a_place_says_so_and_waits(bench: Bench) -> None:
    engine = bench.another(limits=replace(LIMITS, subject=1))
    await bench.records.conversations.create(a_conversation("c2"))
    other = a_turn(conversation=a_conversation("c2"))
    first = await engine.start(other, scripted_work("a", pause=_forever))
    second = await engine.start(a_turn(), scripted_work("b"))
    queued = (await bench.run(second.id)).state

    await read(first, most=1)
    entries = await read(second)

    assert queued is RunState.QUEUED
    phases = [entry.event.phase for entry in entries if isinstance(entry.event, StatusChanged)]
    assert phases == [Phase.QUEUED, Phase.RETRIEVING]
    assert isinstance(await bench.check(second.id, entries), Done)


async def test_a_place_that_came_free_as_the_run_began_is_no_wait(bench: Bench) -> None:
    first: list[LiveRun] = []

    async def end_the_first(point: str) -> None:
        if first and point == "begin:after":
            await engine.cancel(tenant="acme", conversation_id="c2")

    engine = bench.another(limits=replace(LIMITS, subject=1), at=end_the_first)
    await bench.records.conversations.create(a_conversation("c2"))
    other = a_turn(conversation=a_conversation("c2"))
    first.append(await engine.start(other, scripted_work(pause=_forever)))
    second = await engine.start(a_turn(), scripted_work("b"))

    entries = await read(second)

    assert entries[0].event == StatusChanged(phase=Phase.RETRIEVING)
    assert isinstance(await bench.check(second.id, entries), Done)


@pytest.mark.parametrize("how", ["leave", "time out", "cancel"])
async def test_a_run_ends_while_it_waits(bench: Bench, how: str) -> None:
    engine = bench.another(limits=replace(LIMITS, process=1))
    await bench.records.conversations.create(a_conversation("c2"))
    other = replace(a_turn(conversation=a_conversation("c2")), on_disconnect="continue")
    first = await engine.start(other, scripted_work(pause=_forever))
    deadline_s = LIMITS.margin_s + 0.05 if how == "time out" else None
    second = await engine.start(replace(a_turn(), deadline_s=deadline_s), scripted_work("never"))

    await asyncio.sleep(0)
    if how == "cancel":
        await engine.cancel(tenant="acme", project_id="p1", conversation_id="c1")
    entries = await read(second, most=1 if how == "leave" else None)
    await second.wait_ended()

    _, answer = await bench.messages()
    codes = {
        "leave": "CLIENT_DISCONNECTED",
        "time out": "RUN_TIMED_OUT",
        "cancel": "RUN_CANCELLED",
    }
    assert StatusChanged(phase=Phase.QUEUED) in [entry.event for entry in entries]
    assert (answer.content, answer.error_code) == ("", codes[how])
    await engine.cancel(tenant="acme")
    assert first.ended.done()
    assert isinstance((await read(await engine.start(a_turn(), scripted_work())))[-1].event, Done)


async def test_a_cancel_reaches_only_the_runs_it_names(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), scripted_work("a", pause=_forever))

    await bench.engine.cancel(tenant="rival")
    await bench.engine.cancel(tenant="acme", conversation_id="c2")
    await bench.engine.cancel(tenant="acme", project_id="p2")
    assert not live.ended.done()
    await bench.engine.cancel(tenant="acme", conversation_id="c1")

    entries = await read(live)
    assert _code(entries[-1]) == "RUN_CANCELLED"
    await bench.check(live.id, entries)


async def test_a_drain_ends_all_runs_and_starts_no_more(bench: Bench) -> None:
    limits = replace(LIMITS, subject=1)
    engine = bench.another(limits=limits)
    await bench.records.conversations.create(a_conversation("c2"))
    running = await engine.start(a_turn(), scripted_work("a", pause=_forever))
    waiting = await engine.start(a_turn(conversation=a_conversation("c2")), scripted_work("b"))
    reading = asyncio.create_task(read(running))
    await asyncio.sleep(0)

    all_kept = await engine.drain(5)

    with pytest.raises(ShuttingDown):
        await engine.start(a_turn(), scripted_work())
    entries = await reading
    assert all_kept
    assert _code(entries[-1]) == "SHUTTING_DOWN"
    await bench.check(running.id, entries)
    assert [_code(entry) for entry in (await read(waiting))[-1:]] == ["SHUTTING_DOWN"]
    assert await engine.drain(5)


async def test_a_run_that_begins_as_the_drain_does_is_ended_too(bench: Bench) -> None:
    starting = asyncio.create_task(bench.engine.start(a_turn(), scripted_work(pause=_forever)))
    await asyncio.sleep(0)

    all_kept = await bench.engine.drain(5)

    live = await starting
    entries = await read(live)
    assert all_kept
    assert _code(entries[-1]) == "SHUTTING_DOWN"
    await bench.check(live.id, entries)


async def test_a_run_that_was_taken_for_dead_shows_what_was_kept(bench: Bench) -> None:
    gate = Gate("append:before", "is_cancelled:before", "end:before")
    observer = bench.another(owner="other")
    engine = bench.another(at=gate)
    live = await engine.start(a_turn(), scripted_work("a", "b", pause=_forever))
    reading = asyncio.create_task(read(live))

    for _ in range(20):  # until both tokens are shown
        await asyncio.sleep(0)
    gate.shut()
    for _ in range(4):
        await observer.look()
        bench.clock.move(5.0)
    gate.open()
    await engine.look()

    entries = await reading
    assert entries[-1].id == RESERVED_IDS + 1
    end = entries[-1].event
    assert isinstance(end, Failed)
    assert (end.code, end.kept_through_id, end.message_id) == ("RUN_LOST", 0, live.message_id)
    assert (await bench.run(live.id)).terminator == end
    assert [message.content for message in await bench.messages()][1:] == [""]


async def test_a_run_that_beats_is_nobodys(bench: Bench) -> None:
    observer = bench.another(owner="other")
    live = await bench.engine.start(a_turn(), scripted_work("a", pause=_forever))

    for _ in range(8):
        await bench.engine.look()
        await observer.look()
        bench.clock.move(5.0)

    assert not live.ended.done()
    assert (await bench.run(live.id)).beat >= 7


async def test_a_run_that_ends_as_it_is_taken_for_dead_stays_as_it_ended(bench: Bench) -> None:
    async def end_it(point: str) -> None:
        if point == "end_dead:before":
            await bench.engine.cancel(tenant="acme")

    observer = bench.another(owner="other", at=end_it)
    live = await bench.engine.start(a_turn(), scripted_work("a", pause=_forever))
    for _ in range(4):
        await observer.look()
        bench.clock.move(5.0)

    entries = await read(live)

    assert _code(entries[-1]) == "RUN_CANCELLED"
    await bench.check(live.id, entries)


async def test_a_process_that_does_not_beat_does_not_end_its_own(bench: Bench) -> None:
    async def no_beat(point: str) -> None:
        if point == "append:before":
            raise StoreUnavailable("away")

    engine = bench.another(at=no_beat)
    live = await engine.start(a_turn(), scripted_work("a", pause=_forever))
    for _ in range(8):
        await engine.look()
        bench.clock.move(5.0)

    assert not live.ended.done()


async def test_a_deleted_conversation_ends_its_run_and_keeps_nothing(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), scripted_work("a", pause=_forever))
    reading = asyncio.create_task(read(live))

    await bench.records.conversations.delete("c1", principal=ANN)
    bench.clock.move(5.0)
    await bench.engine.look()

    end = (await reading)[-1].event
    assert isinstance(end, Failed)
    assert (end.code, end.message_id) == ("CONVERSATION_NOT_FOUND", None)


@pytest.mark.parametrize("fault", [StoreUnavailable("away"), ValueError("a damaged row")])
async def test_the_watch_beats_outlives_faults_and_stops_when_it_is_told(
    bench: Bench, fault: Exception
) -> None:
    looks = 0
    enough = asyncio.Event()

    async def away_at_first(point: str) -> None:
        nonlocal looks
        bench.clock.move(0.001)
        looks += point == "live:before"
        if looks == 1:
            raise fault
        if looks == 3:
            enough.set()

    engine = bench.another(limits=replace(LIMITS, beat_s=0.001))
    live = await engine.start(a_turn(), scripted_work(pause=_forever))
    faulty = bench.another(limits=replace(LIMITS, beat_s=0.001), at=away_at_first)
    watching = [asyncio.create_task(one.watch()) for one in (engine, faulty)]

    await asyncio.wait_for(enough.wait(), 10)
    for task in watching:
        task.cancel()

    for task in watching:
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (await bench.run(live.id)).beat > 0


async def test_a_store_that_takes_no_writes_for_longer_than_a_term_costs_no_living_run(
    bench: Bench,
) -> None:
    is_away = True

    async def writes_away(point: str) -> None:
        if is_away and point in {"append:before", "end_dead:before"}:
            raise StoreUnavailable("busy")

    engine = bench.another(at=writes_away)
    turn = replace(a_turn(), attended=False)
    live = await engine.start(turn, scripted_work("a", pause=_forever))
    looked_again = asyncio.Event()
    looks = 0

    async def watched(point: str) -> None:
        nonlocal is_away, looks
        if point == "live:before":
            looks += not is_away
            if looks == 2:
                looked_again.set()
                await _forever()
            bench.clock.move(0.001)
        if point == "end_dead:before" and is_away:
            is_away = False
            raise StoreUnavailable("busy")

    limits = replace(LIMITS, beat_s=0.001, term_s=0.003)
    watcher = bench.another(owner="watcher", limits=limits, at=watched)
    watching = asyncio.create_task(watcher.watch())
    await asyncio.wait_for(looked_again.wait(), 10)
    bench.clock.move(LIMITS.beat_s)
    await engine.look()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)

    assert (await bench.run(live.id)).state is RunState.RUNNING
    assert (await bench.run(live.id)).beat > 0


async def test_a_run_that_could_not_beat_for_a_term_beats_before_a_watch_may_end_it(
    bench: Bench,
) -> None:
    """Reads are answered while all writes wait in one line, and the watch is the first in it."""
    line = Gate("append:before")
    engine = bench.another(at=line)
    live = await engine.start(replace(a_turn(), attended=False), scripted_work("a", pause=_forever))
    line.shut()
    tried = 0

    async def end_of_the_wait(point: str) -> None:
        nonlocal tried
        if point == "try_write:before":
            tried += 1
            bench.clock.move(LIMITS.term_s)  # as long as it waited in line itself
            line.open()

    watcher = bench.another(owner="watcher", at=end_of_the_wait)
    while not tried:
        await watcher.look()
        bench.clock.move(LIMITS.beat_s)
    await engine.look()
    await watcher.look()

    assert (await bench.run(live.id)).state is RunState.RUNNING
    assert (await bench.run(live.id)).beat > 0


async def test_a_dead_run_that_cannot_be_read_does_not_hold_up_the_ends_of_others(
    bench: Bench,
) -> None:
    conversations = [replace(a_conversation(), id=f"c{n}") for n in (2, 3, 4)]
    dead: list[LiveRun] = []
    gate = Gate("append:before", "is_cancelled:before", "end:before")
    for conversation in conversations:
        await bench.records.conversations.create(conversation)
        turn = replace(a_turn(), conversation=conversation)
        dead.append(await bench.another(at=gate).start(turn, scripted_work(pause=_forever)))
    gate.shut()
    reads = 0

    async def damaged(point: str) -> None:
        nonlocal reads
        reads += point == "entries:before"
        if point == "entries:before" and reads == 1:
            raise ValueError("a damaged row")

    watcher = bench.another(owner="watcher", at=damaged)
    for _ in range(5):
        await watcher.look()
        bench.clock.move(LIMITS.beat_s)
        if reads:
            break

    ends = [await bench.run_end(one.id) for one in dead]
    assert [isinstance(end, Failed) for end in ends].count(True) == 2
    gate.open()


async def test_a_beat_that_fails_does_not_end_the_run(bench: Bench) -> None:
    async def no_beat(point: str) -> None:
        if point == "append:before":
            raise StoreUnavailable("away")

    engine = bench.another(at=no_beat)
    live = await engine.start(a_turn(), scripted_work("a", pause=_forever))

    for _ in range(8):
        bench.clock.move(5.0)
        await engine.look()

    assert not live.ended.done()


async def test_no_log_record_holds_what_was_asked_answered_or_quoted(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    works: list[Work] = [
        scripted_work("SECRET"),
        _failing(RuntimeError("SECRET")),
        _failing(ModelUnavailable("SECRET")),
    ]

    async def away(point: str) -> None:
        if point == "append:before":
            raise RuntimeError("SECRET")

    for engine in (bench.engine, bench.another(at=away, limits=replace(LIMITS, flush_s=0.0))):
        for work in works:
            await read(await engine.start(a_turn(question="SECRET"), work))
    paused = await bench.engine.start(a_turn(question="SECRET"), asking_work())
    await read(paused)
    resumption = await bench.resumption(paused.id, "SECRET")
    await read(await bench.engine.resume(resumption, asking_work("SECRET")))

    logged = [f"{record.getMessage()} {vars(record)}" for record in caplog.records]

    for event in ("run_ended", "run_failed", "run_journal_failed"):
        assert any(event in line for line in logged)
    assert not [line for line in logged if "SECRET" in line or "é [1]" in line]


async def test_an_ended_run_that_nobody_reads_any_more_takes_no_memory(bench: Bench) -> None:
    live = await bench.engine.start(a_turn(), scripted_work(*("token " for _ in range(500))))
    await read(live)
    left = weakref.ref(live)

    await asyncio.sleep(0)
    del live
    gc.collect()

    assert left() is None


async def test_two_hundred_streams_at_once_lose_nothing_and_leave_nothing(bench: Bench) -> None:
    limits = replace(LIMITS, process=1_000, tenant=1_000, subject=1_000)
    engine = bench.another(limits=limits)
    tokens = [f"{number} " for number in range(100)]
    lives = []
    for number in range(200):
        conversation = a_conversation(f"x{number}")
        await bench.records.conversations.create(conversation)
        turn = a_turn(conversation=conversation)
        lives.append(await engine.start(turn, scripted_work(*tokens)))

    seen = await asyncio.gather(*(read(live) for live in lives))

    assert {text(entries) for entries in seen} == {"".join(tokens)}
    assert all(len(entries) == 103 for entries in seen)
    assert await bench.records.runs.live() == {}
    refs = [weakref.ref(live) for live in lives]
    del lives
    gc.collect()
    assert [ref() for ref in refs if ref() is not None] == []
