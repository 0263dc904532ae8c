"""Every item of the app table, for a checker: the one place of the app records that scans.

Names that are too long to stand in a key are there as digests, which tell nobody's name; what hangs
on one is passed over. An ended journal whose time is over counts as removed, though DynamoDB may
take a while.
"""

import time
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from ibid.adapters.dynamodb.connection import Connection
from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.expiry import Expiry
from ibid.adapters.dynamodb.records.journal import Journals, unpacked
from ibid.adapters.dynamodb.records.memory import Memory
from ibid.adapters.dynamodb.records.places import Places
from ibid.adapters.dynamodb.records.records import DynamoRecords
from ibid.adapters.dynamodb.records.run_rows import RunRows, is_live, is_run, number_of
from ibid.adapters.dynamodb.records.table import Table
from ibid.adapters.dynamodb.records.threads import conversation_of
from ibid.adapters.dynamodb.records.wire import Item
from ibid.adapters.dynamodb.scanning import scanned
from ibid.adapters.records import codec
from ibid.domain.conversations import Message, Run, parse_run_id, run_id
from ibid.domain.errors import StoreUnavailable
from ibid.domain.events import Entry
from ibid.ports.feedback import Feedback
from ibid.ports.idempotency import KeyRecord
from ibid.ports.inventory import KeptConversation, KeptJournal, KeptRun, LooseKey

Name = tuple[str, str]  # tenant, id

_DIGEST = "%%"
_DAMAGED = (ValueError, KeyError, TypeError, zlib.error, StoreUnavailable)  # the last: parts miss


@dataclass(slots=True)
class _Names:
    """What the keys of all items name."""

    journals: dict[Name, set[int]] = field(default_factory=dict)  # by conversation
    records: set[Name] = field(default_factory=set)
    bound: set[Name] = field(default_factory=set)  # records that a conversation's items name


class DynamoInventory:
    """Implements Inventory; it reads all of the table, so no request may ask for it.

    Args:
        connection: To DynamoDB.
        table: The app table's name.
        now: Epoch seconds, for expiry only.
    """

    def __init__(
        self, connection: Connection, *, table: str, now: Callable[[], float] = time.time
    ) -> None:
        self._connection = connection
        self._table = Table(connection, table)
        self._expiry = Expiry(now)
        self._journals = Journals(self._table, Memory())
        self._places = Places(self._table, self._expiry)
        self._records = DynamoRecords(connection, table=table, now=now).idempotency

    async def faults(self) -> Sequence[str]:
        """Return the places that are held for runs which are not live."""

        def work() -> Sequence[str]:
            return [
                f"the place of run {name!r} of tenant {tenant!r} is held"
                for tenant, name in self._places.all()
                if not self._is_live(tenant, name)
            ]

        return await self._table.run(work)

    async def conversations(self) -> AsyncIterator[KeptConversation]:
        """Return every conversation that any item names, by tenant and id."""
        names = await self._table.run(self._names)
        for name in sorted(names.journals):
            kept, record_ids = await self._table.run(
                partial(self._kept, *name, numbers=names.journals[name])
            )
            found = [await self._record(name[0], record_id) for record_id in record_ids]
            kept = replace(kept, keys=[record for record in found if record is not None])
            rows = (kept.runs, kept.journals, kept.feedback, kept.keys, kept.unreadable)
            if kept.conversation is not None or any(rows):
                yield kept

    async def loose_keys(self) -> AsyncIterator[LooseKey]:
        """Return the idempotency records that no conversation's items name."""
        names = await self._table.run(self._names)
        for tenant, record_id in sorted(names.records - names.bound):
            record = await self._record(tenant, record_id)
            if record is not None:
                yield LooseKey(tenant=tenant, record=record)

    async def _record(self, tenant: str, record_id: str) -> KeyRecord | None:
        now = datetime.fromtimestamp(self._expiry.now(), UTC)
        return await self._records.get(record_id, tenant=tenant, now=now)

    def _is_live(self, tenant: str, name: str) -> bool:
        place = parse_run_id(name)
        row = None if place is None else self._table.get(keys.run(tenant, *place))
        return row is not None and is_run(row) and is_live(row)

    def _names(self) -> _Names:
        names = _Names()
        for item in scanned(self._connection, self._table.name, ("pk", "sk", "key")):
            match [_unescaped(part) for part in item["pk"]["S"].split("#")]:
                case ["T", str(tenant), "C", str(id_), *journal]:
                    numbers = names.journals.setdefault((tenant, id_), set())
                    if journal:
                        numbers.add(int(journal[-1] or 0))
                    if "key" in item:
                        names.bound.add((tenant, item["key"]["S"]))
                case ["T", str(tenant), "I", str(id_)]:
                    names.records.add((tenant, id_))
                case _:
                    pass  # no conversation hangs on it
        return names

    def _kept(
        self, tenant: str, conversation_id: str, *, numbers: set[int]
    ) -> tuple[KeptConversation, Sequence[str]]:
        """Return a conversation without its idempotency records, and the ids of those."""
        partition, _ = keys.conversation(tenant, conversation_id)
        items = list(self._table.query(partition))
        facts = next((one for one in items if one["sk"] == keys.CONVERSATION_FACTS), None)
        is_there = facts is not None and "gone" not in facts
        reading = _Reading(self, tenant, conversation_id)
        for item in items:
            if item["sk"].startswith(keys.RUNS):
                reading.take_run(item)
            elif item["sk"].startswith(keys.RATINGS):
                reading.take_rating(item)
        for number in sorted(numbers - reading.numbers):
            reading.take_left(number)
        kept = KeptConversation(
            tenant=tenant,
            id=conversation_id,
            conversation=(
                conversation_of(tenant, conversation_id, facts) if facts and is_there else None
            ),
            has_project=(
                facts is not None
                and is_there
                and self._table.get(keys.project(tenant, facts["project"])) is not None
            ),
            runs=reading.runs,
            journals=reading.journals,
            messages=reading.messages,
            feedback=reading.feedback,
            keys=(),
            unreadable=reading.unreadable,
            void_numbers=reading.void_numbers,
        )
        return kept, [item["key"] for item in items if "key" in item]

    def read_run(self, row: Item, rows: RunRows) -> KeptRun:
        """Read a run's row, with what only its journal tells."""
        run = rows.run(row)
        if is_live(row):
            return KeptRun(run=self._journals.complete(run), is_journal_removed=False)
        until = codec.moment_from_int(row["until"])
        return KeptRun(run=run, is_journal_removed=self._expiry.is_over(until))

    def read_journal(self, row: Item, run: Run) -> Sequence[Entry]:
        """Read all that is kept of a run's events, without its terminator."""
        _, batches = self._journals.entries(run, after=0)
        entries = list(batches)
        if "tail" in row:
            last = entries[-1].id if entries else 0
            tail = unpacked(row["tail_first"], row["tail_last"], row["tail"])
            entries.extend(entry for entry in tail if entry.id > last)
        return entries

    def has_content(self, tenant: str, conversation_id: str, number: int) -> bool:
        """Tell if a journal holds more than the markers that keep a slow writer out."""
        items = self._table.query(keys.journal(tenant, conversation_id, number))
        return any("last" in item or not item["sk"].startswith(keys.SLOTS) for item in items)

    def rows(self, tenant: str, conversation_id: str) -> RunRows:
        """Return the reader of a conversation's rows."""
        return RunRows(self._table, tenant, conversation_id)


class _Reading:
    """What was read of one conversation so far."""

    def __init__(self, inventory: DynamoInventory, tenant: str, conversation_id: str) -> None:
        self._inventory = inventory
        self._tenant = tenant
        self._id = conversation_id
        self._rows = inventory.rows(tenant, conversation_id)
        self.numbers: set[int] = set()
        self.void_numbers: list[int] = []
        self.runs: list[KeptRun] = []
        self.journals: list[KeptJournal] = []
        self.messages: list[Message] = []
        self.feedback: list[Feedback] = []
        self.unreadable: list[str] = []

    def take_run(self, row: Item) -> None:
        """Read a run with its journal and its messages; what holds a number has no more."""
        number = number_of(row)
        if not is_run(row):
            if "void" in row:
                self.void_numbers.append(number)
            return
        self.numbers.add(number)
        name = run_id(self._id, number)
        try:
            kept = self._inventory.read_run(row, self._rows)
            self.messages.extend(self._rows.messages(row))
        except _DAMAGED:
            self.unreadable.append(f"run {name}")
            return
        self.runs.append(kept)
        if kept.is_journal_removed:
            return
        try:
            entries = self._inventory.read_journal(row, kept.run)
        except _DAMAGED:
            self.journals.append(KeptJournal(run_id=name, entries=None))
        else:
            self.journals.append(KeptJournal(run_id=name, entries=entries))

    def take_rating(self, item: Item) -> None:
        """Read a rating."""
        _, number, subject = item["sk"].split("#")
        self.feedback.append(
            Feedback(
                tenant=self._tenant,
                subject=_unescaped(subject) or subject,
                conversation_id=self._id,
                run_id=run_id(self._id, int(number)),
                rating=item["rating"],
                comment=item.get("comment"),
                created_at=codec.moment_from_int(item["created"]),
            )
        )

    def take_left(self, number: int) -> None:
        """Note a journal of a run that is not there, if it holds anything."""
        if self._inventory.has_content(self._tenant, self._id, number):
            self.journals.append(KeptJournal(run_id=run_id(self._id, number), entries=()))


def _unescaped(part: str) -> str | None:
    """Return the name that `keys.part` wrote; None for a digest."""
    if part.startswith(_DIGEST):
        return None
    return part.replace("%23", "#").replace("%25", "%")
