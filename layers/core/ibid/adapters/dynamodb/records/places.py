"""The live runs of a tenant: one item, which counts them against the limits and lists them.

A run is in it before anything else of it is written, and until it has ended for good; so whatever
dies, what it left is found here. Running runs are in a set of their subject's, queued ones in one
set. An item that has not changed for days is empty, and is removed by DynamoDB.

Two processes may be about to begin a run of one id, as both read the conversation before either
took the number. So an entry is of one try, told by the message that it would leave: who comes too
late frees its own, never that of the run which has the number.
"""

import hashlib
from collections.abc import Iterator

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.expiry import PLACES, TTL, Expiry
from ibid.adapters.dynamodb.records.table import ConditionFailed, Table
from ibid.adapters.dynamodb.records.wire import Item, Value
from ibid.adapters.dynamodb.records.writes import Write
from ibid.domain.conversations import Run
from ibid.ports.runs import PlaceLimits

_CLAIM = 12  # characters
_QUEUED = "queued"
_RUNNING = "running#"  # and the subject

_TAKE = "ADD #mine :entries, #count :one"
_LEAVE = "ADD #count :less DELETE #mine :entries"
_FREE = (
    "(attribute_not_exists(#count) OR #count < :tenants)"
    " AND (attribute_not_exists(#mine) OR size(#mine) < :subjects)"
    " AND NOT contains(#mine, :entry)"
)
_THERE = "contains(#mine, :entry)"


class Places:
    """Who runs, and who waits to."""

    def __init__(self, table: Table, expiry: Expiry) -> None:
        self._table = table
        self._expiry = expiry

    def take(self, run: Run, limits: PlaceLimits | None) -> bool:
        """Let a new run run if there is a place, else wait, and without limits too; say which."""
        if limits is not None and self._is_taken(run, limits, _TAKE):
            return True
        self.wait(run)
        return False

    def wait(self, run: Run) -> None:
        """Let a new run wait."""
        self._change(run.tenant, _entry(run), "ADD #mine :entries", mine=_QUEUED)

    def promote(self, run: Run, limits: PlaceLimits) -> bool:
        """Let a run that waits run if there is a place; say if it does."""
        return self._is_taken(run, limits, f"{_TAKE} DELETE #queued :entries")

    def demote(self, run: Run) -> None:
        """Let a run wait again."""
        update = "ADD #queued :entries, #count :less DELETE #mine :entries"
        self._try(run.tenant, _entry(run), update, mine=_RUNNING + run.subject, less=-1)

    def free(self, run: Run) -> None:
        """Free the place of a run; repeatable."""
        running = _RUNNING + run.subject
        there = self._try(run.tenant, _entry(run), _LEAVE, mine=running, less=-1)
        if there is not None and _entry(run) in there.get(_QUEUED, ()):
            self._try(run.tenant, _entry(run), "DELETE #mine :entries", mine=_QUEUED)

    def forget(self, tenant: str, run_id: str) -> None:
        """Free every place of a run that is over, or of which nothing can come; repeatable."""
        for name, entry in self._entries(tenant, run_id):
            if name == _QUEUED:
                self._try(tenant, entry, "DELETE #mine :entries", mine=name)
            else:
                self._try(tenant, entry, _LEAVE, mine=name, less=-1)

    def has(self, tenant: str, run_id: str) -> bool:
        """Whether a run is here."""
        return any(self._entries(tenant, run_id))

    def all(self) -> Iterator[tuple[str, str]]:
        """Yield tenant and id of every run that is here, as often as it is."""
        for item in self._table.query(keys.LIVE):
            for _, entries in _sets(item):
                yield from ((item["tenant"], _run_id(entry)) for entry in sorted(entries))

    def _entries(self, tenant: str, run_id: str) -> Iterator[tuple[str, str]]:
        """Yield the entries of a run, each with the name of its set."""
        item = self._table.get(keys.live_runs(tenant)) or {}
        for name, entries in _sets(item):
            yield from ((name, entry) for entry in sorted(entries) if _run_id(entry) == run_id)

    def _is_taken(self, run: Run, limits: PlaceLimits, update: str) -> bool:
        running = _RUNNING + run.subject
        values = {"one": 1, "tenants": limits.tenant, "subjects": limits.subject}
        try:
            self._change(run.tenant, _entry(run), update, mine=running, condition=_FREE, **values)
        except ConditionFailed as error:
            # its own entry: the reply to an earlier try was lost
            return _entry(run) in (error.item or {}).get(running, ())
        return True

    def _try(
        self, tenant: str, entry: str, update: str, *, mine: str, **values: Value
    ) -> Item | None:
        """Change the item if an entry is in a set; else return it, empty where there is none."""
        try:
            self._change(tenant, entry, update, mine=mine, condition=_THERE, **values)
        except ConditionFailed as error:
            return error.item or {}
        return None

    def _change(
        self,
        tenant: str,
        entry: str,
        update: str,
        *,
        mine: str,
        condition: str | None = None,
        **values: Value,
    ) -> None:
        given: dict[str, Value] = {
            **values,
            "entries": frozenset({entry}),
            "tenant": tenant,
            "expires": self._expiry.after(PLACES),
        }
        if condition is not None:
            given["entry"] = entry
        self._table.write(
            Write(
                key=keys.live_runs(tenant),
                update=f"{update} SET #tenant = :tenant, #{TTL} = :expires",
                condition=condition,
                values=given,
                names={"mine": mine},
            )
        )


def _entry(run: Run) -> str:
    """Return what stands for one try at a run."""
    digest = hashlib.sha256(run.message_id.encode()).hexdigest()
    return f"{digest[:_CLAIM]}#{run.id}"


def _run_id(entry: str) -> str:
    return entry[_CLAIM + 1 :]


def _sets(item: Item) -> Iterator[tuple[str, frozenset[str]]]:
    for name, members in item.items():
        if name == _QUEUED or name.startswith(_RUNNING):
            yield name, members
