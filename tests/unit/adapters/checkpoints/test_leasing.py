"""The block form of a lease, whichever saver gives it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ibid.adapters.checkpoints.leasing import leased
from ibid.domain.errors import LeaseLost, StoreUnavailable, ThreadLeased
from ibid.domain.leases import Lease

LEASE = Lease(thread_id="t", owner="me", token=1)


async def nothing() -> None:
    return


class Calls:
    """Gives one lease, and notes what it is asked for; each call first does as it is told."""

    def __init__(self, **first: Callable[[], Awaitable[None]]) -> None:
        self.made: list[str] = []
        self.began = {call: asyncio.Event() for call in ("take", "beat", "release")}
        self._first = first

    async def take_lease(self, thread_id: str, owner: str) -> Lease:
        assert (thread_id, owner) == ("t", "me")
        await self._noted("take")
        return LEASE

    async def beat(self, lease: Lease) -> None:
        assert lease is LEASE
        await self._noted("beat")

    async def release(self, lease: Lease) -> None:
        assert lease is LEASE
        await self._noted("release")

    async def _noted(self, call: str) -> None:
        self.made.append(call)
        self.began[call].set()
        await self._first.get(call, nothing)()


def raising(*errors: Exception) -> Callable[[], Awaitable[None]]:
    left = list(errors)

    async def fail() -> None:
        if left:
            raise left.pop(0)

    return fail


async def test_a_block_takes_beats_and_gives_back() -> None:
    calls = Calls()

    async with leased(calls, "t", "me", term_s=0.003) as lease:
        await calls.began["beat"].wait()

    assert lease is LEASE
    assert (calls.made[0], calls.made[-1]) == ("take", "release")
    assert set(calls.made[1:-1]) == {"beat"}


async def test_a_beat_that_does_not_get_through_is_followed_by_another() -> None:
    calls = Calls(beat=raising(StoreUnavailable("busy")))

    async with leased(calls, "t", "me", term_s=0.003), asyncio.timeout(30):
        await calls.began["beat"].wait()
        calls.began["beat"].clear()
        await calls.began["beat"].wait()

    assert calls.made[-1] == "release"


async def test_a_lost_lease_beats_no_more_and_the_end_of_the_block_says_so() -> None:
    calls = Calls(beat=raising(LeaseLost("over")), release=raising(LeaseLost("over")))

    async def block() -> None:
        async with leased(calls, "t", "me", term_s=0.003):
            await calls.began["beat"].wait()
            await asyncio.sleep(0.01)

    with pytest.raises(LeaseLost):
        await block()

    assert calls.made == ["take", "beat", "release"]


async def test_a_block_that_fails_gives_back_and_its_own_error_is_told() -> None:
    calls = Calls()

    with pytest.raises(ZeroDivisionError):
        async with leased(calls, "t", "me", term_s=60):
            raise ZeroDivisionError

    assert calls.made == ["take", "release"]


async def test_a_refused_lease_is_not_given_back() -> None:
    calls = Calls(take=raising(ThreadLeased("held", thread_id="t")))

    with pytest.raises(ThreadLeased):
        async with leased(calls, "t", "me", term_s=60):
            pytest.fail("nobody may come here")

    assert calls.made == ["take"]


async def cancelled_in(calls: Calls, go_on: asyncio.Event, call: str) -> None:
    """Cancel a block while `call` is under way, or in the block itself; then let the call end."""
    entered = asyncio.Event()

    async def block() -> None:
        async with leased(calls, "t", "me", term_s=0.003 if call == "beat" else 60):
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(block())
    await (entered if call == "block" else calls.began[call]).wait()
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("call", ["take", "beat", "block"])
async def test_a_cancelled_block_leaves_no_lease_behind(call: str) -> None:
    go_on = asyncio.Event()

    async def wait() -> None:
        await go_on.wait()

    calls = Calls(**{call: wait})

    await cancelled_in(calls, go_on, call)

    assert calls.made[-1] == "release"


async def test_a_cancelled_taking_that_fails_is_a_cancellation() -> None:
    go_on = asyncio.Event()

    async def refuse() -> None:
        await go_on.wait()
        raise ThreadLeased("held", thread_id="t")

    calls = Calls(take=refuse)

    await cancelled_in(calls, go_on, "take")

    assert calls.made == ["take"]


async def test_a_cancellation_while_the_last_beat_ends_is_not_swallowed() -> None:
    ended = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await ended.wait()  # a beat that a cancellation doesn't end
            raise

    calls, beating = Calls(beat=slow), asyncio.Event()

    async def block() -> None:
        async with leased(calls, "t", "me", term_s=0.003):
            await calls.began["beat"].wait()
            beating.set()

    task = asyncio.create_task(block())
    await beating.wait()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    ended.set()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert calls.made[-1] == "release"
