"""A task's writes as one item, and the list of pending writes that such items make.

A call's regular writes are one attribute, `r<how many>`: the first call's stays, and a longer one
adds what the first lacks. A write to a special channel is an attribute of its own and gets
replaced. So a call is one UpdateItem, whatever it holds, and repeats without harm.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ormsgpack
from langgraph.checkpoint.base import WRITES_IDX_MAP, writes_sort_key

from ibid.adapters.checkpoints.serde import expand, squeeze
from ibid.adapters.dynamodb.fence import token_of
from ibid.adapters.dynamodb.keys import SEPARATOR

PARTITION = "thread_id_checkpoint_id_checkpoint_ns"
RANGE = "task_id_idx"

_FIRST = "n0"
_REGULAR, _SPECIAL = "r", "s"
_PLAIN, _SMALL = b"\x00", b"\x01"


@dataclass(frozen=True, slots=True)
class Slot:
    """One write: its channel, and its value as the serializer made it."""

    channel: str
    kind: str
    value: bytes


Slots = dict[int, Slot]  # by index; below 0 for special channels


def folded(slots: Iterable[Slot]) -> Slots:
    """Number a call's writes; of two to one special channel the last wins."""
    return {WRITES_IDX_MAP.get(slot.channel, at): slot for at, slot in enumerate(slots)}


def attributes_of(slots: Slots) -> dict[str, bytes]:
    """Return the attributes of a call: at most one for all regular writes, one a special one."""
    regular = {at: slot for at, slot in slots.items() if at >= 0}
    attributes = {f"{_SPECIAL}{-at}": _encode({at: slot}) for at, slot in slots.items() if at < 0}
    if regular:
        attributes[f"{_REGULAR}{len(regular)}"] = _encode(regular)
    return attributes


def update_of(
    attributes: Mapping[str, Mapping[str, Any]], always: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of the UpdateItem that stores a call, unless the item is sealed.

    Args:
        attributes: Values by the names that `attributes_of` gave.
        always: More attributes, set as they are.
    """
    names = {"#sealed": "sealed"}
    values: dict[str, Any] = {}
    sets = []
    for at, (name, value) in enumerate([*attributes.items(), *always.items()]):
        names[f"#{at}"], values[f":{at}"] = name, value
        stays = name.startswith(_REGULAR) and name in attributes
        sets.append(f"#{at}=if_not_exists(#{at},:{at})" if stays else f"#{at}=:{at}")
        if stays:
            names["#first"], values[":first"] = _FIRST, {"N": name.removeprefix(_REGULAR)}
            sets.append("#first=if_not_exists(#first,:first)")
    return {
        "UpdateExpression": "SET " + ",".join(sets),
        "ConditionExpression": "attribute_not_exists(#sealed)",
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }


@dataclass(slots=True)
class Task:
    """What is stored of one task, whoever wrote it."""

    task_id: str
    path: str = ""
    slots: Slots = field(default_factory=dict)

    def add(self, slots: Slots) -> None:
        """Add later slots: regular ones that are there stay, special ones are replaced."""
        for at, slot in slots.items():
            if at < 0 or at not in self.slots:
                self.slots[at] = slot


def tasks_of(
    items: Sequence[Mapping[str, Any]], parts: Mapping[int, Mapping[str, bytes]]
) -> list[Task]:
    """Put a checkpoint's items together, in no order.

    Args:
        items: Packs, and single writes of version 0.1.0.
        parts: The loaded bytes of a pack's attributes, by the pack's position.
    """
    tasks: dict[str, Task] = {}
    order = sorted(range(len(items)), key=lambda at: token_of(items[at]))
    for at in order:
        item = items[at]
        if "channel" in item:
            task_id, slots = _old_write(item)
            tasks.setdefault(task_id, Task(task_id)).add(slots)
            continue
        task_id = item["task_id"]["S"]
        task = tasks.setdefault(task_id, Task(task_id))
        task.path = item["task_path"]["S"]
        for name in _in_order(item, parts[at]):
            task.add(_decode(parts[at][name]))
    return list(tasks.values())


def part_names(item: Mapping[str, Any]) -> list[str]:
    """Return the names of a pack's attributes that hold writes; none for an old single write."""
    if "channel" in item:
        return []
    return [name for name in item if name[0] in {_REGULAR, _SPECIAL} and name[1:].isdigit()]


def in_order(tasks: Iterable[Task]) -> list[tuple[str, Slot]]:
    """Return all writes with their task's id, in LangGraph's order."""
    keyed = [
        (writes_sort_key(task.path, task.task_id, at), task.task_id, slot)
        for task in tasks
        for at, slot in task.slots.items()
    ]
    keyed.sort(key=lambda one: one[0])
    return [(task_id, slot) for _, task_id, slot in keyed]


def _in_order(item: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    first = int(item[_FIRST]["N"]) if _FIRST in item else 0

    def place(name: str) -> tuple[bool, bool, int]:
        count = int(name[1:])
        return name[0] == _SPECIAL, count != first, count

    return sorted(names, key=place)


def _old_write(item: Mapping[str, Any]) -> tuple[str, Slots]:
    task_id, at = item[RANGE]["S"].rsplit(SEPARATOR, 1)
    slot = Slot(item["channel"]["S"], item["type"]["S"], bytes(item["value"]["B"]))
    return task_id, {WRITES_IDX_MAP.get(slot.channel, int(at)): slot}


def _encode(slots: Slots) -> bytes:
    data = ormsgpack.packb([[at, s.channel, s.kind, s.value] for at, s in slots.items()])
    largest = max(len(slot.value) for slot in slots.values())  # has been squeezed by itself
    small = squeeze(data) if largest < len(data) / 2 else None
    return _PLAIN + data if small is None else _SMALL + small


def _decode(data: bytes) -> Slots:
    body = expand(data[1:]) if data[:1] == _SMALL else data[1:]
    return {at: Slot(channel, kind, value) for at, channel, kind, value in ormsgpack.unpackb(body)}
