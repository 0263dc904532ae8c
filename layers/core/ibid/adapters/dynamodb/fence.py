"""Which of the stored items count: the fence row of a thread, and the cuts in it.

Every item carries its writer's token. Taking a lease from a writer that did not release it cuts
that writer off: the cut records the newest checkpoint of every namespace that may still go on.
What the writer stored before counts, what arrives later is never read by anyone. Writes to an open
checkpoint have no order to cut by, so the taker seals them one by one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ibid.adapters.dynamodb.keys import FENCE_ROW
from ibid.domain.errors import CheckpointCorrupt

TOKEN = "token"  # noqa: S105 - an attribute's name
SEALED = "sealed"
IN_DOUBT = "in_doubt"

_MOST_CUTS = 50  # of a thread: 50 crashes ago nobody is still about to write
_MOST_HEADS = 500  # of all cuts: about 60 KB, where a thread has hundreds of subgraphs open


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where earlier writers end.

    Attributes:
        token: The first one that is not cut off.
        heads: The newest checkpoint id by namespace: of the root, and of what lies above it.
        sealed: Whether all writes that count are sealed; until then they count unsealed.
    """

    token: int
    heads: Mapping[str, str]
    sealed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """A thread's lease and its history; token 0 is a thread that nobody ever leased.

    `in_doubt` is a lease that was released while a write under it had no answer: it may arrive.
    """

    token: int = 0
    owner: str = ""
    nonce: str = ""
    beat: int = 0
    held: bool = False
    in_doubt: bool = False
    gone: bool = False
    cuts: tuple[Cut, ...] = ()

    def admits(self, checkpoint_ns: str, checkpoint_id: str, token: int) -> bool:
        """Whether a checkpoint that a writer stored counts."""
        if self.gone:
            return False
        cut = self._first_after(token)
        if cut is None:
            return True
        return checkpoint_id <= cut.heads.get(checkpoint_ns, cut.heads.get("", ""))

    def admits_writes(
        self, checkpoint_ns: str, checkpoint_id: str, token: int, *, sealed: bool
    ) -> bool:
        """Whether writes to a checkpoint that counts do so themselves."""
        cut = self._first_after(token)
        if cut is None or sealed or not cut.sealed:
            return True
        return checkpoint_id != cut.heads.get(checkpoint_ns)

    def with_cut(self, cut: Cut) -> "Fence":
        """Return it with one more cut, the oldest dropped once there are many."""
        cuts = (*self.cuts, cut)[-_MOST_CUTS:]
        while len(cuts) > 1 and sum(len(one.heads) for one in cuts) > _MOST_HEADS:
            cuts = cuts[1:]
        return replace(self, cuts=cuts)

    def _first_after(self, token: int) -> Cut | None:
        return next((cut for cut in self.cuts if cut.token > token), None)


NO_FENCE = Fence()


def fence_key(thread_id: str) -> dict[str, Any]:
    """Return the key of a thread's fence row."""
    return {"thread_id": {"S": thread_id}, "checkpoint_id": {"S": FENCE_ROW}}


def is_fence(item: Mapping[str, Any]) -> bool:
    """Whether an item of the checkpoints table is a fence row."""
    return bool(item["checkpoint_id"]["S"] == FENCE_ROW)


def token_of(item: Mapping[str, Any]) -> int:
    """Return the token an item was written under; 0 for none."""
    return int(item[TOKEN]["N"]) if TOKEN in item else 0


def fence_of(item: Mapping[str, Any]) -> Fence:
    """Read a fence row.

    Raises:
        CheckpointCorrupt: It can't be read.
    """
    try:
        return _fence_of(item)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        thread_id = item.get("thread_id", {}).get("S", "")
        raise CheckpointCorrupt(
            f"the fence of thread {thread_id!r} can't be read: {type(error).__name__}",
            thread_id=thread_id,
        ) from error


def _fence_of(item: Mapping[str, Any]) -> Fence:
    return Fence(
        token=token_of(item),
        owner=item["owner"]["S"],
        nonce=item["nonce"]["S"],
        beat=int(item["beat"]["N"]),
        held=item["held"]["BOOL"],
        in_doubt=item.get(IN_DOUBT, {}).get("BOOL", False),
        gone=item["gone"]["BOOL"],
        cuts=tuple(_cut_of(one["M"]) for one in item["cuts"]["L"]),
    )


def attributes_of(fence: Fence) -> dict[str, Any]:
    """Return the attributes of a fence row, without its key."""
    return {
        TOKEN: {"N": str(fence.token)},
        "owner": {"S": fence.owner},
        "nonce": {"S": fence.nonce},
        "beat": {"N": str(fence.beat)},
        "held": {"BOOL": fence.held},
        IN_DOUBT: {"BOOL": fence.in_doubt},
        "gone": {"BOOL": fence.gone},
        "cuts": {"L": [{"M": _cut_attributes(cut)} for cut in fence.cuts]},
    }


def _cut_of(item: Mapping[str, Any]) -> Cut:
    return Cut(
        token=token_of(item),
        heads={one["L"][0]["S"]: one["L"][1]["S"] for one in item["heads"]["L"]},
        sealed=item[SEALED]["BOOL"],
    )


def _cut_attributes(cut: Cut) -> dict[str, Any]:
    heads = [{"L": [{"S": name}, {"S": head}]} for name, head in cut.heads.items()]
    return {
        TOKEN: {"N": str(cut.token)},
        "heads": {"L": heads},
        SEALED: {"BOOL": cut.sealed},
    }
