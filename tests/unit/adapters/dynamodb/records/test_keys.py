"""Keys hold any text, tell all texts apart, fit DynamoDB, and sort as what they stand for."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters.dynamodb.records import keys

ANY = st.text(st.characters(), max_size=300)  # halves of surrogate pairs too
LONG = ANY | st.integers(100, 3_000).map(lambda length: "é#%" * length)
NUMBERS = st.integers(0, 10**16 - 1)
MOMENTS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)  # all that a datetime is


@given(one=LONG, other=LONG)
def test_two_texts_make_two_parts_and_no_part_a_separator(one: str, other: str) -> None:
    assert (keys.part(one) == keys.part(other)) == (one == other)
    assert "#" not in keys.part(one)


@given(tenant=LONG, name=LONG, number=NUMBERS, moment=MOMENTS)
def test_all_keys_fit_and_can_be_sent(tenant: str, name: str, number: int, moment: int) -> None:
    made = [
        keys.project(tenant, name),
        keys.job(tenant, name),
        keys.live_job(tenant, name),
        keys.conversation(tenant, name),
        keys.run(tenant, name, number),
        keys.rating(tenant, name, number, tenant),
        keys.idempotency(tenant, name),
        keys.live_runs(tenant),
        (keys.member(tenant, name), keys.dated(keys.PROJECTS, moment, name)),
        (keys.asker(tenant, name), keys.project_conversation(name)),
        (keys.journal(tenant, name, number), keys.slot(number)),
    ]

    for partition, place in made:
        assert 0 < len(partition.encode()) <= 2_048
        assert 0 < len(place.encode()) <= 1_024


@given(one=st.tuples(ANY, ANY), other=st.tuples(ANY, ANY))
def test_no_two_tenants_or_things_share_a_partition(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    makers = [
        lambda tenant, name: keys.project(tenant, name)[0],
        lambda tenant, name: keys.job(tenant, name)[0],
        lambda tenant, name: keys.conversation(tenant, name)[0],
        lambda tenant, name: keys.journal(tenant, name, 1),
        lambda tenant, name: keys.idempotency(tenant, name)[0],
        keys.member,
        keys.asker,
    ]

    partitions = {maker(*place) for maker in makers for place in (one, other)}

    assert len(partitions) == len(makers) * len({one, other})


@given(numbers=st.lists(NUMBERS, min_size=2))
def test_numbers_sort_as_numbers(numbers: list[int]) -> None:
    for one, other in pairwise(sorted(numbers)):
        assert keys.slot(one) <= keys.slot(other)
        assert keys.run("t", "c", one) <= keys.run("t", "c", other)


@given(places=st.lists(st.tuples(MOMENTS, st.text(st.characters(codec="utf-8"), max_size=99))))
def test_dated_places_sort_by_time_and_then_by_the_bytes_of_the_name(
    places: list[tuple[int, str]],
) -> None:
    made = {place: keys.dated("P#", *place) for place in places}

    by_key = sorted(made, key=lambda place: made[place].encode())

    assert by_key == sorted(made, key=lambda place: (place[0], place[1].encode()))


def test_a_conversation_sorts_above_its_runs_and_they_above_its_ratings() -> None:
    partition, facts = keys.conversation("t", "c")
    run = keys.run("t", "c", 10**16 - 1)
    rating = keys.rating("t", "c", 10**16 - 1, "\U0010ffff")

    assert {partition} == {run[0], rating[0]}
    assert facts > run[1] > rating[1]
