"""The app table under lost replies, throttling, conflicts, time and deletions."""

import asyncio
import contextlib
import dataclasses
import random
import zlib
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from ibid.adapters.dynamodb.records.dictionary import DICTIONARY
from ibid.adapters.dynamodb.records.expiry import GRACE, TTL
from ibid.adapters.dynamodb.records.records import DynamoRecords
from ibid.adapters.dynamodb.retries import RetryBudget
from ibid.domain.conversations import Run, RunState
from ibid.domain.errors import (
    JournalExpired,
    LeaseLost,
    Misconfigured,
    PauseResolved,
    RunNotFound,
    SchemaTooNew,
    StoreUnavailable,
)
from ibid.domain.events import TokenDelta
from ibid.domain.projects import JobState, JobStatistics
from ibid.ports.feedback import Feedback
from ibid.ports.idempotency import KeyScope, StoredAnswer
from tests.contract.run_steps import (
    WEEK,
    append,
    begin,
    conversations,
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
from tests.fakes.aws_faults import (
    Call,
    Hook,
    conflicting_once,
    each_once,
    intercepted,
    late,
    throttled,
    unprocessed,
)
from tests.fakes.ministack import client_config
from tests.fakes.records import FakeRecords, Records
from tests.fakes.samples import (
    ANN,
    NOON,
    PLACES,
    a_job,
    a_pause,
    a_question,
    a_resumption,
    a_run,
    an_answer,
)

pytestmark = pytest.mark.ministack

T = TypeVar("T")

PLANTED = "PLANTED-7f3a9c"
DAY = NOON + timedelta(days=1)
WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
READS = frozenset({"GetItem", "BatchGetItem", "Query"})
SCOPE = KeyScope(tenant="acme", subject="ann", method="POST", path="/ask", key="k1")
RATING = Feedback(
    tenant="acme",
    subject="ann",
    conversation_id="c1",
    run_id="c1-1",
    rating="down",
    comment=PLANTED,
    created_at=NOON,
)


@pytest.fixture
async def table(ministack_url: str) -> AsyncIterator[AppTable]:
    async with AppTable.opened(ministack_url) as made:
        yield made


class _Life:
    """Does some of everything, and notes all that was answered."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._seen: list[Any] = []

    async def _see(self, answer: Awaitable[T]) -> T:
        found = await answer
        self._seen.append(found)
        return found

    async def lived(self) -> list[Any]:
        records = self._records
        await conversations(records, "c1", "c2")
        await self._cancelled_turn()
        await self._pauses_and_queues()
        for number in range(1, 6):
            await self._see(journal(records, a_run(number)))
        # a question that was queued comes after the answer that it waited for, or before
        found = await messages(records)
        self._seen.append(sorted(found, key=lambda one: (one.run_id, one.role == "assistant")))
        page = await records.runs.list_for("c1", principal=ANN, cursor=None, limit=3)
        self._seen.append([run.id for run in page.items])
        await self._job()
        await self._deletions()
        return self._seen

    async def _cancelled_turn(self) -> None:
        records, run = self._records, a_run()
        entries = numbered(some_events("a ", "b ", PLANTED))
        keys = records.idempotency
        key = await keys.claim(SCOPE, fingerprint="f", owner="me", now=NOON, expires_at=DAY)
        await keys.beat(key.id, tenant="acme", owner="me", plan="c1-1")
        await self._see(begin(records, run, history=10, idempotency=key.id))
        await self._see(append(records, run, 0, entries[:3]))
        await self._see(append(records, run, 1))
        await self._see(records.runs.request_cancel("c1-1", principal=ANN))
        await self._see(append(records, run, 2, entries[3:4]))
        await self._see(records.runs.is_cancelled(run, beat=3))
        await self._see(end(records, run, beat=3, entries=entries[4:], event_id=6))
        answer = StoredAnswer(status=200, headers={"a": PLANTED}, body=b"\xff\x00", run_id="c1-1")
        await keys.finish(key.id, tenant="acme", owner="me", answer=answer)
        found = await keys.get(key.id, tenant="acme", now=NOON)
        assert found is not None
        self._seen.append((found.plan, found.answer))  # a lost reply may beat twice
        await records.feedback.put(RATING)
        await self._see(records.feedback.get("c1-1", tenant="acme", subject="ann"))

    async def _pauses_and_queues(self) -> None:
        records, store = self._records, self._records.runs
        third, fourth = a_resumption(await self._see(pause(records, a_run(2))), 3), a_run(4)
        await self._see(resume(records, third, history=10))
        await self._see(begin(records, fourth, behind=True))
        await self._see(store.admit(fourth, limits=PLACES))
        await self._see(end(records, third, entries=numbered([TokenDelta(text="c")])))
        await self._see(store.admit(fourth, limits=PLACES))
        await self._see(store.live())
        await append(records, fourth, 0, numbered([TokenDelta(text="d")]))
        await self._see(end_dead(records, await kept(records, fourth), text="d"))
        asked = await pause(records, a_run(5))
        self._seen.append([run.id for run in await store.due_pauses(DAY)])
        await self._see(store.expire(asked))
        await self._see(store.get(asked.id, principal=ANN))

    async def _job(self) -> None:
        jobs, some = self._records.jobs, JobStatistics(scanned=1)
        mine: dict[str, Any] = {"tenant": "acme", "owner": "me", "statistics": some}
        await self._see(jobs.begin(a_job(), owner="me"))
        await jobs.beat("j1", phase="lexical", **mine)
        await self._see(
            self._records.projects.activate(
                "p1",
                tenant="acme",
                generation=2,
                job_id="j1",
                embedding_signature=None,
                chunk_count=1,
                path_count=1,
                commit_sha=None,
            )
        )
        await jobs.end("j1", state=JobState.SUCCEEDED, error=None, at=NOON, **mine)
        await self._see(jobs.get("j1", tenant="acme"))

    async def _deletions(self) -> None:
        records = self._records
        await self._see(records.conversations.rename("c2", principal=ANN, title="new"))
        page = await records.projects.list_for(tenant="acme", subject="ann", cursor=None, limit=9)
        self._seen.append(page.items)
        await records.conversations.delete("c1", principal=ANN)
        rest = await records.conversations.list_for(principal=ANN, cursor=None, limit=9)
        self._seen.append(rest.items)
        await self._see(records.idempotency.get(SCOPE.record_id, tenant="acme", now=NOON))
        await records.projects.delete("p1", tenant="acme")
        await self._see(records.runs.live())


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever it is
    """Sequences as lists, so that a fake's and a store's compare."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return (type(value), [_plain(getattr(value, field.name)) for field in fields])
    return value


def _unprocessed_reads(operation: str, params: dict[str, Any], call: Any) -> Any:  # noqa: ANN401 - botocore's own
    """Read one item of each batch and leave the others."""
    if operation != "BatchGetItem":
        return call(params)
    ((name, wanted),) = params["RequestItems"].items()
    found = call({**params, "RequestItems": {name: {**wanted, "Keys": wanted["Keys"][:1]}}})
    left = wanted["Keys"][1:]
    return {**found, "UnprocessedKeys": {name: {**wanted, "Keys": left}} if left else {}}


@pytest.mark.parametrize(
    "hook",
    [
        each_once(WRITES, "InternalServerError", is_done=True),
        each_once(WRITES | READS, "ProvisionedThroughputExceededException", is_done=False),
        conflicting_once(),
        unprocessed,
        _unprocessed_reads,
        late,
    ],
    ids=["lost", "throttled", "conflicts", "unprocessed", "unread", "late"],
)
async def test_all_is_answered_as_if_nothing_had_gone_wrong(table: AppTable, hook: Hook) -> None:
    expected = await _Life(FakeRecords()).lived()
    records = await table.another()

    with intercepted(hook):
        seen = await _Life(records).lived()

    for at, (one, other) in enumerate(zip(_plain(seen), _plain(expected), strict=True)):
        assert one == other, at
    await records.close()


async def test_no_request_scans_the_table(table: AppTable) -> None:
    operations: set[str] = set()

    def hook(operation: str, params: dict[str, Any], call: Any) -> Any:  # noqa: ANN401 - botocore's own
        operations.add(operation)
        return call(params)

    with intercepted(hook):
        await _Life(table.records).lived()
        await table.records.projects.named("flask", tenant="acme", subject="ann")
        await table.records.runs.purge(WEEK)
        await table.records.idempotency.purge(WEEK)

    assert operations <= WRITES | READS


async def test_a_store_that_stays_away_is_unavailable_and_tells_no_content(
    table: AppTable,
) -> None:
    records = await table.another(budget=RetryBudget(seconds=0.01, first_s=0.001))
    await conversations(records, "c1")
    run = a_run()
    hooks = [
        throttled(WRITES | READS, 10_000),
        each_once(WRITES | READS, "ValidationException", is_done=False),
    ]

    for hook in hooks:
        with intercepted(hook), pytest.raises(StoreUnavailable) as failure:
            await records.runs.begin(
                run, question=a_question(run, PLANTED), title=PLANTED, limits=PLACES
            )
        assert PLANTED not in str(failure.value)
        assert "query" in str(failure.value).lower()
    await begin(records, run)

    assert await records.runs.live() == {("acme", "c1-1"): 0}
    await records.close()


def _is_content_free(item: dict[str, Any]) -> bool:
    return set(item) <= {"pk", "sk", "gone", "kill", "beat", "key", "turn", TTL}


def _holds(item: dict[str, Any], text: str) -> bool:
    """Whether a text is in an item, its compressed parts too."""
    if text in repr(item):
        return True
    for value in item.values():
        for inflater in (zlib.decompressobj(-15, DICTIONARY), zlib.decompressobj()):
            with contextlib.suppress(zlib.error):
                if text.encode() in inflater.decompress(value.get("B", b"")[1:]):
                    return True
    return False


@pytest.mark.parametrize("is_live", [False, True])
@pytest.mark.parametrize("of_project", [False, True])
async def test_nothing_is_left_of_what_was_deleted(
    table: AppTable, *, of_project: bool, is_live: bool
) -> None:
    records = table.records
    await conversations(records, "c1", "c2")
    await records.conversations.rename("c1", principal=ANN, title=PLANTED)
    claimed = await records.idempotency.claim(
        SCOPE, fingerprint="f", owner="me", now=NOON, expires_at=DAY
    )
    run = a_run()
    await records.runs.begin(
        run,
        question=a_question(run, PLANTED),
        title="t",
        limits=PLACES,
        idempotency=claimed.id,
    )
    large = numbered([TokenDelta(text=PLANTED + _incompressible(600_000))])
    await append(records, run, 0, large)
    body = (PLANTED + _incompressible(600_000)).encode()
    answer = StoredAnswer(status=200, body=body)
    await records.idempotency.finish(claimed.id, tenant="acme", owner="me", answer=answer)
    if not is_live:
        await end(records, run, beat=1, event_id=2, answer=an_answer(run, _incompressible(600_000)))
        await records.feedback.put(RATING)
    planted = [item for item in table.items() if _holds(item, PLANTED)]
    assert len(planted) >= 2

    if of_project:
        await records.projects.delete("p1", tenant="acme")
    else:
        await records.conversations.delete("c1", principal=ANN)

    left = table.items()
    assert not [item for item in left if _holds(item, PLANTED)]
    theirs = [item for item in left if item["pk"]["S"].startswith("T#acme#C#c1")]
    assert all(map(_is_content_free, theirs))
    assert not [item for item in left if "#I#" in item["pk"]["S"]]
    names = {item["pk"]["S"] for item in left if not _is_content_free(item)}
    others = {"T#acme#C#c2", "T#acme#M#ann", "T#acme#P#p1", "T#acme#S#ann"}
    assert names == {"LIVE", "SCHEMA"} | (set() if of_project else others)
    assert await records.runs.live() == {}


async def test_a_slow_owner_can_write_nothing_into_a_deleted_conversation(
    table: AppTable,
) -> None:
    owner, other = table.records, await table.another()
    await conversations(owner, "c1")
    run = a_run()
    await begin(owner, run)
    await append(owner, run, 0, numbered([TokenDelta(text="a")]))
    await other.conversations.delete("c1", principal=ANN)
    before = table.items()

    for text in ("b", _incompressible(600_000)):
        with pytest.raises(LeaseLost):
            await append(owner, run, 1, numbered([TokenDelta(text=text)], 2))
    with pytest.raises(RunNotFound):
        await end(owner, run, beat=1, event_id=2, answer=an_answer(run, _incompressible(600_000)))
    with pytest.raises(LeaseLost):
        await owner.runs.is_cancelled(run, beat=1)

    assert table.items() == before
    await other.close()


async def test_a_killed_owner_can_neither_keep_nor_end_nor_show(table: AppTable) -> None:
    owner, other = table.records, await table.another()
    await conversations(owner, "c1")
    run = a_run()
    await begin(owner, run)
    await append(owner, run, 0, numbered([TokenDelta(text="a")]))
    assert await end_dead(other, await kept(other, run), text="a")

    with pytest.raises(LeaseLost):
        await append(owner, run, 1, numbered([TokenDelta(text="b")], 2))
    ended = await end(owner, run, beat=1, event_id=2)

    assert ended.state is RunState.FAILED
    assert ended == await kept(other, run)
    await other.close()


async def test_a_decision_that_another_overtakes_at_any_call_is_told_of_it(table: AppTable) -> None:
    await conversations(table.records, "c1")
    paused = await pause(table.records, a_run(1))
    loop, number, overtaken = asyncio.get_running_loop(), 1, True
    while overtaken:
        number, overtaken, calls = number + 1, False, 0
        slow, fast = (replace(a_resumption(paused, number), lease_owner=o) for o in ("s", "f"))

        def hook(
            operation: str,  # noqa: ARG001
            params: dict[str, Any],
            call: Call,
            *,
            fast: Run = fast,
            before: int = number - 1,
        ) -> object:
            nonlocal calls, overtaken
            calls += 1
            if calls == before and not overtaken:
                overtaken = True
                asyncio.run_coroutine_threadsafe(resume(table.records, fast), loop).result()
            return call(params)

        with intercepted(hook):
            (outcome,) = await asyncio.gather(
                resume(table.records, slow, decision="another"), return_exceptions=True
            )

        if overtaken:
            assert isinstance(outcome, PauseResolved), (number, outcome)
            assert (outcome.run_id, outcome.state) == (fast.id, RunState.RUNNING)
            paused = await end(table.records, fast, a_pause(fast))  # and asks again
    assert number > 4  # two reads of rows, a place, the write


async def test_a_journal_is_over_when_its_time_is_and_dynamodb_removes_it_a_day_later(
    table: AppTable,
) -> None:
    records = table.records
    await conversations(records, "c1")
    over, live = a_run(1), a_run(2)
    await begin(records, over)
    await append(records, over, 0, numbered(some_events("a")))
    await end(records, over, beat=1, event_id=4)
    await begin(records, live)
    await append(records, live, 0, numbered(some_events("a")))

    table.now = WEEK.timestamp() - 0.001
    whole = await journal(records, over)
    table.now = WEEK.timestamp()

    assert len(whole) == 4
    with pytest.raises(JournalExpired):
        await records.runs.entries(over, after=0)
    assert len(await journal(records, live)) == 3
    assert len(await messages(records)) == 3
    slots = [item for item in table.items() if item["sk"]["S"].startswith("S#")]
    ends = {int(item[TTL]["N"]) for item in slots}
    assert ends == {int((WEEK + GRACE).timestamp()) + 1}


async def test_a_journal_of_which_something_was_removed_is_over(table: AppTable) -> None:
    records = table.records
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    entries = numbered(some_events("a", "b", "c"))
    await append(records, run, 0, entries[:2])
    await append(records, run, 1, entries[2:4])
    await end(records, run, beat=2, entries=entries[4:])

    table.delete("T#acme#C#c1#J#0000000000000001", "S#0000000000000001")

    with pytest.raises(JournalExpired):
        await records.runs.entries(run, after=0)
    part = await records.runs.entries(run, after=2)
    assert [entry.id for entry in part.entries] == [3, 4, 5, 6]


async def test_what_two_processes_know_of_a_run_may_differ(table: AppTable) -> None:
    one, other = table.records, await table.another()
    await conversations(one, "c1")
    run = a_run()
    await begin(one, run)
    entries = numbered(some_events("a", "b"))

    told = [
        (await append(one, run, 0, entries[:1])).beat,
        (await append(other, run, 1, entries[:2])).beat,
        (await append(one, run, 2, entries[:3])).beat,
    ]
    await other.runs.request_cancel("c1-1", principal=ANN)
    await other.runs.request_cancel("c1-1", principal=ANN)
    cancelled = await append(one, run, 3, entries)
    again = await append(one, run, 4)

    assert told == [1, 2, 3]
    assert (cancelled.beat, cancelled.cancel_requested) == (4, True)
    assert (again.beat, again.cancel_requested) == (5, True)
    assert await journal(one, run) == entries
    await other.close()


async def test_a_table_that_is_not_there_or_newer_is_refused(table: AppTable) -> None:
    table.put("SCHEMA", "A", version={"N": "1000"})

    with pytest.raises(SchemaTooNew, match="schema 1000"):
        await table.another()
    with pytest.raises(Misconfigured, match="ResourceNotFoundException"):
        await DynamoRecords.open("no-such-table", client_config=client_config(table.url))


def _incompressible(characters: int) -> str:
    dice = random.Random(characters)  # noqa: S311 - no secret
    return "".join(chr(dice.randrange(0x21, 0x2FFF)) for _ in range(characters // 3))
