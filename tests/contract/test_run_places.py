"""What every RunStore does about places, queues and turns that wait for each other."""

import asyncio
from dataclasses import replace

import pytest

from ibid.domain.conversations import RunState
from ibid.domain.errors import LeaseLost, PausePending
from ibid.domain.principals import Principal
from ibid.ports.runs import PlaceLimits
from tests.contract.run_steps import (
    a_failure,
    append,
    begin,
    conversations,
    end,
    end_dead,
    kept,
    messages,
    pause,
    resume,
)
from tests.fakes.records import Records
from tests.fakes.samples import ANN, PLACES, a_pause, a_question, a_resumption, a_run

BOB = Principal(tenant="acme", subject="bob")
EVE = Principal(tenant="rival", subject="ann")


async def _is_admitted(records: Records, number: int, limits: PlaceLimits = PLACES) -> bool:
    return await records.runs.admit(a_run(number), limits=limits)


async def test_a_run_without_a_place_of_its_subject_is_queued(records: Records) -> None:
    limits = PlaceLimits(tenant=9, subject=2)
    await conversations(records, "c1", "c2", "c3")
    await conversations(records, "b1", principal=BOB, project=False)

    states = [
        (await begin(records, run, limits=limits)).run.state
        for run in (
            a_run(conversation_id="c1"),
            a_run(conversation_id="c2"),
            a_run(conversation_id="c3"),
            a_run(conversation_id="b1", principal=BOB),
        )
    ]

    assert states == [RunState.RUNNING, RunState.RUNNING, RunState.QUEUED, RunState.RUNNING]
    assert (await kept(records, a_run(conversation_id="c3"))).state is RunState.QUEUED
    assert await messages(records, "c3") == [a_question(a_run(conversation_id="c3"))]


async def test_a_run_without_a_place_of_its_tenant_is_queued(records: Records) -> None:
    limits = PlaceLimits(tenant=2, subject=2)
    await conversations(records, "c1")
    await conversations(records, "b1", "b2", principal=BOB, project=False)
    await conversations(records, "c1", principal=EVE)

    states = [
        (await begin(records, run, limits=limits)).run.state
        for run in (
            a_run(conversation_id="c1"),
            a_run(conversation_id="b1", principal=BOB),
            a_run(conversation_id="b2", principal=BOB),
            a_run(conversation_id="c1", principal=EVE),
        )
    ]

    assert states == [RunState.RUNNING, RunState.RUNNING, RunState.QUEUED, RunState.RUNNING]


async def test_a_queued_run_is_admitted_once_a_place_is_free(records: Records) -> None:
    limits = PlaceLimits(tenant=9, subject=1)
    await conversations(records, "c1", "c2")
    first, second = a_run(conversation_id="c1"), a_run(conversation_id="c2")
    await begin(records, first, limits=limits)
    await begin(records, second, limits=limits)
    assert not await records.runs.admit(second, limits=limits)

    await end(records, first)

    assert await records.runs.admit(second, limits=limits)
    assert await records.runs.admit(second, limits=limits)
    assert await kept(records, second) == second


async def test_a_dead_run_frees_its_place_by_its_end(records: Records) -> None:
    limits = PlaceLimits(tenant=1, subject=1)
    await conversations(records, "c1", "c2")
    first, second = a_run(conversation_id="c1"), a_run(conversation_id="c2")
    await begin(records, first, limits=limits)
    await begin(records, second, limits=limits)

    assert await end_dead(records, first)

    assert await records.runs.admit(second, limits=limits)


async def test_a_paused_run_holds_no_place(records: Records) -> None:
    limits = PlaceLimits(tenant=1, subject=1)
    await conversations(records, "c1", "c2")
    await pause(records, a_run())

    begun = await begin(records, a_run(conversation_id="c2"), limits=limits)

    assert begun.run.state is RunState.RUNNING


async def test_a_resumption_waits_for_a_place_too(records: Records) -> None:
    limits = PlaceLimits(tenant=1, subject=1)
    await conversations(records, "c1", "c2")
    paused = await pause(records, a_run())
    other = a_run(conversation_id="c2")
    await begin(records, other)
    run = a_resumption(paused, 2)

    begun = await resume(records, run, limits=limits)

    assert begun.run == replace(run, state=RunState.QUEUED)
    assert not await records.runs.admit(run, limits=limits)
    await end(records, other)
    assert await records.runs.admit(run, limits=limits)


async def test_of_many_begins_at_once_no_more_run_than_there_are_places(records: Records) -> None:
    limits = PlaceLimits(tenant=9, subject=3)
    names = [f"c{number}" for number in range(12)]
    await conversations(records, *names)

    begun = await asyncio.gather(
        *(begin(records, a_run(conversation_id=name), limits=limits) for name in names)
    )

    states = [one.run.state for one in begun]
    assert states.count(RunState.RUNNING) == 3
    queued = [one.run for one in begun if one.run.state is RunState.QUEUED]
    assert not any([await records.runs.admit(run, limits=limits) for run in queued])


async def test_of_many_that_wait_at_once_no_more_are_admitted_than_there_are_places(
    records: Records,
) -> None:
    limits = PlaceLimits(tenant=9, subject=3)
    names = [f"c{number}" for number in range(12)]
    await conversations(records, *names)
    begun = [await begin(records, a_run(conversation_id=name), limits=limits) for name in names]
    running = [one.run for one in begun if one.run.state is RunState.RUNNING]
    queued = [one.run for one in begun if one.run.state is RunState.QUEUED]
    await end(records, running[0])
    await end(records, running[1])

    admitted = await asyncio.gather(*(records.runs.admit(run, limits=limits) for run in queued))

    assert admitted.count(True) == 2


async def test_a_run_behind_others_waits_for_all_of_them_in_order(records: Records) -> None:
    await conversations(records, "c1")
    await begin(records, a_run(1))

    second = await begin(records, a_run(2), behind=True)
    third = await begin(records, a_run(3), behind=True)

    assert (second.run.state, third.run.state) == (RunState.QUEUED, RunState.QUEUED)
    assert [await _is_admitted(records, number) for number in (3, 2)] == [False, False]
    await end(records, a_run(1))
    assert [await _is_admitted(records, number) for number in (3, 2, 3)] == [False, True, False]
    await end(records, a_run(2), a_failure())
    assert await _is_admitted(records, 3)
    live = await records.runs.live()
    assert live == {("acme", "c1-3"): 0}


async def test_a_run_behind_none_runs_at_once(records: Records) -> None:
    await conversations(records, "c1")

    begun = await begin(records, a_run(), behind=True)

    assert begun.run.state is RunState.RUNNING


async def test_who_was_behind_a_run_that_was_cancelled_in_the_queue_moves_up(
    records: Records,
) -> None:
    await conversations(records, "c1")
    await begin(records, a_run(1))
    await begin(records, a_run(2), behind=True)
    await begin(records, a_run(3), behind=True)
    await end(records, a_run(2), a_failure(), state=RunState.CANCELLED)

    assert not await _is_admitted(records, 3)
    await end(records, a_run(1))

    assert await _is_admitted(records, 3)


async def test_who_is_behind_a_run_that_pauses_is_told_the_pause(records: Records) -> None:
    await conversations(records, "c1")
    first = a_run(1)
    await begin(records, first)
    await begin(records, a_run(2), behind=True)
    await begin(records, a_run(3), behind=True)
    await end(records, first, a_pause(first))

    with pytest.raises(PausePending) as refusal:
        await _is_admitted(records, 2)
    assert (refusal.value.run_id, refusal.value.interrupt_id) == ("c1-1", "interrupt of c1-1")
    await end(records, a_run(2), a_failure())
    with pytest.raises(PausePending):
        await _is_admitted(records, 3)

    await end(records, a_run(3), a_failure())
    paused = await kept(records, first)
    begun = await resume(records, a_resumption(paused, 4))
    assert begun.run.state is RunState.RUNNING


async def test_who_is_behind_a_pause_that_was_answered_waits_for_the_resumption(
    records: Records,
) -> None:
    await conversations(records, "c1")
    first = a_run(1)
    await begin(records, first)
    await begin(records, a_run(2), behind=True)
    await end(records, first, a_pause(first))
    resumption = a_resumption(await kept(records, first), 3)
    begun = await resume(records, resumption)
    assert begun.run.state is RunState.RUNNING

    assert not await _is_admitted(records, 2)
    await end(records, resumption)

    assert await _is_admitted(records, 2)


async def test_who_waits_for_a_place_writes_its_counter(records: Records) -> None:
    await conversations(records, "c1")
    await begin(records, a_run(1))
    await begin(records, a_run(2), behind=True)

    told = await append(records, a_run(2), 0)

    assert told.beat == 1
    assert (await kept(records, a_run(2))).state is RunState.QUEUED


async def test_only_its_owner_is_admitted(records: Records) -> None:
    await conversations(records, "c1")
    await begin(records, a_run(1))
    await begin(records, a_run(2), behind=True)

    for stale in (
        replace(a_run(2), lease_owner="you"),
        replace(a_run(2), tenant="rival"),
        a_run(3),
    ):
        with pytest.raises(LeaseLost):
            await records.runs.admit(stale, limits=PLACES)
    await end(records, a_run(1))
    await end(records, a_run(2))
    with pytest.raises(LeaseLost):
        await _is_admitted(records, 2)

    await records.conversations.delete("c1", principal=ANN)
    with pytest.raises(LeaseLost):
        await _is_admitted(records, 2)
