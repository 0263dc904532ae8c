"""What every RunStore does about runs that wait until a process adopts them."""

import asyncio
from dataclasses import replace

import pytest

from ibid.domain.conversations import IN_QUEUE, Run, RunState
from ibid.domain.errors import LeaseLost, RunNotFound, ThreadBusy
from ibid.domain.events import Failed
from ibid.ports.runs import PlaceLimits
from tests.contract.run_steps import (
    a_failure,
    append,
    begin,
    conversations,
    end,
    end_dead,
    journal,
    kept,
    numbered,
    some_events,
)
from tests.fakes.records import Records
from tests.fakes.samples import ANN, PLACES, a_question, a_run

ONE_PLACE = PlaceLimits(tenant=1, subject=1)


async def _waiting(records: Records, number: int = 1, *, conversation_id: str = "c1") -> Run:
    run = replace(a_run(number, conversation_id=conversation_id), lease_owner=f"{IN_QUEUE}{number}")
    begun = await records.runs.begin(
        run, question=a_question(run), title="title", limits=None, behind=number > 1
    )
    return begun.run


async def test_a_run_without_limits_is_queued_though_there_is_a_place(records: Records) -> None:
    await conversations(records, "c1")

    run = await _waiting(records)

    assert (run.state, run.beat, run.is_in_queue) == (RunState.QUEUED, 0, True)
    assert await kept(records, run) == run
    assert await records.runs.live() == {(run.tenant, run.id): 0}


async def test_a_run_that_waits_takes_no_place_but_its_thread(records: Records) -> None:
    await conversations(records, "c1", "c2")
    waiting = await _waiting(records)

    other = await begin(records, a_run(conversation_id="c2"), limits=ONE_PLACE)
    with pytest.raises(ThreadBusy) as refused:
        await begin(records, a_run(2))

    assert other.run.state is RunState.RUNNING
    assert refused.value.run_id == waiting.id


async def test_who_adopts_a_run_has_it_admits_it_and_ends_it(records: Records) -> None:
    await conversations(records, "c1")
    waiting = await _waiting(records)

    adopted = await records.runs.adopt(waiting, beat=0, owner="worker")

    assert adopted == replace(waiting, lease_owner="worker", beat=1)
    assert not adopted.is_in_queue
    assert await kept(records, waiting) == adopted
    assert await records.runs.live() == {(waiting.tenant, waiting.id): 1}
    assert await records.runs.admit(adopted, limits=PLACES)
    entries = numbered(some_events("It ", "is."))
    assert (await append(records, adopted, 1, entries[:2])).beat == 2
    ended = await end(records, adopted, beat=2, entries=entries[2:], event_id=5)
    assert (ended.state, ended.lease_owner) == (RunState.COMPLETED, "worker")
    assert (await journal(records, ended))[:-1] == entries
    assert await records.runs.live() == {}


async def test_an_adopted_run_waits_for_a_place_as_any_other(records: Records) -> None:
    await conversations(records, "c1", "c2")
    waiting = await _waiting(records)
    other = a_run(conversation_id="c2")
    await begin(records, other, limits=ONE_PLACE)
    adopted = await records.runs.adopt(waiting, beat=0, owner="worker")

    assert not await records.runs.admit(adopted, limits=ONE_PLACE)
    await end(records, other)

    assert await records.runs.admit(adopted, limits=ONE_PLACE)


async def test_of_many_that_adopt_at_once_one_does(records: Records) -> None:
    await conversations(records, "c1")
    waiting = await _waiting(records)

    outcomes = await asyncio.gather(
        *(records.runs.adopt(waiting, beat=0, owner=f"worker {n}") for n in range(20)),
        return_exceptions=True,
    )

    (won,) = [outcome for outcome in outcomes if isinstance(outcome, Run)]
    assert len([outcome for outcome in outcomes if isinstance(outcome, LeaseLost)]) == 19
    assert await kept(records, waiting) == won


async def test_of_an_adoption_a_cancel_and_a_death_at_once_one_comes_about(
    records: Records,
) -> None:
    names = [f"c{number}" for number in range(12)]
    await conversations(records, *names)
    for turn, name in enumerate(names):
        waiting = await _waiting(records, conversation_id=name)
        adopting = records.runs.adopt(waiting, beat=0, owner="worker")
        cancel = replace(a_failure(), code="CANCELLED")
        races = [adopting, end(records, waiting, cancel), end_dead(records, waiting)]
        order = [(turn + place) % 3 for place in range(3)]

        done = await asyncio.gather(*(races[place] for place in order), return_exceptions=True)

        adopted, ended, died = (done[order.index(place)] for place in range(3))
        now = await kept(records, waiting)
        is_adopted = isinstance(adopted, Run)
        is_cancelled = isinstance(now.terminator, Failed) and now.terminator.code == "CANCELLED"
        assert [is_adopted, is_cancelled, died is True].count(True) == 1
        assert now == (adopted if is_adopted else ended)
        assert is_adopted == isinstance(ended, LeaseLost) == now.lease_owner.startswith("worker")


async def test_a_run_that_was_adopted_is_nobody_elses(records: Records) -> None:
    await conversations(records, "c1")
    waiting = await _waiting(records)
    adopted = await records.runs.adopt(waiting, beat=0, owner="worker")

    with pytest.raises(LeaseLost):  # with what was read before
        await records.runs.adopt(waiting, beat=0, owner="slow")
    with pytest.raises(LeaseLost):
        await records.runs.adopt(waiting, beat=1, owner="slow")
    with pytest.raises(LeaseLost):
        await append(records, waiting, 0)
    with pytest.raises(LeaseLost):
        await end(records, waiting, a_failure())
    assert not await end_dead(records, waiting)

    assert await kept(records, waiting) == adopted


async def test_a_run_with_another_counter_is_not_adopted(records: Records) -> None:
    await conversations(records, "c1")
    waiting = await _waiting(records)

    with pytest.raises(LeaseLost):
        await records.runs.adopt(waiting, beat=1, owner="worker")

    assert await kept(records, waiting) == waiting


async def test_who_began_a_run_that_waits_may_move_its_counter_until_it_is_adopted(
    records: Records,
) -> None:
    await conversations(records, "c1", "c2")
    waiting, other = await _waiting(records), await _waiting(records, conversation_id="c2")

    told = await append(records, waiting, 0)
    await records.runs.adopt(other, beat=0, owner="worker")

    assert (told.beat, told.cancel_requested) == (1, False)
    assert await kept(records, waiting) == replace(waiting, beat=1)
    with pytest.raises(LeaseLost):
        await records.runs.adopt(waiting, beat=0, owner="worker")
    adopted = await records.runs.adopt(waiting, beat=1, owner="worker")
    assert adopted == replace(waiting, lease_owner="worker", beat=2)
    with pytest.raises(LeaseLost):
        await append(records, other, 0)


async def test_a_run_that_has_ended_is_not_adopted(records: Records) -> None:
    await conversations(records, "c1", "c2")
    waiting, dead = await _waiting(records), await _waiting(records, conversation_id="c2")
    ended = await end(records, waiting, a_failure())
    assert await end_dead(records, dead)

    for run in (waiting, dead):
        with pytest.raises(LeaseLost):
            await records.runs.adopt(run, beat=0, owner="worker")

    assert await kept(records, waiting) == ended
    assert (await kept(records, dead)).state is RunState.FAILED


async def test_a_run_that_runs_is_not_adopted(records: Records) -> None:
    await conversations(records, "c1")
    run = (await begin(records, a_run())).run

    with pytest.raises(LeaseLost):
        await records.runs.adopt(run, beat=0, owner="worker")

    assert await kept(records, run) == run


async def test_a_run_that_is_gone_is_not_adopted(records: Records) -> None:
    await conversations(records, "c1")
    waiting = await _waiting(records)
    await records.conversations.delete("c1", principal=ANN)

    with pytest.raises(LeaseLost):
        await records.runs.adopt(waiting, beat=0, owner="worker")
    with pytest.raises(RunNotFound):
        await records.runs.get(waiting.id, principal=ANN)


async def test_a_cancel_that_came_first_is_told_to_who_adopts(records: Records) -> None:
    await conversations(records, "c1")
    waiting = await _waiting(records)
    cancelled = await records.runs.request_cancel(waiting.id, principal=ANN)

    adopted = await records.runs.adopt(cancelled, beat=0, owner="worker")

    assert adopted.cancel_requested
    assert await records.runs.is_cancelled(adopted, beat=1)
    assert (await append(records, adopted, 1)).cancel_requested


async def test_a_cancel_that_came_after_is_told_too(records: Records) -> None:
    await conversations(records, "c1")
    adopted = await records.runs.adopt(await _waiting(records), beat=0, owner="worker")

    await records.runs.request_cancel(adopted.id, principal=ANN)

    assert (await append(records, adopted, 1)).cancel_requested


async def test_a_run_that_waits_is_ended_in_its_name(records: Records) -> None:
    await conversations(records, "c1")
    waiting = await _waiting(records)
    cancelled = await records.runs.request_cancel(waiting.id, principal=ANN)

    ended = await end(records, cancelled, a_failure(), beat=cancelled.beat)

    assert (ended.state, ended.last_event_id) == (RunState.FAILED, 1)
    assert (await begin(records, a_run(2))).run.state is RunState.RUNNING


async def test_a_run_that_was_adopted_and_not_touched_again_is_ended_as_any_dead_one(
    records: Records,
) -> None:
    await conversations(records, "c1")
    adopted = await records.runs.adopt(await _waiting(records), beat=0, owner="worker")

    assert await end_dead(records, await kept(records, adopted))

    with pytest.raises(LeaseLost):
        await append(records, adopted, 1)
