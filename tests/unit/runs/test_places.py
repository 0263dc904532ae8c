"""Places are counted a process, a tenant and a subject, and given in turn."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from ibid.domain.principals import Principal
from ibid.runs.limits import RunLimits
from ibid.runs.places import Place, Places


def _principal(name: str) -> Principal:
    return Principal(tenant=name[0], subject=name[1])


async def test_each_limit_makes_wait() -> None:
    places = Places(RunLimits(process=4, tenant=3, subject=2))

    taken = [places.claim(_principal(name)).is_taken for name in ("aa", "aa", "aa", "ab", "ac")]
    others = [places.claim(_principal(name)).is_taken for name in ("ba", "ca")]

    assert taken == [True, True, False, True, False]
    assert others == [True, False]


async def test_a_freed_place_goes_to_the_first_that_may_go() -> None:
    places = Places(RunLimits(process=2, tenant=1, subject=1))
    first, other = places.claim(_principal("aa")), places.claim(_principal("ba"))
    waits = [places.claim(_principal(name)) for name in ("bb", "ca", "ab")]

    first.free()
    first.free()

    assert [place.is_taken for place in waits] == [False, True, False]
    other.free()
    assert [place.is_taken for place in waits] == [True, True, False]


async def test_who_leaves_the_line_is_passed_over() -> None:
    places = Places(RunLimits(process=1, tenant=1, subject=1))
    first = places.claim(_principal("aa"))
    second, third = places.claim(_principal("aa")), places.claim(_principal("aa"))
    waiting = asyncio.create_task(second.taken())
    await asyncio.sleep(0)

    waiting.cancel()
    second.free()
    first.free()

    assert (second.is_taken, third.is_taken) == (False, True)
    await third.taken()


@given(st.lists(st.tuples(st.sampled_from(["aa", "ab", "ba", "bb"]), st.integers(0, 5))))
def test_no_limit_is_passed_and_nobody_waits_who_might_go(steps: list[tuple[str, int]]) -> None:
    places = Places(RunLimits(process=3, tenant=2, subject=1))
    held: list[Place] = []
    for name, freed in steps:
        held.append(places.claim(_principal(name)))
        if freed < len(held):
            held.pop(freed).free()

        taken = [place.counted for place in held if place.is_taken]
        for place in held:
            room = [
                sum(counted in other for other in taken) < most
                for counted, most in zip(place.counted, (3, 2, 1), strict=True)
            ]
            assert place.is_taken or not all(room)
        assert len(taken) <= 3
        assert all(sum((name,) in other for other in taken) <= 2 for name in "ab")
        assert len({place[2] for place in taken}) == len(taken)
