"""Conversations and projects taken out of the app table, so that nothing of them comes back.

A thing is marked `gone` first: from then on nothing new is written to it. It stays readable, and
leads to all that hangs on it, until the last write; so who died half way is followed by the next
one that deletes it. What a slow writer could still write is kept out by tombstones without
content, which DynamoDB removes days later.
"""

import contextlib
import json
from collections.abc import Collection

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.expiry import TOMBSTONE, TTL, Expiry
from ibid.adapters.dynamodb.records.journal import Journals
from ibid.adapters.dynamodb.records.keys import Key
from ibid.adapters.dynamodb.records.places import Places
from ibid.adapters.dynamodb.records.pointers import ID
from ibid.adapters.dynamodb.records.run_rows import number_of
from ibid.adapters.dynamodb.records.table import ConditionFailed, Table
from ibid.adapters.dynamodb.records.wire import Item, Value
from ibid.adapters.dynamodb.records.writes import Write
from ibid.domain.conversations import run_id
from ibid.domain.errors import ConversationNotFound

_SUBJECT = "attribute_exists(#subject)"


class Deletion:
    """Deletes, as often as it is told to."""

    def __init__(self, table: Table, journals: Journals, places: Places, expiry: Expiry) -> None:
        self._table = table
        self._journals = journals
        self._places = places
        self._expiry = expiry

    def conversation(
        self, tenant: str, conversation_id: str, *, subject: str | None
    ) -> Collection[str]:
        """Remove a conversation.

        Args:
            tenant: Whose.
            conversation_id: Which.
            subject: Only if it is this one's; None for whoever's.

        Returns:
            The turns of its runs.

        Raises:
            ConversationNotFound: There is none.
        """
        key = keys.conversation(tenant, conversation_id)
        try:
            facts = self._table.write(
                Write(
                    key=key,
                    update="SET #gone = :true",
                    condition=_SUBJECT if subject is None else "#subject = :subject",
                    values={"true": True} | ({} if subject is None else {"subject": subject}),
                )
            )
        except ConditionFailed as error:
            raise ConversationNotFound(f"no conversation {conversation_id!r}") from error
        if facts["runs"] > 0:  # it may just be begun: its row is kept out before its owner puts it
            self._refuse(keys.run(tenant, conversation_id, facts["runs"]))
        turns: set[str] = set()
        for row in self._table.query(key[0], prefix=keys.RUNS):
            if "turn" in row:
                turns.add(row["turn"])
            self._run(tenant, conversation_id, row)
        self._table.delete([_key(row) for row in self._table.query(key[0], prefix=keys.RATINGS)])
        self._record(tenant, facts)
        self._table.transact(
            Write(key=key, item=self._tombstone()),
            Write(
                key=(
                    keys.asker(tenant, facts["subject"]),
                    keys.dated(keys.CONVERSATIONS, facts["created"], conversation_id),
                ),
                deletes=True,
            ),
            Write(
                key=(
                    keys.project(tenant, facts["project"])[0],
                    keys.project_conversation(conversation_id),
                ),
                deletes=True,
            ),
        )
        return turns

    def project(self, tenant: str, project_id: str) -> Collection[str]:
        """Remove a project, its jobs and its conversations; return the turns of their runs.

        Nothing is done, and nothing returned, if there is none.
        """
        key = keys.project(tenant, project_id)
        try:
            facts = self._table.write(
                Write(
                    key=key,
                    update="SET #gone = :true",
                    condition="attribute_exists(#pk)",
                    values={"true": True},
                )
            )
        except ConditionFailed:
            return ()
        turns: set[str] = set()
        for pointer in self._table.query(key[0], prefix=keys.CONVERSATIONS):
            with contextlib.suppress(ConversationNotFound):  # somebody else's deletion did it
                turns.update(self.conversation(tenant, pointer[ID], subject=None))
        for pointer in self._table.query(key[0], prefix=keys.JOBS_OF_PROJECT):
            doomed = [keys.live_job(tenant, pointer[ID]), keys.job(tenant, pointer[ID])]
            self._table.delete([*doomed, _key(pointer)])
        place = keys.dated(keys.PROJECTS, facts["created"], project_id)
        members = json.loads(facts["members"])
        self._table.delete([(keys.member(tenant, subject), place) for subject in members])
        self._table.delete([key])
        return turns

    def _run(self, tenant: str, conversation_id: str, row: Item) -> None:
        number = number_of(row)
        name = run_id(conversation_id, number)
        may_write = "ended" not in row and "void" not in row  # or an earlier deletion was cut off
        # From here on neither its end nor a part of a batch can be kept. What leads to other things
        # stays, should this deletion be cut off and done again.
        left = {name: row.get(name) for name in ("key", "turn")}
        stub: dict[str, Value | None] = {**self._tombstone(), **left}
        self._table.write(Write(key=_key(row), item=stub))
        journal = keys.journal(tenant, conversation_id, number)
        if may_write:
            self._journals.mark(journal, "kill", expires=self._expiry.after(TOMBSTONE))
            self._places.forget(tenant, name)
        items = self._table.query(journal)
        self._table.delete([_key(item) for item in items if "kill" not in item])
        self._record(tenant, row)

    def _record(self, tenant: str, item: Item) -> None:
        """Delete the idempotency record that something answered, with its parts."""
        if "key" in item:
            self.record(tenant, item["key"])

    def record(self, tenant: str, record_id: str) -> None:
        """Delete an idempotency record with its parts."""
        partition, _ = key = keys.idempotency(tenant, record_id)
        self._table.delete([key])  # first, so that no part comes after
        self._table.delete([_key(item) for item in self._table.query(partition)])

    def _refuse(self, key: Key) -> None:
        """Put a tombstone where there is nothing."""
        write = Write(key=key, item=self._tombstone(), condition="attribute_not_exists(#pk)")
        try:
            self._table.write(write)
        except ConditionFailed:
            return

    def _tombstone(self) -> dict[str, Value]:
        return {"gone": True, TTL: self._expiry.after(TOMBSTONE)}


def _key(item: Item) -> Key:
    return item["pk"], item["sk"]
