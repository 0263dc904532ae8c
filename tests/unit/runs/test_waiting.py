"""A run that waits in a queue is worked on once, wherever its ticket goes, or ended once."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest

from ibid.domain.answers import FinishReason, Style, TurnInput
from ibid.domain.conversations import Run, RunState
from ibid.domain.errors import (
    ProjectNotFound,
    ProjectNotReady,
    QueueUnavailable,
    RunNotFound,
    ShuttingDown,
    StoreUnavailable,
    ThreadBusy,
)
from ibid.domain.events import RESERVED_IDS, Done, Entry, Failed
from ibid.domain.projects import Project
from ibid.domain.tickets import RunTicket
from ibid.ports.runs import RunStore
from ibid.runs.deletion import Deletion
from ibid.runs.engine import RunEngine
from ibid.runs.live_run import LiveRun
from ibid.runs.sweep import Sweep
from ibid.runs.turns import NewTurn, Work, WorkFor
from tests.fakes.faults import Faulty, Gate
from tests.fakes.queue import FakeRunQueue
from tests.fakes.run_bench import LIMITS, Bench, followed
from tests.fakes.samples import ANN, NOON, a_conversation, a_project, a_turn, scripted_work
from tests.fakes.sweep import EAGER
from tests.fakes.works import asking_work, stepped_work

FAST = replace(LIMITS, poll_s=0.001)


def _for(work: Work, *, project: Project | None = None, calls: list[str] | None = None) -> WorkFor:
    async def work_for(run: Run) -> tuple[Project, Work]:
        await asyncio.sleep(0)
        if calls is not None:
            calls.append(run.id)
        return project or a_project(), work

    return work_for


def _refusing(error: Exception) -> WorkFor:
    async def work_for(_: Run) -> tuple[Project, Work]:
        await asyncio.sleep(0)
        raise error

    return work_for


def _forever() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


async def _enqueued(bench: Bench, turn: NewTurn | None = None) -> tuple[Run, RunTicket]:
    queue = FakeRunQueue()
    run = await bench.engine.enqueue(turn or a_turn(), queue)
    (ticket,) = queue.tickets
    return run, ticket


async def _worked(engine: RunEngine, ticket: RunTicket, work: Work) -> LiveRun:
    live = await engine.adopt(ticket, _for(work))
    assert live is not None
    await live.wait_ended()
    return live


async def _journal(bench: Bench, run: Run) -> list[Entry]:
    return list((await bench.records.runs.entries(run, after=0)).entries)


async def _failure(bench: Bench, run: Run) -> Failed:
    end = await bench.run_end(run.id)
    assert isinstance(end, Failed)
    return end


async def test_an_enqueued_run_is_kept_with_its_question_and_waits(bench: Bench) -> None:
    run, ticket = await _enqueued(bench)

    assert await bench.run(run.id) == run
    assert (run.state, run.is_in_queue, run.beat) == (RunState.QUEUED, True, 1)
    assert [message.content for message in await bench.messages()] == ["Where is the app made?"]
    assert ticket == RunTicket(tenant="acme", subject="ann", run_id=run.id)


async def test_a_ticket_holds_all_of_the_turn_but_what_is_kept(bench: Bench) -> None:
    turn = replace(
        a_turn(question="a planted secret"),
        style=Style(detail="brief"),
        path_prefix="src/",
        reply_language="es-419",
        strategy="enqueue",
    )
    queue, seen = FakeRunQueue(), list[TurnInput]()

    await bench.engine.enqueue(turn, queue)
    await _worked(bench.another(owner="worker"), queue.tickets[0], asking_work("a", seen=seen))

    assert "secret" not in queue.messages[0]
    (got,) = seen
    assert (got.question, got.style, got.path_prefix, got.reply_language) == (
        "a planted secret",
        Style(detail="brief"),
        "src/",
        "es-419",
    )
    assert queue.tickets[0].is_behind


async def test_a_worker_takes_the_run_and_works_it_to_its_end(bench: Bench) -> None:
    run, ticket = await _enqueued(bench)

    live = await _worked(bench.another(owner="worker"), ticket, scripted_work("It ", "is."))

    assert live.run.lease_owner.startswith("worker/")
    assert isinstance(await bench.check(run.id, await _journal(bench, run)), Done)
    await bench.check_free()


async def test_an_enqueued_turn_knows_the_enqueued_ones_before(bench: Bench) -> None:
    seen: list[TurnInput] = []
    for question in ("one?", "two?"):
        _, ticket = await _enqueued(
            bench, replace(await _turn(bench), question=question, strategy="reject")
        )
        work = scripted_work(question.upper())
        await _worked(bench.another(owner="worker"), ticket, work)
    _, ticket = await _enqueued(bench, await _turn(bench))
    await _worked(bench.another(owner="worker"), ticket, asking_work(seen=seen))

    assert [(one.question, one.answer) for one in seen[0].history] == [
        ("one?", "ONE?"),
        ("two?", "TWO?"),
    ]


async def _turn(bench: Bench) -> NewTurn:
    conversation = await bench.records.conversations.get("c1", principal=ANN)
    return a_turn(conversation=conversation)


async def test_a_question_is_found_however_many_came_after_it(bench: Bench) -> None:
    queue, seen = FakeRunQueue(), list[TurnInput]()
    for number in range(230):
        turn = replace(await _turn(bench), question=f"question {number}", strategy="enqueue")
        await bench.engine.enqueue(turn, queue)

    live = await bench.another().adopt(queue.tickets[5], _for(asking_work(seen=seen)))

    assert live is not None
    for before in queue.tickets[:5]:
        await bench.engine.cancel_run(before.run_id, principal=ANN)
    await live.wait_ended()
    assert seen[0].question == "question 5"


async def test_a_follower_that_joined_before_sees_it_through(bench: Bench) -> None:
    run, ticket = await _enqueued(bench)
    follower = bench.another(owner="other", limits=FAST)
    following = asyncio.create_task(followed(follower, run.id))
    for _ in range(50):
        bench.clock.move(1.0)  # far over a lease's term
        await asyncio.sleep(0.001)
    assert not following.done()

    await _worked(bench.another(owner="worker", limits=EAGER), ticket, scripted_work("a", "b"))

    assert await following == await _journal(bench, run)


async def test_a_ticket_that_comes_again_does_nothing(bench: Bench) -> None:
    run, ticket = await _enqueued(bench)
    calls: list[str] = []
    await _worked(bench.another(owner="worker"), ticket, scripted_work("a"))

    again = await bench.another(owner="other").adopt(ticket, _for(scripted_work(), calls=calls))

    assert (again, calls) == (None, [])
    await bench.check(run.id, await _journal(bench, run))


@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_a_ticket_of_a_run_that_is_worked_on_does_nothing(bench: Bench, where: str) -> None:
    run, ticket = await _enqueued(bench)
    go = _forever()
    worker = bench.another(owner="worker")
    live = await worker.adopt(ticket, _for(scripted_work("a", pause=lambda: go)))
    assert live is not None
    engine = worker if where == "here" else bench.another(owner="other")

    assert await engine.adopt(ticket, _for(scripted_work("b"))) is None

    go.set_result(None)
    await live.wait_ended()
    assert isinstance(await bench.check(run.id, await _journal(bench, run)), Done)


async def test_of_many_workers_with_one_ticket_one_works(bench: Bench) -> None:
    run, ticket = await _enqueued(bench)
    calls: list[str] = []
    workers = [bench.another(owner=f"worker {n}") for n in range(20)]

    lives = await asyncio.gather(
        *(worker.adopt(ticket, _for(stepped_work("a", calls=calls))) for worker in workers)
    )

    (live,) = [live for live in lives if live is not None]
    await live.wait_ended()
    assert calls == ["a"]
    await bench.check(run.id, await _journal(bench, run))


async def test_a_run_whose_worker_died_is_ended_once_and_not_done_again(bench: Bench) -> None:
    run, ticket = await _enqueued(bench)
    gate = Gate("append:before", "is_cancelled:before", "end:before")
    worker = bench.another(owner="worker", at=gate, limits=EAGER)
    live = await worker.adopt(ticket, _for(scripted_work("a", "b", pause=_forever)))
    assert live is not None
    for _ in range(50):  # until all is shown and kept
        await asyncio.sleep(0)
    gate.shut()
    calls: list[str] = []
    other = bench.another(owner="other", limits=FAST)

    assert await other.adopt(ticket, _for(scripted_work("c"), calls=calls)) is None
    for _ in range(5):
        bench.clock.move(5.0)
        await other.look()
    assert await other.adopt(ticket, _for(scripted_work("c"), calls=calls)) is None

    end = await _failure(bench, run)
    assert (end.code, end.kept_through_id) == ("RUN_LOST", 4)
    assert calls == []
    assert [message.content for message in await bench.messages()][1:] == ["ab"]
    gate.open()
    await live.wait_ended()
    assert await bench.run_end(run.id) == end
    await bench.check_free()


async def test_a_worker_that_dies_as_it_adopts_leaves_a_run_that_is_ended(bench: Bench) -> None:
    run, ticket = await _enqueued(bench)

    async def lose_reply(point: str) -> None:
        if point == "adopt:after":
            raise StoreUnavailable("away")

    with pytest.raises(StoreUnavailable):
        await bench.another(owner="worker", at=lose_reply).adopt(ticket, _for(scripted_work()))
    other = bench.another(owner="other")
    assert await other.adopt(ticket, _for(scripted_work())) is None
    for _ in range(5):
        bench.clock.move(5.0)
        await other.look()

    assert (await _failure(bench, run)).code == "RUN_LOST"


@pytest.mark.parametrize("point", ["get:before", "adopt:before", "latest_messages:before"])
async def test_a_ticket_is_to_come_again_while_the_store_is_away(bench: Bench, point: str) -> None:
    run, ticket = await _enqueued(bench)

    async def away(at: str) -> None:
        if at == point:
            raise StoreUnavailable("away")

    with pytest.raises(StoreUnavailable):
        await bench.another(owner="worker", at=away).adopt(ticket, _for(scripted_work()))

    assert (await bench.run(run.id)).is_in_queue
    await _worked(bench.another(owner="other"), ticket, scripted_work("a"))
    assert isinstance(await bench.check(run.id, await _journal(bench, run)), Done)


async def test_a_process_that_stops_adopts_nothing(bench: Bench) -> None:
    run, ticket = await _enqueued(bench)
    worker = bench.another(owner="worker")
    await worker.drain(1)

    with pytest.raises(ShuttingDown):
        await worker.adopt(ticket, _for(scripted_work()))

    assert (await bench.run(run.id)).is_in_queue


@pytest.mark.parametrize(
    ("work_for", "code"),
    [
        (_refusing(ProjectNotFound("no project 'p1'")), "PROJECT_NOT_FOUND"),
        (
            _for(scripted_work(), project=replace(a_project(), active_generation=None)),
            ProjectNotReady.code,
        ),
    ],
)
async def test_a_run_that_can_be_worked_on_no_more_says_why(
    bench: Bench, work_for: WorkFor, code: str
) -> None:
    run, ticket = await _enqueued(bench)

    assert await bench.another(owner="worker").adopt(ticket, work_for) is None

    assert (await _failure(bench, run)).code == code
    await bench.check(run.id, await _journal(bench, run))
    await bench.check_free()


async def test_an_adopted_run_waits_for_a_place_and_says_so(bench: Bench) -> None:
    await bench.records.conversations.create(a_conversation("c2"))
    tight = replace(FAST, subject=1)
    busy = bench.another(limits=tight)
    go = _forever()
    other = await busy.start(
        replace(a_turn(conversation=a_conversation("c2")), attended=False),
        scripted_work(pause=lambda: go),
    )
    run, ticket = await _enqueued(bench)
    worker = bench.another(owner="worker", limits=tight)
    live = await worker.adopt(ticket, _for(scripted_work("a")))
    assert live is not None
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert (await bench.run(run.id)).state is RunState.QUEUED
    assert not (await bench.run(run.id)).is_in_queue

    go.set_result(None)
    await other.wait_ended()
    await live.wait_ended()

    entries = await _journal(bench, run)
    assert "phase=<Phase.QUEUED" in repr(entries[0].event)
    assert isinstance(await bench.check(run.id, entries), Done)


async def test_a_deadline_of_the_worker_ends_the_run_a_margin_before(bench: Bench) -> None:
    run, ticket = await _enqueued(bench)

    live = await bench.another(owner="worker").adopt(
        ticket, _for(scripted_work("a", pause=_forever)), deadline_s=LIMITS.margin_s + 0.01
    )

    assert live is not None
    await live.wait_ended()
    assert (await _failure(bench, run)).finish_reason is FinishReason.TIMEOUT


# What happens while it waits.


async def test_nobody_ends_a_run_that_waits_before_its_time(bench: Bench) -> None:
    run, _ = await _enqueued(bench)

    for _ in range(89):
        bench.clock.move(10.0)
        await bench.engine.look()

    assert (await bench.run(run.id)).state is RunState.QUEUED


class StuckQueue(FakeRunQueue):
    """Its tickets never arrive, or nobody is told that they did."""

    def __init__(self, *, arrives: bool = False) -> None:
        super().__init__()
        self._arrives = arrives
        self.met = asyncio.Event()

    async def send(self, ticket: RunTicket) -> None:
        if self._arrives:
            await super().send(ticket)
        self.met.set()
        await _forever()


@pytest.mark.parametrize("finder", ["watch", "follower"])
async def test_a_run_whose_process_died_before_it_sent_the_ticket_ends_within_a_term(
    bench: Bench, finder: str
) -> None:
    queue = StuckQueue()
    dead = asyncio.create_task(bench.engine.enqueue(a_turn(), queue))
    await queue.met.wait()
    other = bench.another(owner="other", limits=FAST)
    following = asyncio.create_task(followed(other, "c1-1"))

    for _ in range(6 if finder == "watch" else 0):
        bench.clock.move(5.0)
        await other.look()
    while not following.done():
        bench.clock.move(0.5)
        await asyncio.sleep(0.001)

    end = await _failure(bench, await bench.run("c1-1"))
    assert (end.code, end.message) == ("RUN_LOST", "The process that ran it died.")
    assert bench.clock.now() < NOON + timedelta(seconds=60)
    dead.cancel()
    await asyncio.gather(dead, return_exceptions=True)
    await bench.settle()
    await bench.check_free()


async def test_a_run_whose_process_died_after_it_sent_the_ticket_is_worked_on(
    bench: Bench,
) -> None:
    queue = StuckQueue(arrives=True)
    dead = asyncio.create_task(bench.engine.enqueue(a_turn(), queue))
    await queue.met.wait()

    live = await _worked(bench.another(owner="worker"), queue.tickets[0], scripted_work("a"))

    assert isinstance(await bench.check(live.id, await _journal(bench, live.run)), Done)
    dead.cancel()
    await asyncio.gather(dead, return_exceptions=True)
    await bench.settle()
    assert (await bench.run(live.id)).state is RunState.COMPLETED


@pytest.mark.parametrize("does", ["work", "refuse"])
async def test_a_ticket_that_is_quicker_than_its_confirmation_is_not_wasted(
    bench: Bench, does: str
) -> None:
    gate = Gate("append:before")
    gate.shut()
    queue = FakeRunQueue()
    front = bench.another(owner="front", at=gate)
    enqueuing = asyncio.create_task(front.enqueue(a_turn(), queue))
    await gate.met.wait()

    async def confirm(point: str) -> None:
        if point in {"adopt:before", "end:before"}:
            gate.open()
            await enqueuing

    work_for = _for(scripted_work("a")) if does == "work" else _refusing(ProjectNotFound("gone"))
    live = await bench.another(owner="worker", at=confirm).adopt(queue.tickets[0], work_for)
    if live is not None:
        await live.wait_ended()

    now = await bench.run((await enqueuing).id)
    await bench.check(now.id, await _journal(bench, now))
    assert now.state is (RunState.COMPLETED if does == "work" else RunState.FAILED)


async def test_a_worker_that_is_quicker_than_the_confirmation_is_left_alone(bench: Bench) -> None:
    gate = Gate("append:before")
    gate.shut()
    queue = FakeRunQueue()
    front = bench.another(owner="front", at=gate)
    enqueuing = asyncio.create_task(front.enqueue(a_turn(), queue))
    await gate.met.wait()

    live = await _worked(bench.another(owner="worker"), queue.tickets[0], scripted_work("a"))
    gate.open()

    assert (await enqueuing).id == live.id
    assert isinstance(await bench.check(live.id, await _journal(bench, live.run)), Done)


async def test_a_confirmation_that_the_store_does_not_take_is_no_failure(bench: Bench) -> None:
    async def away(point: str) -> None:
        if point == "append:before":
            raise StoreUnavailable("away")

    queue = FakeRunQueue()

    run = await bench.another(owner="front", at=away).enqueue(a_turn(), queue)

    assert (await bench.run(run.id)).is_in_queue
    live = await _worked(bench.another(owner="worker"), queue.tickets[0], scripted_work("a"))
    assert isinstance(await bench.check(live.id, await _journal(bench, live.run)), Done)


async def test_a_run_that_nobody_took_in_time_is_ended_and_says_so(bench: Bench) -> None:
    run, ticket = await _enqueued(bench)

    for _ in range(100):
        bench.clock.move(10.0)
        await bench.engine.look()

    end = await _failure(bench, run)
    assert (end.code, end.message) == (
        "RUN_LOST",
        "No process took the run from its queue in time.",
    )
    assert end.kept_through_id == 0
    assert (await bench.run(run.id)).last_event_id == RESERVED_IDS + 1
    assert await bench.another(owner="worker").adopt(ticket, _for(scripted_work())) is None
    assert await bench.run_end(run.id) == end
    await bench.check_free()


async def test_a_follower_ends_a_run_that_nobody_took_in_time(bench: Bench) -> None:
    run, _ = await _enqueued(bench)
    following = asyncio.create_task(followed(bench.another(limits=FAST), run.id))
    while not following.done():
        bench.clock.move(10.0)
        await asyncio.sleep(0.001)

    (entry,) = await following
    assert entry.event == await _failure(bench, run)


async def test_a_sweep_ends_what_has_waited_too_long_and_nothing_else(bench: Bench) -> None:
    limits = replace(LIMITS, beat_s=0.002, term_s=0.006)

    async def pass_time(point: str) -> None:
        if point == "live:before":
            bench.clock.move(limits.beat_s)

    sweep = Sweep(
        runs=cast("RunStore", Faulty(bench.records.runs, pass_time)),
        idempotency=bench.records.idempotency,
        clock=bench.clock,
        limits=limits,
    )
    run, _ = await _enqueued(bench)
    bench.clock.move(limits.queue_wait_s - 1)
    await sweep.sweep()
    assert (await bench.run(run.id)).is_in_queue

    bench.clock.move(2)
    await sweep.sweep()

    assert (await _failure(bench, run)).code == "RUN_LOST"


async def test_a_run_adopted_as_its_time_was_over_goes_on(bench: Bench) -> None:
    gate = Gate("end_dead:before")
    observer = bench.another(owner="observer", at=gate)
    run, ticket = await _enqueued(bench)
    gate.shut()
    bench.clock.move(901)
    looks = asyncio.create_task(_looks(bench, observer))
    await gate.met.wait()

    live = await bench.another(owner="worker").adopt(ticket, _for(scripted_work("a")))
    gate.open()
    await looks

    assert live is not None
    await live.wait_ended()
    assert isinstance(await bench.check(run.id, await _journal(bench, run)), Done)


async def _looks(bench: Bench, engine: RunEngine) -> None:
    for _ in range(5):
        await engine.look()
        bench.clock.move(5.0)


async def test_a_run_that_waits_is_cancelled_at_once(bench: Bench) -> None:
    run, ticket = await _enqueued(bench)
    calls: list[str] = []

    cancelled = await bench.another(owner="other").cancel_run(run.id, principal=ANN)

    assert (cancelled.state, cancelled.cancel_requested) == (RunState.CANCELLED, True)
    assert await bench.run(run.id) == cancelled
    worker = bench.another(owner="worker")
    assert await worker.adopt(ticket, _for(scripted_work(), calls=calls)) is None
    assert calls == []
    assert (await _failure(bench, run)).finish_reason is FinishReason.CANCELLED
    await bench.check(run.id, await _journal(bench, run))
    await bench.check_free()


async def test_a_cancel_that_died_on_its_way_is_finished_by_the_worker(bench: Bench) -> None:
    run, ticket = await _enqueued(bench)
    await bench.records.runs.request_cancel(run.id, principal=ANN)

    assert await bench.another(owner="worker").adopt(ticket, _for(scripted_work())) is None

    assert (await _failure(bench, run)).finish_reason is FinishReason.CANCELLED
    await bench.check(run.id, await _journal(bench, run))


async def test_a_cancel_that_died_on_its_way_is_finished_by_who_watches(bench: Bench) -> None:
    run, _ = await _enqueued(bench)
    await bench.records.runs.request_cancel(run.id, principal=ANN)

    await _looks(bench, bench.another(owner="other"))

    assert (await bench.run(run.id)).state is RunState.FAILED


async def test_a_cancel_as_the_run_is_adopted_reaches_its_worker(bench: Bench) -> None:
    gate = Gate("end:before")
    run, _ = await _enqueued(bench)
    gate.shut()
    other = bench.another(owner="other", at=gate)
    cancelling = asyncio.create_task(other.cancel_run(run.id, principal=ANN))
    await gate.met.wait()
    adopted = await bench.records.runs.adopt(run, beat=run.beat, owner="worker")
    gate.open()

    seen = await cancelling

    assert adopted.cancel_requested
    assert seen == adopted
    assert await bench.run(run.id) == adopted


async def test_an_interrupt_ends_a_run_that_waits(bench: Bench) -> None:
    run, _ = await _enqueued(bench)

    live = await bench.engine.start(
        replace(await _turn(bench), strategy="interrupt", attended=False), scripted_work("b")
    )
    await live.wait_ended()

    assert (await bench.run(run.id)).state is RunState.CANCELLED
    assert isinstance(await bench.run_end(live.id), Done)


async def test_a_thread_with_a_run_that_waits_is_busy(bench: Bench) -> None:
    run, _ = await _enqueued(bench)

    with pytest.raises(ThreadBusy) as refused:
        await bench.engine.enqueue(await _turn(bench), queue := FakeRunQueue())

    assert refused.value.run_id == run.id
    assert queue.messages == []


async def test_a_deletion_ends_a_run_that_waits_and_leaves_nothing_to_do(bench: Bench) -> None:
    run, ticket = await _enqueued(bench)
    calls: list[str] = []
    deletion = Deletion(
        engine=bench.another(owner="other"),
        projects=bench.records.projects,
        conversations=bench.records.conversations,
        runs=bench.records.runs,
        checkpoints=_NoThreads(),
    )

    await deletion.conversation(await bench.records.conversations.get("c1", principal=ANN))

    with pytest.raises(RunNotFound):
        await bench.run(run.id)
    worker = bench.another(owner="worker")
    assert await worker.adopt(ticket, _for(scripted_work(), calls=calls)) is None
    assert calls == []


class _NoThreads:
    async def adelete_thread(self, thread_id: str) -> None:
        pass


# What happens to the ticket.


async def test_a_ticket_that_cant_be_sent_ends_the_run_and_says_so(bench: Bench) -> None:
    queue = FakeRunQueue()
    queue.error = QueueUnavailable("away")

    with pytest.raises(QueueUnavailable):
        await bench.engine.enqueue(a_turn(), queue)

    (run,) = (await bench.records.runs.list_for("c1", principal=ANN, cursor=None, limit=9)).items
    assert run.state is RunState.FAILED
    assert (await _failure(bench, run)).code == "QUEUE_UNAVAILABLE"
    await bench.check(run.id, await _journal(bench, run))
    await bench.check_free()


async def test_a_ticket_whose_reply_was_lost_is_of_no_more_use(bench: Bench) -> None:
    queue = FakeRunQueue()
    queue.error, queue.loses_reply = QueueUnavailable("away"), True
    with pytest.raises(QueueUnavailable):
        await bench.engine.enqueue(a_turn(), queue)

    assert await bench.another(owner="w").adopt(queue.tickets[0], _for(scripted_work())) is None


async def test_a_ticket_whose_reply_was_lost_was_sent_if_a_worker_has_it(bench: Bench) -> None:
    worker, lives = bench.another(owner="worker"), list[LiveRun | None]()

    class Quick(FakeRunQueue):
        async def send(self, ticket: RunTicket) -> None:
            lives.append(await worker.adopt(ticket, _for(scripted_work("a", pause=_forever))))
            raise QueueUnavailable("away")

    run = await bench.engine.enqueue(a_turn(), Quick())

    (live,) = lives
    assert live is not None
    assert (live.id, (await bench.run(run.id)).state) == (run.id, RunState.RUNNING)


async def test_an_end_that_cant_be_kept_as_the_queue_is_away_is_kept_later(bench: Bench) -> None:
    gate = Gate("end:before")
    gate.shut()
    engine = bench.another(at=gate, limits=replace(LIMITS, keep_s=0.01))
    queue = FakeRunQueue()
    queue.error = QueueUnavailable("away")

    with pytest.raises(QueueUnavailable):
        await engine.enqueue(a_turn(), queue)
    gate.open()
    await bench.settle()

    await bench.check_free()


async def test_who_is_cancelled_as_he_enqueues_leaves_no_run_that_waits(bench: Bench) -> None:
    class Slow(FakeRunQueue):
        async def send(self, ticket: RunTicket) -> None:
            del ticket
            await _forever()

    enqueuing = asyncio.create_task(bench.engine.enqueue(a_turn(), Slow()))
    for _ in range(20):
        await asyncio.sleep(0)
    enqueuing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await enqueuing
    await bench.settle()

    assert await bench.records.runs.live() == {}
    await bench.check_free()
