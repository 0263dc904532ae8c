"""What every IdempotencyStore does."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from ibid.domain.errors import LeaseLost
from ibid.ports.idempotency import KeyRecord, KeyScope, StoredAnswer
from tests.contract.odd import ODD
from tests.contract.run_steps import begin, conversations, end, resume
from tests.fakes.records import Records
from tests.fakes.samples import ANN, NOON, a_conversation, a_pause, a_project, a_resumption, a_run

SCOPE = KeyScope(tenant="acme", subject="ann", method="POST", path="/ask", key="k1")
DAY = NOON + timedelta(hours=24)
ANSWER = StoredAnswer(
    status=201,
    headers={"location": "/runs/c1-1", "x-odd": "é\u2028"},
    body=b'{"a": "\xc3\xa9"}\x00\xff',
)
STREAM = StoredAnswer(status=200, headers={}, run_id="c1-1")


async def _claim(
    records: Records,
    scope: KeyScope = SCOPE,
    *,
    owner: str = "me",
    fingerprint: str = "f1",
    now: datetime = NOON,
) -> KeyRecord:
    return await records.idempotency.claim(
        scope, fingerprint=fingerprint, owner=owner, now=now, expires_at=now + timedelta(hours=24)
    )


async def _get(records: Records, *, tenant: str = "acme", now: datetime = NOON) -> KeyRecord | None:
    return await records.idempotency.get(SCOPE.record_id, tenant=tenant, now=now)


async def test_the_first_claim_of_a_key_gets_it(records: Records) -> None:
    claimed = await _claim(records)

    assert claimed == KeyRecord(
        id=SCOPE.record_id, fingerprint="f1", owner="me", beat=0, plan=None, answer=None
    )
    assert await _get(records) == claimed


async def test_a_second_claim_is_shown_the_first(records: Records) -> None:
    first = await _claim(records)

    second = await _claim(records, owner="you", fingerprint="f2")

    assert second == first


async def test_of_many_claims_at_once_one_gets_it(records: Records) -> None:
    claims = await asyncio.gather(
        *(_claim(records, owner=f"owner {n}", fingerprint=f"f{n}") for n in range(30))
    )

    assert len(set(map(repr, claims))) == 1
    assert claims[0] == await _get(records)


@pytest.mark.parametrize(
    "other",
    [
        replace(SCOPE, subject="bob"),
        replace(SCOPE, method="PUT"),
        replace(SCOPE, path="/ask/"),
        replace(SCOPE, key="K1"),
        replace(SCOPE, tenant="rival"),
        replace(SCOPE, path="/as", key="kk1"),
    ],
)
async def test_another_scope_is_another_record(records: Records, other: KeyScope) -> None:
    await _claim(records)

    record = await _claim(records, other, owner="you", fingerprint="f2")

    assert (record.owner, record.fingerprint) == ("you", "f2")
    assert other.record_id != SCOPE.record_id
    found = await _get(records)
    assert found is not None
    assert found.owner == "me"


@pytest.mark.parametrize("odd", ODD)
async def test_any_text_serves_in_a_scope_and_an_answer(records: Records, odd: str) -> None:
    scope = KeyScope(tenant=odd, subject=odd, method="POST", path=odd, key="k")
    record = await _claim(records, scope, owner=odd, fingerprint=odd)
    answer = StoredAnswer(status=200, headers={"x": odd}, body=odd.encode(), run_id=odd)
    await records.idempotency.beat(record.id, tenant=odd, owner=odd, plan=odd)

    await records.idempotency.finish(record.id, tenant=odd, owner=odd, answer=answer)

    found = await records.idempotency.get(record.id, tenant=odd, now=NOON)
    assert found == replace(record, beat=1, plan=odd, answer=answer)


@pytest.mark.parametrize("answer", [ANSWER, STREAM, StoredAnswer(status=204)])
async def test_an_answer_is_kept_as_it_was(records: Records, answer: StoredAnswer) -> None:
    record = await _claim(records)

    await records.idempotency.finish(record.id, tenant="acme", owner="me", answer=answer)
    await records.idempotency.finish(record.id, tenant="acme", owner="me", answer=answer)

    assert (
        await _get(records) == await _claim(records, owner="you") == replace(record, answer=answer)
    )


async def test_only_its_owner_writes_a_record(records: Records) -> None:
    record = await _claim(records)
    keys = records.idempotency

    for record_id, tenant, owner in [
        (record.id, "acme", "you"),
        (record.id, "rival", "me"),
        ("another", "acme", "me"),
    ]:
        with pytest.raises(LeaseLost):
            await keys.beat(record_id, tenant=tenant, owner=owner)
        with pytest.raises(LeaseLost):
            await keys.finish(record_id, tenant=tenant, owner=owner, answer=ANSWER)
        await keys.release(record_id, tenant=tenant, owner=owner)

    assert await _get(records) == record


async def test_a_beat_raises_the_counter_and_keeps_the_plan(records: Records) -> None:
    record = await _claim(records)
    keys = records.idempotency

    await keys.beat(record.id, tenant="acme", owner="me")
    await keys.beat(record.id, tenant="acme", owner="me", plan="c1-1")
    await keys.beat(record.id, tenant="acme", owner="me")

    assert await _get(records) == replace(record, beat=3, plan="c1-1")


async def test_a_record_that_did_not_move_is_taken_over_once(records: Records) -> None:
    record = await _claim(records)
    await records.idempotency.beat(record.id, tenant="acme", owner="me", plan="c1-1")
    seen = await _get(records)
    assert seen is not None

    takes = await asyncio.gather(
        *(records.idempotency.take_over(seen, tenant="acme", owner=f"owner {n}") for n in range(10))
    )

    assert takes.count(True) == 1
    found = await _get(records)
    assert found is not None
    assert (found.owner, found.plan) == (f"owner {takes.index(True)}", "c1-1")
    with pytest.raises(LeaseLost):
        await records.idempotency.beat(record.id, tenant="acme", owner="me")
    with pytest.raises(LeaseLost):
        await records.idempotency.finish(record.id, tenant="acme", owner="me", answer=ANSWER)


async def test_a_record_that_moved_or_has_its_answer_is_not_taken_over(records: Records) -> None:
    record = await _claim(records)
    keys = records.idempotency
    await keys.beat(record.id, tenant="acme", owner="me")

    assert not await keys.take_over(record, tenant="acme", owner="you")
    await keys.finish(record.id, tenant="acme", owner="me", answer=ANSWER)
    seen = await _get(records)
    assert seen is not None
    assert not await keys.take_over(seen, tenant="acme", owner="you")
    assert not await keys.take_over(seen, tenant="rival", owner="you")
    assert not await keys.take_over(replace(seen, id="another"), tenant="acme", owner="you")

    assert await _get(records) == seen


async def test_a_released_key_can_be_claimed_again(records: Records) -> None:
    record = await _claim(records)
    await records.idempotency.release(record.id, tenant="acme", owner="me")
    await records.idempotency.release(record.id, tenant="acme", owner="me")

    assert await _get(records) is None
    again = await _claim(records, owner="you", fingerprint="f2")

    assert (again.owner, again.fingerprint) == ("you", "f2")


async def test_a_key_with_its_answer_is_not_released(records: Records) -> None:
    record = await _claim(records)
    await records.idempotency.finish(record.id, tenant="acme", owner="me", answer=ANSWER)

    await records.idempotency.release(record.id, tenant="acme", owner="me")

    assert await _get(records) == replace(record, answer=ANSWER)


async def test_a_record_is_not_found_after_it_expires(records: Records) -> None:
    record = await _claim(records)
    await records.idempotency.finish(record.id, tenant="acme", owner="me", answer=ANSWER)
    instant = timedelta(microseconds=1)

    assert await _get(records, now=DAY - timedelta(seconds=1)) == replace(record, answer=ANSWER)
    assert await _get(records, now=DAY + instant) is None
    again = await _claim(records, owner="you", fingerprint="f2", now=DAY + instant)

    assert again == KeyRecord(
        id=record.id, fingerprint="f2", owner="you", beat=0, plan=None, answer=None
    )
    with pytest.raises(LeaseLost):
        await records.idempotency.beat(record.id, tenant="acme", owner="me")


@pytest.mark.parametrize("records", ["fake", "embedded"], indirect=True)  # others do it themselves
async def test_a_purge_removes_what_has_expired(records: Records) -> None:
    await _claim(records)
    await _claim(records, replace(SCOPE, tenant="rival"))
    later = await _claim(records, replace(SCOPE, key="k2"), now=NOON + timedelta(hours=1))

    await records.idempotency.purge(DAY + timedelta(seconds=1))

    assert await _get(records) is None
    found = await records.idempotency.get(later.id, tenant="acme", now=NOON)
    assert found == later
    assert await records.idempotency.purge(NOON) == 0


async def test_a_deleted_record_is_gone(records: Records) -> None:
    record = await _claim(records)
    await records.idempotency.delete(record.id, tenant="rival")
    assert await _get(records) == record

    await records.idempotency.delete(record.id, tenant="acme")
    await records.idempotency.delete(record.id, tenant="acme")

    assert await _get(records) is None


async def _answered(records: Records, key: str) -> KeyRecord:
    record = await _claim(records, replace(SCOPE, key=key))
    await records.idempotency.finish(record.id, tenant="acme", owner="me", answer=ANSWER)
    return record


async def test_a_deleted_conversation_takes_the_records_that_it_and_its_runs_answered(
    records: Records,
) -> None:
    await records.projects.create(a_project())
    of = {key: await _answered(records, key) for key in ("made", "begun", "resumed", "other")}
    await records.conversations.create(a_conversation(), idempotency=of["made"].id)
    await records.conversations.create(a_conversation("c2"))
    await begin(records, a_run(), idempotency=of["begun"].id)
    paused = await end(records, a_run(), a_pause(a_run()))
    await resume(records, a_resumption(paused, 2), idempotency=of["resumed"].id)
    await begin(records, a_run(conversation_id="c2"), idempotency=of["other"].id)

    await records.conversations.delete("c1", principal=ANN)

    left = [
        key
        for key, record in of.items()
        if await records.idempotency.get(record.id, tenant="acme", now=NOON) is not None
    ]
    assert left == ["other"]


async def test_a_deleted_project_takes_the_records_of_its_conversations(records: Records) -> None:
    await conversations(records, "c1")
    record = await _answered(records, "begun")
    await begin(records, a_run(), idempotency=record.id)

    await records.projects.delete("p1", tenant="acme")

    assert await records.idempotency.get(record.id, tenant="acme", now=NOON) is None


async def test_a_claim_whose_conversation_was_deleted_is_lost(records: Records) -> None:
    await conversations(records, "c1")
    record = await _claim(records)
    await begin(records, a_run(), idempotency=record.id)

    await records.conversations.delete("c1", principal=ANN)

    with pytest.raises(LeaseLost):
        await records.idempotency.finish(record.id, tenant="acme", owner="me", answer=ANSWER)
    assert await _get(records) is None


async def test_a_run_may_name_a_record_that_is_not_there(records: Records) -> None:
    await conversations(records, "c1")

    await begin(records, a_run(), idempotency="gone")
    await end(records, a_run())

    await records.conversations.delete("c1", principal=ANN)
