"""Keys: held by one request, waited for by others, taken over from the dead only."""

import asyncio
from collections.abc import Callable

import pytest

from ibid.domain.errors import KeyInUse, KeyReused, LeaseLost, StoreUnavailable
from ibid.ports.idempotency import KeyScope, StoredAnswer
from ibid.web.claimant import Answered, Claimant, KeyLimits
from ibid.web.claims import Claim, RunPlan
from tests.fakes.clock import FakeClock
from tests.fakes.key_records import FakeIdempotency
from tests.fakes.rows import Rows

PLACE = KeyScope(tenant="acme", subject="ann", method="POST", path="/projects", key="k")
LIMITS = KeyLimits(beat_s=0.001, term_s=15.0, wait_s=60.0, poll_s=0.0)
ANSWER = StoredAnswer(status=201, body=b"{}")


class Bench:
    """A store of keys, and the requests that want one of them."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.keys = FakeIdempotency(Rows())
        self.claimant = Claimant(self.keys, self.clock, LIMITS)

    async def claim(self, fingerprint: str = "f") -> Claim | Answered:
        return await self.claimant.claim(PLACE, fingerprint=fingerprint)

    async def held(self) -> Claim:
        claim = await self.claim()
        assert isinstance(claim, Claim)
        return claim

    async def second(self, first_does: Callable[[], None]) -> Claim | Answered:
        """Let a second request wait, do something, and return what it got."""
        waiting = asyncio.create_task(self.claim())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not waiting.done()
        first_does()
        async with asyncio.timeout(5):
            return await waiting


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_second_request_gets_the_firsts_answer(bench: Bench) -> None:
    first = await bench.held()
    answering: list[asyncio.Task[None]] = []

    second = await bench.second(lambda: answering.append(asyncio.create_task(first.answer(ANSWER))))

    await asyncio.gather(*answering)
    assert isinstance(second, Answered)
    assert second.answer == ANSWER


async def test_another_request_with_the_key_is_refused(bench: Bench) -> None:
    await bench.held()

    with pytest.raises(KeyReused):
        await bench.claim("another")


async def test_a_key_that_was_let_go_is_claimed_by_who_waits(bench: Bench) -> None:
    first = await bench.held()
    letting: list[asyncio.Task[None]] = []

    second = await bench.second(
        lambda: letting.append(asyncio.create_task(first.let_go(has_failed=False)))
    )

    await asyncio.gather(*letting)
    assert isinstance(second, Claim)
    assert second.planned is None


async def test_a_dead_request_is_taken_over_with_its_plan_after_a_term(bench: Bench) -> None:
    first = await bench.held()
    await first.plan("p1")

    second = await bench.second(lambda: bench.clock.move(LIMITS.term_s))

    assert isinstance(second, Claim)
    assert second.planned == "p1"
    with pytest.raises(KeyInUse):
        await first.plan("p2")


async def test_a_living_request_is_waited_for_and_never_taken_over(bench: Bench) -> None:
    first = await bench.held()
    waiting = asyncio.create_task(bench.claim())

    async with first.kept_alive(LIMITS.beat_s):
        for _ in range(6):
            record = await bench.keys.get(first.record_id, tenant="acme", now=bench.clock.now())
            assert record is not None
            beat = record.beat
            while record is not None and record.beat == beat:
                await asyncio.sleep(0.001)
                record = await bench.keys.get(first.record_id, tenant="acme", now=bench.clock.now())
            bench.clock.move(LIMITS.term_s - 1)
        with pytest.raises(KeyInUse):
            await waiting


async def test_a_failed_request_leaves_its_plan_to_the_next_at_once(bench: Bench) -> None:
    first = await bench.held()
    await first.plan("p1")
    await first.let_go(has_failed=True)

    second = await bench.held()

    assert second.planned == "p1"


async def test_a_failed_request_leaves_no_planned_run(bench: Bench) -> None:
    first = await bench.held()
    await first.plan(str(RunPlan("c1-1", "m")))
    await first.let_go(has_failed=True)

    second = await bench.held()

    assert second.planned is None


async def test_a_key_ends(bench: Bench) -> None:
    first = await bench.held()
    await first.answer(ANSWER)

    bench.clock.move(LIMITS.keep_s)

    assert isinstance(await bench.claim("another"), Claim)


async def test_an_answer_that_can_not_be_kept_is_no_failure(bench: Bench) -> None:
    first = await bench.held()

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("the store gave no answer")

    bench.keys.finish = away  # type: ignore[method-assign] # a fault in one call

    await first.answer(ANSWER)

    assert first.is_answered


async def test_a_key_that_can_not_be_let_go_is_found_dead_later(bench: Bench) -> None:
    first = await bench.held()

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("the store gave no answer")

    bench.keys.release = away  # type: ignore[method-assign] # a fault in one call

    await first.let_go(has_failed=False)

    second = await bench.second(lambda: bench.clock.move(LIMITS.term_s))
    assert isinstance(second, Claim)


async def test_who_lost_its_key_lets_nobody_else_s_go(bench: Bench) -> None:
    first = await bench.held()
    await first.plan("p1")
    second = await bench.second(lambda: bench.clock.move(LIMITS.term_s))
    assert isinstance(second, Claim)

    await first.let_go(has_failed=True)
    await first.let_go(has_failed=False)

    await second.plan("p2")


@pytest.mark.parametrize("fault", [StoreUnavailable("away"), LeaseLost("gone")])
async def test_a_beat_that_fails_fails_nothing_else(bench: Bench, fault: Exception) -> None:
    first, beaten = await bench.held(), asyncio.Event()

    async def away(*_: object, **__: object) -> None:
        beaten.set()
        raise fault

    bench.keys.beat = away  # type: ignore[method-assign] # a fault in one call
    async with first.kept_alive(0.0):
        await beaten.wait()

    await first.answer(ANSWER)

    second = await bench.claim()
    assert isinstance(second, Answered)


async def test_an_answered_key_beats_no_more(bench: Bench) -> None:
    first = await bench.held()
    await first.answer(ANSWER)

    async def beat(*_: object, **__: object) -> None:
        pytest.fail("an answered key was beaten")

    bench.keys.beat = beat  # type: ignore[method-assign] # none is to come
    async with first.kept_alive(0.0):
        for _ in range(10):
            await asyncio.sleep(0)


async def test_many_at_once_have_one_holder(bench: Bench) -> None:
    claiming = [asyncio.create_task(bench.claim()) for _ in range(8)]
    while not any(task.done() for task in claiming):  # noqa: ASYNC110 - any of them may be the one
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    (holder,) = [task.result() for task in claiming if task.done()]
    assert isinstance(holder, Claim)

    await holder.answer(ANSWER)

    got = await asyncio.gather(*claiming)
    assert sum(isinstance(one, Claim) for one in got) == 1
    assert [one.answer for one in got if isinstance(one, Answered)] == [ANSWER] * 7


def test_a_run_s_plan_is_read_as_it_was_written() -> None:
    plan = RunPlan("c1-7", "5f0c")

    assert RunPlan.read(str(plan)) == plan
    assert RunPlan.read("5f0c") is None
    assert RunPlan.read(None) is None
