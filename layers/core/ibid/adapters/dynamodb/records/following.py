"""A run's journal as a reader gets it: the batches, then what the end kept, then the terminator."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.expiry import Expiry
from ibid.adapters.dynamodb.records.journal import Journals, unpacked
from ibid.adapters.dynamodb.records.run_rows import RunRows, is_live, is_run
from ibid.adapters.dynamodb.records.table import Table
from ibid.adapters.dynamodb.records.wire import Item
from ibid.adapters.records import codec
from ibid.domain.conversations import Run
from ibid.domain.errors import JournalExpired, RunNotFound
from ibid.domain.events import Entry
from ibid.ports.runs import Kept


class Following:
    """Reads journals."""

    def __init__(self, table: Table, journals: Journals, expiry: Expiry) -> None:
        self._table = table
        self._journals = journals
        self._expiry = expiry

    def entries(self, run: Run, *, after: int, limit: int) -> Kept:
        """Do as RunStore.entries says."""
        # The row first: once it has an end, nothing more comes into the journal.
        row = self._table.get(keys.run(run.tenant, run.conversation_id, run.number))
        if row is None and not run.lease_owner:  # it has a place, and was never begun
            return Kept(entries=(), run=run, has_more=False)
        if row is None or not is_run(row):
            raise RunNotFound(f"no run {run.id!r}")
        stands = RunRows(self._table, run.tenant, run.conversation_id).run(row)
        top, batches = self._journals.entries(run, after=after)
        if is_live(row):
            found = list(islice(batches, limit + 1))
            stands = replace(stands, beat=top.beat, last_event_id=top.last_id)
        else:
            if self._expiry.is_over(codec.moment_from_int(row["until"])):
                raise _expired(run)
            found = list(islice(_to_the_end(stands, row, batches, after), limit + 1))
            if found and found[0].id > after + 1 and found[0].event is not stands.terminator:
                raise _expired(run)  # DynamoDB has begun to remove it
        return Kept(entries=found[:limit], run=stands, has_more=len(found) > limit)


def _to_the_end(run: Run, row: Item, batches: Iterator[Entry], after: int) -> Iterator[Entry]:
    for entry in batches:
        after = entry.id
        yield entry
    if "tail" in row:
        for entry in unpacked(row["tail_first"], row["tail_last"], row["tail"]):
            if entry.id > after:
                after = entry.id
                yield entry
    if run.terminator is not None and run.last_event_id > after:
        yield Entry(id=run.last_event_id, event=run.terminator)


def _expired(run: Run) -> JournalExpired:
    return JournalExpired(f"the journal of run {run.id!r} is not kept any more")
