"""How a run ends: by its owner, by who found it dead, or its pause by time.

The run's row decides, in one conditional write; then its place is freed. A place that a crash
left behind is freed by who watches live runs.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.expiry import removed_after
from ibid.adapters.dynamodb.records.journal import Journals, following, owned, partition_of
from ibid.adapters.dynamodb.records.memory import Memory
from ibid.adapters.dynamodb.records.places import Places
from ibid.adapters.dynamodb.records.run_rows import (
    LIVE,
    OWNED,
    RunRows,
    ending_of,
    is_live,
    is_run,
)
from ibid.adapters.dynamodb.records.table import ConditionFailed, Table
from ibid.adapters.dynamodb.records.wire import Item, Value
from ibid.adapters.dynamodb.records.writes import Write
from ibid.adapters.dynamodb.tables import DUE, PAUSE
from ibid.adapters.records import codec
from ibid.adapters.records.journal import pack
from ibid.domain.conversations import Message, Run, RunState, parse_run_id, run_id
from ibid.domain.errors import LeaseLost, RunNotFound, StoreUnavailable
from ibid.domain.events import Entry, Paused, Terminator

_TAIL_BYTES = 50_000  # of last entries that go with the end; more go to the journal first
_ANY_SIZE = 2**62

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What a run ends with; the fields are those of RunStore.end."""

    state: RunState
    terminator: Terminator
    event_id: int
    answer: Message
    at: datetime
    expires_at: datetime


class Ends:
    """The ends of runs."""

    def __init__(self, table: Table, journals: Journals, places: Places, memory: Memory) -> None:
        self._table = table
        self._journals = journals
        self._places = places
        self._memory = memory

    def end(self, run: Run, end: End, *, beat: int, entries: Sequence[Entry]) -> Run:
        """Do as RunStore.end says."""
        try:
            known = self._journals.checked(run, beat)
            new = following(entries, known)
            if end.event_id != known.last_id + len(new) + 1:
                raise ValueError(f"the terminator's id {end.event_id} leaves a gap")
            tail, beat = _tail(new), known.beat
            if tail is None:
                appended = self._journals.append(
                    run, beat=beat, entries=new, expires_at=end.expires_at
                )
                beat = appended.beat
        except LeaseLost:
            return self._over(run, self._row(run))
        fields = {**(tail or {}), "beat": beat}
        row: Item | None
        try:
            row = self._write(run, end, fields, condition=OWNED, owner=run.lease_owner)
        except ConditionFailed as error:
            row = error.item  # also where the reply to an earlier try was lost
        return self._over(run, row)

    def end_dead(self, run: Run, end: End) -> bool:
        """Do as RunStore.end_dead says."""
        row = self._row(run)
        if row is None:
            return self._void(run)
        if not is_run(row) or not is_live(row):
            self._places.forget(run.tenant, run.id)
            return False
        expires, seen = removed_after(end.expires_at), (run.beat, run.last_event_id)
        if not self._journals.mark(partition_of(run), "kill", expires=expires, seen=seen):
            return False
        mine = uuid4().hex
        try:
            self._write(run, end, {"beat": run.beat, "ender": mine}, condition=LIVE)
        except ConditionFailed as error:
            self._places.forget(run.tenant, run.id)
            return (error.item or {}).get("ender") == mine  # then a reply was lost
        self._places.forget(run.tenant, run.id)
        return True

    def read_dead(self, name: str, tenant: str) -> Run | None:
        """Do as RunStore.read_dead says; a place whose run has ended is freed."""
        place = parse_run_id(name)
        if place is None:
            return None
        row = self._table.get(keys.run(tenant, *place))
        if row is None:
            return self.unbegun(name, tenant)
        if not is_run(row):
            self._places.forget(tenant, name)
            return None
        rows = RunRows(self._table, tenant, place[0])
        if not is_live(row):
            self._places.forget(tenant, name)
            return rows.run(row)
        return self._journals.complete(rows.run(row))

    def unbegun(self, name: str, tenant: str) -> Run | None:
        """Return a run that has a place and no row, as if it was queued; None if there is none.

        Its owner is about to put the row, or has died before it. A place that nothing can come of
        is freed.
        """
        place = parse_run_id(name)
        if place is None or not self._places.has(tenant, name):
            return None
        facts = self._table.get(keys.conversation(tenant, place[0]))
        if facts is None or "gone" in facts:
            self._places.forget(tenant, name)
            return None
        return _unbegun(tenant, *place, facts)

    def expire(self, run: Run) -> bool:
        """Do as RunStore.expire says."""
        try:
            self._table.write(
                Write(
                    key=_key(run),
                    update="SET #state = :expired REMOVE #pause, #due",
                    condition="#state = :paused AND attribute_not_exists(#resumed)",
                    values={"expired": RunState.EXPIRED, "paused": RunState.PAUSED},
                )
            )
        except ConditionFailed as error:
            there = error.item
            return there is not None and there.get("state") == RunState.EXPIRED
        return True

    def _row(self, run: Run) -> Item | None:
        return self._table.get(_key(run))

    def _over(self, run: Run, row: Item | None) -> Run:
        """Free the place of a run that has ended, and return it as it is kept."""
        if row is None or not is_run(row):
            raise RunNotFound(f"no run {run.id!r}")
        if is_live(row):
            raise LeaseLost(f"run {run.id!r} has another owner or counter")
        self._memory.forget(run)
        self._free(run)
        return RunRows(self._table, run.tenant, run.conversation_id).run(row)

    def _write(
        self,
        run: Run,
        end: End,
        fields: Mapping[str, Value],
        *,
        condition: str,
        **values: Value,
    ) -> Item:
        """Put the end into the run's row.

        Raises:
            ConditionFailed: It may not be ended so.
        """
        ending = ending_of(end.answer, end.terminator)
        ending.keep_parts(self._table, partition_of(run), check=owned(run))
        new: dict[str, Value] = {
            "state": end.state,
            "ended": codec.moment_to_int(end.at),
            "last": end.event_id,
            "until": codec.moment_to_int(end.expires_at),
            **ending.attributes,
            **fields,
        }
        if isinstance(end.terminator, Paused):
            due = keys.moment(codec.moment_to_int(end.terminator.expires_at))
            interrupt = end.terminator.interrupt_id
            new |= {PAUSE: keys.PAUSES, DUE: due, "interrupt": interrupt}
            new |= {"tenant": run.tenant, "thread": run.conversation_id}  # who sweeps has no id
        return self._table.write(
            Write(
                key=_key(run),
                update="SET " + ", ".join(f"#{name} = :{name}" for name in new),
                condition=condition,
                values={**new, **values},
            )
        )

    def _void(self, run: Run) -> bool:
        """Take the number of a run that was never begun."""
        facts = self._table.get(keys.conversation(run.tenant, run.conversation_id))
        if facts is None or "gone" in facts or not self._places.has(run.tenant, run.id):
            self._places.forget(run.tenant, run.id)
            return False
        void = Write(key=_key(run), item={"void": True}, condition="attribute_not_exists(#pk)")
        try:
            self._table.write(void)
        except ConditionFailed as error:
            if "void" not in (error.item or {}):
                return False  # it was begun after all, or its conversation is being deleted
        self._places.forget(run.tenant, run.id)
        return True

    def _free(self, run: Run) -> None:
        try:
            self._places.free(run)
        except StoreUnavailable:
            logger.warning("place_not_freed", extra={"run_id": run.id})  # the watch frees it


def _key(run: Run) -> keys.Key:
    return keys.run(run.tenant, run.conversation_id, run.number)


def _tail(entries: Sequence[Entry]) -> dict[str, Value] | None:
    """Return the last entries as they go with the end; None if they are too many for it."""
    if not entries:
        return {}
    (packed,) = pack(entries, max_bytes=_ANY_SIZE)
    if len(packed.body) > _TAIL_BYTES:
        return None
    return {"tail": packed.body, "tail_first": packed.first_id, "tail_last": packed.last_id}


def _unbegun(tenant: str, conversation_id: str, number: int, facts: Item) -> Run:
    """Return what is known of a run that has a place and no row."""
    name = run_id(conversation_id, number)
    return Run(
        tenant=tenant,
        subject=facts["subject"],
        id=name,
        conversation_id=conversation_id,
        project_id=facts["project"],
        message_id="",
        state=RunState.QUEUED,
        lease_owner="",
        beat=0,
        created_at=codec.moment_from_int(facts["created"]),
        number=number,
        turn_id=name,
    )
