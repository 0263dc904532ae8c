"""What calls of the app table cost, by what they are for.

Write units are ministack's own. Read units are reckoned from the items that were read, as DynamoDB
reckons them: ministack tells wrong ones.
"""

import math
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.rows import size_of
from tests.fakes.aws_faults import Call

PURPOSES = {  # of a plain turn, by operation and how the key or its range begins
    ("GetItem", "A"): "the project",
    ("GetItem", keys.CONVERSATION_FACTS): "the conversation",
    ("Query", "T"): "begin: thread and history",
    ("UpdateItem", keys.LIVE): "a place among the live runs, taken and freed",
    ("UpdateItem", keys.CONVERSATION_FACTS): "begin: the run's number",
    ("PutItem", keys.RUNS): "begin: the run with its question",
    ("PutItem", keys.SLOTS): "journal, which is heartbeat and fence",
    ("GetItem", keys.RUNS): "looks for a cancel",
    ("UpdateItem", keys.RUNS): "end: terminator, answer, last tokens",
}

_READS = frozenset({"GetItem", "BatchGetItem", "Query"})
_BLOCK = 4_096


@dataclass
class Bill:
    """Units by what they are for.

    Attributes:
        purpose: What all calls are for; None tells by the call, which is one of a plain turn.
    """

    purpose: str | None = None
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    written: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    read: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hook(self, operation: str, params: dict[str, Any], call: Call) -> Any:  # noqa: ANN401 - botocore's own
        """Put a call on the bill."""
        found = call({**params, "ReturnConsumedCapacity": "TOTAL"})
        what = self.purpose or _purpose(operation, params)
        with self._lock:
            self.calls[what] += 1
            if operation in _READS:
                self.read[what] += _read_units(operation, params, found)
            else:
                told = found["ConsumedCapacity"]
                for one in told if isinstance(told, list) else [told]:
                    self.written[what] += one["CapacityUnits"]
        return found

    def lines(self) -> Sequence[str]:
        """The bill as rows of a table: what for, calls, write units, read units."""
        order = list(PURPOSES.values())
        known = sorted((what for what in self.calls if what in order), key=order.index)
        return [
            f"| {what} | {self.calls[what]} | {self.written[what]:g} | {self.read[what]:g} |"
            for what in [*known, *(what for what in self.calls if what not in order)]
        ]


def _purpose(operation: str, params: Mapping[str, Any]) -> str:
    if operation == "Query":
        return PURPOSES[operation, "T"]
    key = params["Item"] if operation == "PutItem" else params["Key"]
    names = [key["pk"]["S"], key["sk"]["S"]]
    return next(
        what
        for (kind, start), what in PURPOSES.items()
        if kind == operation and any(name.startswith(start) for name in names)
    )


def _read_units(operation: str, params: Mapping[str, Any], found: Mapping[str, Any]) -> float:
    if operation == "BatchGetItem":
        ((name, wanted),) = params["RequestItems"].items()
        sizes = [size_of(item) for item in found["Responses"].get(name, [])]
        missing = len(wanted["Keys"]) - len(sizes)
        return float(sum(max(1, math.ceil(size / _BLOCK)) for size in sizes) + missing)
    items = found.get("Items", [found["Item"]] if "Item" in found else [])
    blocks = max(1, math.ceil(sum(size_of(item) for item in items) / _BLOCK))
    return float(blocks) if params.get("ConsistentRead") else blocks / 2
