"""A process dies right after the k-th write of what it does, for every k; another one goes on.

Each death has a tenant of its own. The dying is an exception that nothing catches, raised once
DynamoDB has done the write; the store that it died in is not used again. What follows is what a
server does: it watches live runs, ends the dead ones, and asks again.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest

from ibid.adapters.dynamodb.records.expiry import TTL
from ibid.domain.conversations import LIVE_STATES, Run, RunState
from ibid.domain.errors import (
    ConversationNotFound,
    PauseResolved,
    ProjectNotFound,
    RunNotFound,
    RunNumberTaken,
    ThreadBusy,
)
from ibid.domain.events import Done, Failed, Paused, TokenDelta
from ibid.domain.principals import Principal
from ibid.domain.projects import JobState, JobStatistics
from ibid.ports.idempotency import KeyScope, StoredAnswer
from ibid.ports.runs import PlaceLimits
from ibid.runs.dead_runs import DeadRuns
from ibid.runs.limits import RunLimits
from tests.contract.run_steps import (
    append,
    begin,
    end,
    end_dead,
    journal,
    kept,
    messages,
    numbered,
    pause,
    resume,
    some_events,
)
from tests.fakes.app_table import AppTable
from tests.fakes.aws_faults import Call, intercepted
from tests.fakes.clock import FakeClock
from tests.fakes.records import Records
from tests.fakes.samples import (
    NOON,
    a_conversation,
    a_job,
    a_project,
    a_resumption,
    a_run,
    an_answer,
)

pytestmark = pytest.mark.ministack

READS = frozenset({"GetItem", "BatchGetItem", "Query"})
ONE = PlaceLimits(tenant=1, subject=1)


class Died(BaseException):
    """The process is gone."""


@dataclass
class Death:
    """Kills after so many writes, and counts those that were made."""

    after: int
    writes: int = 0

    def hook(self, operation: str, params: dict[str, Any], call: Call) -> Any:  # noqa: ANN401 - botocore's own
        found = call(params)
        if operation not in READS:
            self.writes += 1
            if self.writes == self.after:
                raise Died
        return found


@dataclass(frozen=True)
class World:
    """A tenant's conversation, as the deeds know it."""

    principal: Principal

    def run(self, number: int = 1) -> Run:
        return a_run(number, principal=self.principal)


Deed = Callable[[Records, World], Awaitable[object]]


async def _nothing(records: Records, world: World) -> None:
    pass


async def _begin(records: Records, world: World) -> None:
    await begin(records, world.run(), limits=ONE)


async def _begin_behind(records: Records, world: World) -> None:
    await begin(records, world.run(2), behind=True, limits=ONE)


async def _begin_queued(records: Records, world: World) -> None:
    """There is no place, since the other conversation has it."""
    other = a_run(1, conversation_id="c2", principal=world.principal)
    await begin(records, other, limits=ONE)
    await end(records, other)


async def _append(records: Records, world: World) -> None:
    entries = numbered(some_events("a", "b", "c" * 10, _long()))
    await append(records, world.run(), 0, entries[:4])
    await append(records, world.run(), 1)
    await append(records, world.run(), 2, entries[4:])


async def _cancel(records: Records, world: World) -> None:
    await records.runs.request_cancel("c1-1", principal=world.principal)


async def _end(records: Records, world: World) -> None:
    entries = numbered([TokenDelta(text="a"), TokenDelta(text=_long())])
    answer = an_answer(world.run(), "a" + _long())
    await end(records, world.run(), entries=entries, answer=answer)


async def _end_dead(records: Records, world: World) -> None:
    await end_dead(records, await kept(records, world.run()))


async def _paused(records: Records, world: World) -> None:
    await pause(records, world.run())


async def _resume(records: Records, world: World) -> None:
    paused = await kept(records, world.run())
    await resume(records, a_resumption(paused, 2), limits=ONE)


async def _resumed_and_failed(records: Records, world: World) -> None:
    await _paused(records, world)
    await _resume(records, world)
    await end_dead(records, await kept(records, world.run(2)))


async def _resume_again(records: Records, world: World) -> None:
    paused = await kept(records, world.run())
    await resume(records, a_resumption(paused, 3), limits=ONE)


async def _expire(records: Records, world: World) -> None:
    await records.runs.expire(await kept(records, world.run()))


async def _queued(records: Records, world: World) -> None:
    await _begin(records, world)
    await _begin_behind(records, world)
    await end(records, world.run())


async def _admit(records: Records, world: World) -> None:
    assert await records.runs.admit(world.run(2), limits=ONE)


DEEDS: dict[str, tuple[Deed, Deed, int]] = {  # what was before, what it dies in, its writes
    "begin": (_nothing, _begin, 3),
    "begin behind": (_begin, _begin_behind, 3),
    "begin elsewhere": (_begin, _begin_queued, 5),
    "append": (_begin, _append, 5),
    "cancel": (_begin, _cancel, 2),
    "end": (_begin, _end, 7),
    "end a dead run": (_begin, _end_dead, 3),
    "resume": (_paused, _resume, 2),
    "resume again": (_resumed_and_failed, _resume_again, 2),
    "expire": (_paused, _expire, 1),
    "admit": (_queued, _admit, 2),
}


def _long() -> str:
    """Text that takes more than one item."""
    dice = random.Random(1)  # noqa: S311 - no secret
    return "".join(chr(dice.randrange(0x21, 0x2FFF)) for _ in range(180_000))


@pytest.fixture
async def table(ministack_url: str) -> AsyncIterator[AppTable]:
    async with AppTable.opened(ministack_url) as made:
        yield made


async def _dies(table: AppTable, deed: Deed, world: World, after: int) -> int:
    """Let a process do something and die after so many writes; return how many it made."""
    process, death = await table.another(), Death(after=after)
    try:
        with intercepted(death.hook):
            await deed(process, world)
    except Died:
        pass
    finally:
        await process.close()
    return death.writes


async def _world(records: Records, name: str) -> World:
    world = World(principal=Principal(tenant=name, subject="ann"))
    await records.projects.create(a_project(principal=world.principal))
    for conversation_id in ("c1", "c2"):
        conversation = a_conversation(conversation_id, principal=world.principal)
        await records.conversations.create(conversation)
    return world


async def _end_all(records: Records, tenant: str) -> None:
    """End what has died: two looks, as a run that was killed and not ended has moved once."""
    dead = DeadRuns(records.runs, FakeClock(), RunLimits())
    for _ in range(2):
        for (of, run_id), beat in (await records.runs.live()).items():
            if of == tenant:
                await dead.end(run_id, tenant=tenant, beat=beat)


async def _settle(records: Records, world: World) -> None:
    """Go on as a user does: answer a pause, or have it expire; then ask again on both threads."""
    page = await records.runs.list_for("c1", principal=world.principal, cursor=None, limit=9)
    for run in page.items:
        assert run.state not in LIVE_STATES
        if run.state is RunState.PAUSED and run.resumed_by is None:
            assert await records.runs.expire(run)
    for conversation_id in ("c1", "c2"):
        await _another_turn(records, world, conversation_id)


async def _another_turn(records: Records, world: World, conversation_id: str) -> None:
    for _ in range(3):
        conversation = await records.conversations.get(conversation_id, principal=world.principal)
        run = a_run(
            conversation.runs_begun + 1, conversation_id=conversation_id, principal=world.principal
        )
        try:
            begun = await begin(records, run, limits=ONE)
        except RunNumberTaken:
            continue
        assert begun.run.state is RunState.RUNNING  # every place is free again
        await end(records, run)
        return
    raise AssertionError("no turn could be begun")


async def _check(records: Records, world: World) -> None:
    """Every run that there is ended once, and its message is what its journal shows."""
    live = await records.runs.live()
    assert not [key for key in live if key[0] == world.principal.tenant]
    for conversation_id in ("c1", "c2"):
        page = await records.runs.list_for(
            conversation_id, principal=world.principal, cursor=None, limit=9
        )
        found = await messages(records, conversation_id, principal=world.principal)
        assert len(found) == 2 * len(page.items)
        for run in page.items:
            entries = await journal(records, run)
            ids = [entry.id for entry in entries[:-1]]
            assert ids == list(range(1, len(ids) + 1))
            assert isinstance(entries[-1].event, Done | Failed | Paused)
            assert not [one for one in entries[:-1] if isinstance(one.event, Done | Failed)]
            assert entries[-1].event == run.terminator
            said = "".join(
                entry.event.text for entry in entries if isinstance(entry.event, TokenDelta)
            )
            question, answer = [one for one in found if one.run_id == run.id]
            assert (question.role, answer.role) == ("user", "assistant")
            if isinstance(run.terminator, Failed):
                assert run.terminator.kept_through_id == len(ids)
                assert answer.content == said or run.terminator.code == "LLM_UNAVAILABLE"


@pytest.mark.parametrize("name", DEEDS)
async def test_a_run_ends_once_and_its_thread_goes_on_whichever_write_its_process_died_after(
    table: AppTable, name: str
) -> None:
    before, deed, writes = DEEDS[name]
    records = table.records

    for after in range(1, writes + 2):
        world = await _world(records, f"{name} {after}")
        await before(records, world)
        made = await _dies(table, deed, world, after)
        assert made == min(after, writes)

        await _end_all(records, world.principal.tenant)
        await _settle(records, world)

        await _check(records, world)


@pytest.mark.parametrize("after", [1, 2, 3])
async def test_a_decision_is_kept_with_its_run_or_not_at_all(table: AppTable, after: int) -> None:
    records = table.records
    world = await _world(records, "acme")
    await _paused(records, world)
    await _dies(table, _resume, world, after)
    await _end_all(records, "acme")

    asked = await kept(records, world.run())
    if asked.resumed_by is None:
        number = (await records.conversations.get("c1", principal=world.principal)).runs_begun + 1
        again = a_resumption(asked, number)
        try:
            await resume(records, again)
        except RunNumberTaken:  # of a run that died before it was begun
            again = a_resumption(asked, number + 1)
            await resume(records, again)
    else:
        with pytest.raises(PauseResolved):
            await resume(records, a_resumption(asked, 3), decision="another")
        again = a_resumption(asked, 3)
        await resume(records, again)
    await end(records, again)

    resumed = await kept(records, world.run())
    assert (resumed.resumed_by, resumed.decision) == (again.id, "this one")
    await _check(records, world)


async def test_a_thread_is_busy_until_who_began_on_it_is_found_dead(table: AppTable) -> None:
    records = table.records
    world = await _world(records, "acme")
    await _dies(table, _begin, world, 2)

    with pytest.raises(ThreadBusy) as busy:
        await begin(records, world.run(2))
    waited_for = await records.runs.request_cancel(busy.value.run_id, principal=world.principal)
    dead = DeadRuns(records.runs, FakeClock(), RunLimits(term_s=0.01, beat_s=0.01, poll_s=0.01))
    await _end_all(records, "acme")

    assert waited_for.state in LIVE_STATES
    assert await dead.wait_ended([("acme", waited_for.id)], timeout_s=5)
    with pytest.raises(RunNotFound):
        await records.runs.get(waited_for.id, principal=world.principal)
    await _another_turn(records, world, "c1")


@dataclass
class Rival:
    """Lets another process begin a run of the same number, where this one would take it."""

    begins: Callable[[], Awaitable[object]]
    loop: asyncio.AbstractEventLoop
    has_begun: bool = False

    def hook(self, operation: str, params: dict[str, Any], call: Call) -> Any:  # noqa: ANN401 - botocore's own
        takes_number = operation in {"UpdateItem", "TransactWriteItems"} and "runs" in repr(params)
        if takes_number and not self.has_begun:
            self.has_begun = True
            asyncio.run_coroutine_threadsafe(_awaited(self.begins()), self.loop).result(30)
        return call(params)


async def _awaited(one: Awaitable[object]) -> object:
    return await one


@pytest.mark.parametrize("dies_after", [2, 3])
async def test_who_is_late_with_a_number_leaves_the_other_one_its_place(
    table: AppTable, dies_after: int
) -> None:
    records = table.records
    world = await _world(records, "acme")
    first, late = world.run(), replace(world.run(), message_id="late", lease_owner="late")

    async def dying(records: Records, _: World) -> None:
        await begin(records, first)

    rival = Rival(lambda: _dies(table, dying, world, dies_after), asyncio.get_running_loop())
    with intercepted(rival.hook), pytest.raises(RunNumberTaken):
        await begin(records, late)

    assert rival.has_begun
    assert list(await records.runs.live()) == [("acme", first.id)]
    await _end_all(records, "acme")
    assert await records.runs.live() == {}
    await _another_turn(records, world, "c1")
    await _check(records, world)


async def test_who_is_late_with_a_decision_leaves_the_other_one_its_place(
    table: AppTable,
) -> None:
    records, another = table.records, await table.another()
    world = await _world(records, "acme")
    await _paused(records, world)
    paused = await kept(records, world.run())
    first = a_resumption(paused, 2)
    late = replace(first, message_id="late", lease_owner="late")

    rival = Rival(lambda: resume(another, first), asyncio.get_running_loop())
    with intercepted(rival.hook), pytest.raises(PauseResolved):
        await resume(records, late)

    assert list(await records.runs.live()) == [("acme", first.id)]
    await end(records, first)
    assert await records.runs.live() == {}
    await another.close()


async def test_a_begin_that_slept_over_its_own_end_is_told_to_take_another_number(
    table: AppTable,
) -> None:
    records, slow = table.records, await table.another()
    world = await _world(records, "acme")
    reached, may_go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def hook(operation: str, params: dict[str, Any], call: Call) -> Any:  # noqa: ANN401 - botocore's own
        if operation == "PutItem" and "owner" in params["Item"]:
            loop.call_soon_threadsafe(reached.set)
            asyncio.run_coroutine_threadsafe(may_go_on.wait(), loop).result(30)
        return call(params)

    with intercepted(hook):
        beginning = asyncio.create_task(begin(slow, world.run()))
        await reached.wait()
        await _end_all(records, "acme")
        may_go_on.set()
        with pytest.raises(RunNumberTaken):
            await beginning

    await _another_turn(records, world, "c1")
    await _check(records, world)
    await slow.close()


async def _plant(records: Records, world: World) -> None:
    """Two conversations with runs of every kind, a job, and a key."""
    scope = KeyScope(tenant=world.principal.tenant, subject="ann", method="POST", path="/", key="k")
    key = await records.idempotency.claim(
        scope, fingerprint="f", owner="me", now=NOON, expires_at=_day_after(NOON)
    )
    run = world.run()
    await begin(records, run, idempotency=key.id)
    await records.idempotency.finish(
        key.id,
        tenant=scope.tenant,
        owner="me",
        answer=StoredAnswer(status=200, body=b"body"),
    )
    await append(records, run, 0, numbered(some_events("a")))
    await end(records, run, beat=1, event_id=4)
    await begin(records, world.run(2))
    await append(records, world.run(2), 0, numbered(some_events("a")))
    other = a_run(1, conversation_id="c2", principal=world.principal)
    await pause(records, other)
    await records.jobs.begin(a_job(tenant=scope.tenant), owner="me")


def _day_after(moment: datetime) -> datetime:
    return moment.replace(day=moment.day + 1)


async def _delete_conversation(records: Records, world: World) -> Collection[str]:
    return await records.conversations.delete("c1", principal=world.principal)


async def _delete_project(records: Records, world: World) -> Collection[str]:
    return await records.projects.delete("p1", tenant=world.principal.tenant)


@pytest.mark.parametrize("deed", [_delete_conversation, _delete_project])
async def test_a_deletion_is_finished_by_the_next_one_whichever_write_it_died_after(
    table: AppTable, deed: Deed
) -> None:
    records = table.records
    after, is_through = 0, False

    while not is_through:
        after += 1
        world = await _world(records, f"{after}")
        await _plant(records, world)
        made = await _dies(table, deed, world, after)
        is_through = made < after
        conversation_is_there = True
        try:
            turns = await deed(records, world)
            assert deed is _delete_project or turns == {"c1-1", "c1-2"}
        except ConversationNotFound:
            conversation_is_there = False

        assert conversation_is_there or deed is _delete_conversation
        left = [
            item
            for item in table.items()
            if item["pk"]["S"].startswith((f"T#{after}#C#c1", f"T#{after}#I#"))
        ]
        assert left
        assert all(
            set(item) <= {"pk", "sk", "gone", "kill", "beat", "key", "turn", TTL} for item in left
        )
        assert (f"{after}", "c1-2") not in await records.runs.live()
        with pytest.raises(ConversationNotFound):
            await records.conversations.get("c1", principal=world.principal)
        if deed is _delete_project:
            with pytest.raises(ProjectNotFound):
                await records.projects.get("p1", tenant=world.principal.tenant)
            assert (f"{after}", "j1") not in await records.jobs.live()
    assert after >= 10


async def test_a_job_that_died_is_taken_over_whichever_write_it_died_after(
    table: AppTable,
) -> None:
    records, some = table.records, JobStatistics()

    async def job(store: Records, world: World) -> None:
        tenant = world.principal.tenant
        mine: dict[str, Any] = {"tenant": tenant, "owner": "me", "statistics": some}
        assert await store.jobs.begin(a_job(tenant=tenant), owner="me") is None
        await store.jobs.beat("j1", phase="lexical", **mine)
        await store.jobs.end("j1", state=JobState.SUCCEEDED, error=None, at=NOON, **mine)

    for after in range(1, 5):
        world = await _world(records, f"{after}")
        made = await _dies(table, job, world, after)
        assert made == min(after, 3)

        for (tenant, job_id), beat in (await records.jobs.live()).items():
            assert await records.jobs.take_over(job_id, tenant=tenant, beat=beat, at=NOON)

        second = a_job("j2", tenant=world.principal.tenant)
        assert await records.jobs.begin(second, owner="you") is None
        await records.jobs.take_over("j2", tenant=second.tenant, beat=0, at=NOON)
