"""The places of a process are given in turn."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from ibid.runs.places import Place, Places


async def test_a_freed_place_goes_to_the_first_in_line() -> None:
    places = Places(2)
    first, second, third, fourth = [places.claim() for _ in range(4)]

    first.free()
    first.free()

    assert [place.is_taken for place in (second, third, fourth)] == [True, True, False]
    second.free()
    assert fourth.is_taken


async def test_who_leaves_the_line_is_passed_over() -> None:
    places = Places(1)
    first, second, third = [places.claim() for _ in range(3)]
    waiting = asyncio.create_task(second.taken())
    await asyncio.sleep(0)

    waiting.cancel()
    second.free()
    first.free()

    assert (second.is_taken, third.is_taken) == (False, True)
    await third.taken()


@given(st.lists(st.integers(0, 5)))
def test_the_limit_is_never_passed_and_nobody_waits_who_might_go(steps: list[int]) -> None:
    places = Places(3)
    held: list[Place] = []
    for freed in steps:
        held.append(places.claim())
        if freed < len(held):
            held.pop(freed).free()

        taken = [place.is_taken for place in held]
        assert taken == [True] * min(len(held), 3) + [False] * max(len(held) - 3, 0)
