"""The journal of a run: one item a batch at the slot after the last one, put if there is none.

To win a slot is to have moved the run's counter, so a batch is the heartbeat and the fence in one
write. Who cancels or kills a run from outside puts a marker into the next slot: its owner meets
it with its next write. A marker does not count as a beat.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from ibid.adapters.dynamodb.records import blobs, keys
from ibid.adapters.dynamodb.records.expiry import TTL, removed_after
from ibid.adapters.dynamodb.records.memory import Known, Memory
from ibid.adapters.dynamodb.records.run_rows import OWNED, is_live, is_run
from ibid.adapters.dynamodb.records.table import ConditionFailed, Table
from ibid.adapters.dynamodb.records.wire import Item, Value
from ibid.adapters.dynamodb.records.writes import Write
from ibid.adapters.records.journal import Pack, pack, unpack
from ibid.domain.conversations import Run
from ibid.domain.errors import LeaseLost
from ibid.domain.events import Entry
from ibid.ports.runs import Appended

Marker = Literal["cancel", "kill"]

_ANY_SIZE = 2**62
_FREE = "attribute_not_exists(#pk)"
_FIRST_PAGE, _LATER_PAGES = 2, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The top of a journal; all 0 before its first item.

    Attributes:
        slot: Of the newest item.
        beat: The run's counter.
        last_id: The last event that is kept.
        marker: What the newest item says to the owner; None for a batch.
    """

    slot: int = 0
    beat: int = 0
    last_id: int = 0
    marker: Marker | None = None


class Journals:
    """Journals of all runs."""

    def __init__(self, table: Table, memory: Memory) -> None:
        self._table = table
        self._memory = memory

    def append(
        self, run: Run, *, beat: int, entries: Sequence[Entry], expires_at: datetime
    ) -> Appended:
        """Do as RunStore.append says."""
        known = self._memory.recall(run, beat)
        while True:
            known = known or self._look(run, beat)
            new = following(entries, known)
            if known.beat > beat and not new:  # the reply to an earlier try was lost
                self._memory.keep(run, known)
                break
            put = self._put(run, known, beat + 1, new, expires_at)
            if put is not None:
                known = put
                self._memory.keep(run, known)
                break
            self._memory.forget(run)
            known = None
        return Appended(beat=known.beat, cancel_requested=known.is_cancelled)

    def checked(self, run: Run, beat: int) -> Known:
        """Return how a run stands that its owner is about to end.

        Raises:
            LeaseLost: It has another owner or counter.
        """
        return self._memory.recall(run, beat) or self._look(run, beat)

    def newest(self, partition: str) -> Newest:
        """Return the top of a journal."""
        top, _ = self._scan(partition, after=None, page=1)
        return top

    def beat(self, partition: str) -> int:
        """Return the counter of a journal's run."""
        item = next(self._newest_first(partition, page=1), None)
        return 0 if item is None else int(item["beat"])

    def complete(self, run: Run) -> Run:
        """Return a live run with what only its journal tells."""
        top = self.newest(partition_of(run))
        return replace(run, beat=top.beat, last_event_id=top.last_id)

    def mark(
        self, partition: str, marker: Marker, *, expires: int, seen: tuple[int, int] | None = None
    ) -> bool:
        """Put a marker on top of a journal, for the owner's next write.

        Args:
            partition: The journal's.
            marker: What it says; one that is on top already will do.
            expires: The attribute by which DynamoDB removes it.
            seen: Only while these are the counter and the last event that is kept.

        Returns:
            False if the owner has written since.
        """
        while True:
            top = self.newest(partition)
            if seen is not None and (top.beat, top.last_id) != seen:
                return False
            if top.marker in {marker, "kill"}:
                return True
            item: dict[str, Value] = {marker: True, "beat": top.beat, TTL: expires}
            try:
                self._table.write(
                    Write(key=(partition, keys.slot(top.slot + 1)), item=item, condition=_FREE)
                )
            except ConditionFailed:
                continue
            return True

    def entries(self, run: Run, *, after: int) -> tuple[Newest, Iterator[Entry]]:
        """Return the top of a run's journal, and its entries with ids above `after`, in order."""
        top, batches = self._scan(partition_of(run), after=after, page=_FIRST_PAGE)
        return top, self._read(run, batches, after)

    def _read(self, run: Run, batches: Sequence[Item], after: int) -> Iterator[Entry]:
        for item in batches:
            body = blobs.read(self._table, partition_of(run), item)
            for entry in unpacked(item["first"], item["last"], body):
                if entry.id > after:  # what a lost reply made the owner keep twice is given once
                    yield entry
                    after = entry.id

    def _scan(self, partition: str, *, after: int | None, page: int) -> tuple[Newest, list[Item]]:
        """Return the top of a journal, and the batches with ids above `after`, oldest first."""
        top, last_id = Newest(), 0
        batches: list[Item] = []
        for item in self._newest_first(partition, page=page):
            top = top if top.slot else _newest(item)
            if "last" not in item:
                continue
            last_id = last_id or item["last"]
            if after is None or item["last"] <= after:
                break
            batches.append(item)
        return replace(top, last_id=last_id), batches[::-1]

    def _newest_first(self, partition: str, *, page: int) -> Iterator[Item]:
        return self._table.query(
            partition,
            prefix=keys.SLOTS,
            newest_first=True,
            page=page,
            later_pages=_LATER_PAGES,
        )

    def _look(self, run: Run, beat: int) -> Known:
        """Read how a run of the caller's stands."""
        row = self._table.get(keys.run(run.tenant, run.conversation_id, run.number))
        if row is None or not is_run(row) or not is_live(row) or row["owner"] != run.lease_owner:
            raise _lost(run)
        top = self.newest(partition_of(run))
        if top.marker == "kill" or top.beat - beat not in {0, 1}:
            raise _lost(run)
        return Known(
            owner=run.lease_owner,
            beat=top.beat,
            slot=top.slot,
            last_id=top.last_id,
            is_cancelled="cancel" in row or top.marker == "cancel",
        )

    def _put(
        self, run: Run, known: Known, beat: int, entries: Sequence[Entry], expires_at: datetime
    ) -> Known | None:
        """Put a batch on top, with the counter that it moves to; None: look at the run first."""
        expires = removed_after(expires_at)
        item: dict[str, Value] = {"beat": beat, TTL: expires}
        if entries:
            (packed,) = pack(entries, max_bytes=_ANY_SIZE)
            body = blobs.blob(packed.body)
            item |= {"first": packed.first_id, "last": packed.last_id, **body.attributes}
            try:
                body.keep_parts(self._table, partition_of(run), check=owned(run), **{TTL: expires})
            except ConditionFailed as error:
                raise _lost(run) from error
        slot, is_cancelled = known.slot + 1, known.is_cancelled
        while True:
            try:
                key = (partition_of(run), keys.slot(slot))
                self._table.write(Write(key=key, item=item, condition=_FREE))
            except ConditionFailed as error:
                there = error.item or {}
                if "kill" in there:
                    raise _lost(run) from error
                if "cancel" not in there:
                    return None
                slot, is_cancelled = slot + 1, True
            else:
                return Known(
                    owner=known.owner,
                    beat=beat,
                    slot=slot,
                    last_id=entries[-1].id if entries else known.last_id,
                    is_cancelled=is_cancelled,
                )


def owned(run: Run) -> Write:
    """Return the check that a run is live and its owner's."""
    return Write(
        key=keys.run(run.tenant, run.conversation_id, run.number),
        condition=OWNED,
        values={"owner": run.lease_owner},
    )


def following(entries: Sequence[Entry], known: Known) -> Sequence[Entry]:
    """Return those of the entries that are not kept yet.

    Raises:
        ValueError: They leave a gap.
    """
    new = [entry for entry in entries if entry.id > known.last_id]
    if new and new[0].id != known.last_id + 1:
        raise ValueError(f"id {new[0].id} stands where {known.last_id + 1} should")
    return new


def unpacked(first_id: int, last_id: int, body: bytes) -> Iterator[Entry]:
    """Return the entries of one batch."""
    return unpack([Pack(first_id=first_id, last_id=last_id, part=0, parts=1, body=body)])


def partition_of(run: Run) -> str:
    """Return the partition of a run's journal."""
    return keys.journal(run.tenant, run.conversation_id, run.number)


def _newest(item: Item) -> Newest:
    marker: Marker | None = "kill" if "kill" in item else "cancel" if "cancel" in item else None
    return Newest(slot=int(item["sk"].removeprefix(keys.SLOTS)), beat=item["beat"], marker=marker)


def _lost(run: Run) -> LeaseLost:
    return LeaseLost(f"run {run.id!r} has ended, or has another owner or counter")
