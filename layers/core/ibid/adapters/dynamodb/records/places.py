"""The live runs of a tenant: one item, which counts them against the limits and lists them.

A run is in it before anything else of it is written, and until it has ended for good; so whatever
dies, what it left is found here. Running runs are in a set of their subject's, queued ones in one
set. An item that has not changed for days is empty, and is removed by DynamoDB.
"""

from collections.abc import Iterator

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.expiry import PLACES, TTL, Expiry
from ibid.adapters.dynamodb.records.table import ConditionFailed, Table
from ibid.adapters.dynamodb.records.wire import Item, Value
from ibid.adapters.dynamodb.records.writes import Write
from ibid.domain.conversations import Run
from ibid.ports.runs import PlaceLimits

_QUEUED = "queued"
_RUNNING = "running#"  # and the subject

_TAKE = "ADD #mine :ids, #count :one"
_LEAVE = "ADD #count :less DELETE #mine :ids"
_FREE = (
    "(attribute_not_exists(#count) OR #count < :tenants)"
    " AND (attribute_not_exists(#mine) OR size(#mine) < :subjects)"
    " AND NOT contains(#mine, :run)"
)
_THERE = "contains(#mine, :run)"


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
        self._change(run.tenant, run.id, "ADD #mine :ids", mine=_QUEUED)

    def promote(self, run: Run, limits: PlaceLimits) -> bool:
        """Let a run that waits run if there is a place; say if it does."""
        return self._is_taken(run, limits, f"{_TAKE} DELETE #queued :ids")

    def demote(self, run: Run) -> None:
        """Let a run wait again."""
        update = "ADD #queued :ids, #count :less DELETE #mine :ids"
        self._try(run.tenant, run.id, update, mine=_RUNNING + run.subject, less=-1)

    def free(self, run: Run) -> None:
        """Free the place of a run; repeatable."""
        running = _RUNNING + run.subject
        there = self._try(run.tenant, run.id, _LEAVE, mine=running, less=-1)
        if there is not None and run.id in there.get(_QUEUED, ()):
            self._try(run.tenant, run.id, "DELETE #mine :ids", mine=_QUEUED)

    def forget(self, tenant: str, run_id: str) -> None:
        """Free the place of a run of which nothing else is known; repeatable."""
        item = self._table.get(keys.live_runs(tenant)) or {}
        for name, members in _sets(item):
            if run_id in members and name == _QUEUED:
                self._try(tenant, run_id, "DELETE #mine :ids", mine=name)
            elif run_id in members:
                self._try(tenant, run_id, _LEAVE, mine=name, less=-1)

    def has(self, tenant: str, run_id: str) -> bool:
        """Whether a run is here."""
        item = self._table.get(keys.live_runs(tenant)) or {}
        return any(run_id in members for _, members in _sets(item))

    def all(self) -> Iterator[tuple[str, str]]:
        """Yield tenant and id of every run that is here."""
        for item in self._table.query(keys.LIVE):
            for _, members in _sets(item):
                yield from ((item["tenant"], run_id) for run_id in sorted(members))

    def _is_taken(self, run: Run, limits: PlaceLimits, update: str) -> bool:
        running = _RUNNING + run.subject
        values = {"one": 1, "tenants": limits.tenant, "subjects": limits.subject}
        try:
            self._change(run.tenant, run.id, update, mine=running, condition=_FREE, **values)
        except ConditionFailed as error:
            # its own entry: the reply to an earlier try was lost
            return run.id in (error.item or {}).get(running, ())
        return True

    def _try(
        self, tenant: str, run_id: str, update: str, *, mine: str, **values: Value
    ) -> Item | None:
        """Change the item if the run is in a set; else return it, empty where there is none."""
        try:
            self._change(tenant, run_id, update, mine=mine, condition=_THERE, **values)
        except ConditionFailed as error:
            return error.item or {}
        return None

    def _change(
        self,
        tenant: str,
        run_id: str,
        update: str,
        *,
        mine: str,
        condition: str | None = None,
        **values: Value,
    ) -> None:
        given: dict[str, Value] = {
            **values,
            "ids": frozenset({run_id}),
            "tenant": tenant,
            "expires": self._expiry.after(PLACES),
        }
        if condition is not None:
            given["run"] = run_id
        self._table.write(
            Write(
                key=keys.live_runs(tenant),
                update=f"{update} SET #tenant = :tenant, #{TTL} = :expires",
                condition=condition,
                values=given,
                names={"mine": mine},
            )
        )


def _sets(item: Item) -> Iterator[tuple[str, frozenset[str]]]:
    for name, members in item.items():
        if name == _QUEUED or name.startswith(_RUNNING):
            yield name, members
