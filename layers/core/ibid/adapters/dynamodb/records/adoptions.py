"""How a process takes a run over that waited in a queue: its owner and its counter in one write."""

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.expiry import TOMBSTONE, TTL, Expiry
from ibid.adapters.dynamodb.records.journal import Journals, partition_of
from ibid.adapters.dynamodb.records.memory import Known, Memory
from ibid.adapters.dynamodb.records.run_rows import OWNED, RunRows, is_live, is_run
from ibid.adapters.dynamodb.records.table import ConditionFailed, Table
from ibid.adapters.dynamodb.records.writes import Write
from ibid.domain.conversations import Run, RunState
from ibid.domain.errors import LeaseLost


class Adoptions:
    """Gives queued runs to processes."""

    def __init__(self, table: Table, journals: Journals, memory: Memory, expiry: Expiry) -> None:
        self._table = table
        self._journals = journals
        self._memory = memory
        self._expiry = expiry

    def adopt(self, run: Run, *, beat: int, owner: str) -> Run:
        """Do as RunStore.adopt says."""
        key = keys.run(run.tenant, run.conversation_id, run.number)
        lost = LeaseLost(f"run {run.id!r} has ended, or has another owner or counter")
        while True:
            row = self._table.get(key)
            if row is None or not is_run(row) or not is_live(row):
                raise lost
            top = self._journals.newest(partition_of(run))
            is_same = (row["state"], row["owner"]) == (RunState.QUEUED, run.lease_owner)
            if not is_same or top.beat != beat or top.marker == "kill":
                raise lost
            taking = Write(
                key=key,
                update="SET #owner = :new",
                condition=f"{OWNED} AND #state = :queued",
                values={"new": owner, "owner": run.lease_owner, "queued": RunState.QUEUED},
            )
            beating = Write(
                key=(partition_of(run), keys.slot(top.slot + 1)),
                item={"beat": beat + 1, TTL: self._expiry.after(TOMBSTONE)},
                condition="attribute_not_exists(#pk)",
            )
            try:
                self._table.transact(taking, beating)
            except ConditionFailed:
                continue  # a cancel, or somebody was first: the next look tells
            known = Known(
                owner=owner,
                beat=beat + 1,
                slot=top.slot + 1,
                last_id=top.last_id,
                is_cancelled="cancel" in row,
            )
            rows = RunRows(self._table, run.tenant, run.conversation_id)
            adopted = rows.run({**row, "owner": owner}, beat=beat + 1, last_event_id=known.last_id)
            self._memory.keep(adopted, known)
            return adopted
