"""A task's writes to attributes and back."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters.dynamodb.packs import (
    Slot,
    attributes_of,
    folded,
    in_order,
    part_names,
    tasks_of,
    update_of,
)

SLOTS = st.lists(
    st.builds(Slot, st.sampled_from(["a", "b", "__resume__", "__error__"]), st.text(), st.binary()),
    min_size=1,
    max_size=40,
)


def pack(task_id: str, calls: Sequence[Sequence[Slot]], *, token: int = 0) -> dict[str, Any]:
    """Return the item that these calls would leave."""
    item: dict[str, Any] = {"task_id": {"S": task_id}, "task_path": {"S": ""}}
    if token:
        item["token"] = {"N": str(token)}
    for call in calls:
        for name, data in attributes_of(folded(call)).items():
            if name.startswith("r"):
                item.setdefault("n0", {"N": name[1:]})
                item.setdefault(name, {"B": data})
            else:
                item[name] = {"B": data}
    return item


def read(*items: dict[str, Any]) -> list[tuple[str, Slot]]:
    parts = {
        at: {name: item[name]["B"] for name in part_names(item)} for at, item in enumerate(items)
    }
    return in_order(tasks_of(items, parts))


@given(SLOTS)
def test_a_call_comes_back_with_special_channels_folded(slots: list[Slot]) -> None:
    wanted = [slot for _, slot in sorted(folded(slots).items())]

    assert [slot for _, slot in read(pack("t", [slots]))] == wanted


@given(SLOTS)
def test_a_call_made_twice_is_made_once(slots: list[Slot]) -> None:
    assert read(pack("t", [slots, slots])) == read(pack("t", [slots]))


@given(SLOTS, SLOTS)
def test_what_a_later_call_adds_does_not_move_what_is_there(
    first: list[Slot], second: list[Slot]
) -> None:
    there = {at: slot for at, slot in folded(first).items() if at >= 0}
    later = folded(second)
    wanted = {**{at: slot for at, slot in folded(first).items() if at < 0}, **later, **there}

    found = [slot for _, slot in read(pack("t", [first, second]))]

    if not _same_count(first, second):  # a list as long as a stored one is that one
        assert found == [slot for _, slot in sorted(wanted.items())]


def _same_count(first: list[Slot], second: list[Slot]) -> bool:
    counts = [sum(at >= 0 for at in folded(slots)) for slots in (first, second)]
    return counts[0] == counts[1]


def test_a_later_tokens_special_writes_replace_an_earlier_ones() -> None:
    old = pack("t", [[Slot("c", "k", b"old"), Slot("__resume__", "k", b"old")]], token=1)
    new = pack("t", [[Slot("c", "k", b"new"), Slot("__resume__", "k", b"new")]], token=2)

    assert [slot.value for _, slot in read(new, old)] == [b"new", b"old"]


def test_single_writes_of_the_package_are_sorted_by_number() -> None:
    items = [
        {
            "task_id_idx": {"S": f"task:::x:::{number}"},
            "channel": {"S": "c"},
            "type": {"S": "k"},
            "value": {"B": bytes([number])},
        }
        for number in (10, 2, 0, 11)
    ]

    assert read(*items) == [
        ("task:::x", Slot("c", "k", bytes([number]))) for number in (0, 2, 10, 11)
    ]


def test_a_regular_attribute_stays_and_a_special_one_is_set() -> None:
    update = update_of({"r2": {"B": b""}, "s4": {"B": b""}}, {"task_id": {"S": "t"}})

    assert update["UpdateExpression"] == (
        "SET #0=if_not_exists(#0,:0),#first=if_not_exists(#first,:first),#1=:1,#2=:2"
    )
    assert update["ConditionExpression"] == "attribute_not_exists(#sealed)"
