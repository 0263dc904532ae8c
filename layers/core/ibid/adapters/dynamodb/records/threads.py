"""A conversation's partition from the top: the conversation, then its runs, newest first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.run_rows import (
    RunRows,
    is_live,
    is_pending,
    is_run,
    number_of,
)
from ibid.adapters.dynamodb.records.table import Table
from ibid.adapters.dynamodb.records.wire import Item
from ibid.adapters.records import codec
from ibid.domain.conversations import Conversation, Message, RunState
from ibid.domain.errors import ConversationNotFound
from ibid.domain.principals import Principal

THERE = "attribute_exists(#pk) AND attribute_not_exists(#gone) AND #subject = :subject"

_LATER_PAGES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is open on a thread.

    Attributes:
        live: Numbers of its live runs, rising; also of one that is just being begun.
        running: Those of them that are known to run.
        pending: The row of the run that waits for an answer.
    """

    live: Sequence[int]
    running: Sequence[int]
    pending: Item | None


class Thread:
    """One conversation as it is read, run by run, as far as anybody looks.

    Args:
        table: Where.
        tenant: Whose.
        conversation_id: Which.
    """

    def __init__(self, table: Table, tenant: str, conversation_id: str) -> None:
        self._table = table
        self.rows = RunRows(table, tenant, conversation_id)
        self._items = table.query(
            keys.conversation(tenant, conversation_id)[0],
            newest_first=True,
            page=2,  # its newest run mostly tells enough
            later_pages=_LATER_PAGES,
        )
        first = next(self._items, None)
        self.facts = first if first and first["sk"] == keys.CONVERSATION_FACTS else None
        self._read: list[Item] = []

    def check(self, conversation_id: str, principal: Principal) -> Item:
        """Return the conversation's item, if it is the principal's and not being deleted.

        Raises:
            ConversationNotFound: It is not so.
        """
        facts = self.facts
        if facts is None or "gone" in facts or facts["subject"] != principal.subject:
            raise ConversationNotFound(f"no conversation {conversation_id!r}")
        return facts

    def newest_first(self) -> Iterator[Item]:
        """Yield the rows of runs; each is read once, however often it is looked at."""
        yield from self._read
        for item in self._items:
            if not item["sk"].startswith(keys.RUNS):
                return
            self._read.append(item)
            yield item

    def standing(self) -> Standing:
        """Return what is open, read as far back as need be."""
        live: list[int] = []
        running: list[int] = []
        pending: Item | None = None
        expected = self.facts["runs"] if self.facts else 0
        for row in self.newest_first():
            number = number_of(row)
            live.extend(range(expected, number, -1))  # those are begun, but for their rows
            expected = min(expected, number - 1)
            if not is_run(row):
                continue
            if is_live(row):
                live.append(number)
                if row["state"] == RunState.RUNNING:
                    running.append(number)
            elif is_pending(row):
                pending = row
            if "clear" in row:
                expected = 0
                break
        live.extend(range(expected, 0, -1))
        return Standing(live=sorted(live), running=sorted(running), pending=pending)

    def latest_messages(self, limit: int) -> Sequence[Message]:
        """Return the last messages, oldest first."""
        found: list[Message] = []
        for row in self._settled(runs=limit // 2 + 1):
            found.extend(reversed(self.rows.messages(row)))
            if len(found) >= limit:
                break
        return found[:limit][::-1]

    def _settled(self, *, runs: int) -> Iterator[Item]:
        """Yield the rows of runs, newest first, at half the price where that shows the same.

        What an ended run said changes no more. So a row that is seen as ended, right below the one
        before it, needs no strong read; from the first one that is not, all are read strongly.
        """
        below = None
        for row in list(self._read) or islice(self.newest_first(), 1):
            yield row
            below = row
        if below is None or number_of(below) == 1:
            return
        older = self._table.query(
            below["pk"],
            prefix=keys.RUNS,
            below=below["sk"],
            newest_first=True,
            page=max(1, runs - len(self._read)),
            strong=False,
        )
        expected = number_of(below) - 1
        for row in older:
            if number_of(row) != expected or (is_run(row) and is_live(row)):
                break
            yield row
            expected -= 1
        if expected > 0:
            yield from (row for row in self.newest_first() if number_of(row) <= expected)


def conversation_of(tenant: str, conversation_id: str, item: Item) -> Conversation:
    """Make the conversation of an item."""
    return Conversation(
        tenant=tenant,
        subject=item["subject"],
        id=conversation_id,
        project_id=item["project"],
        title=item.get("title"),
        reply_language=item.get("language"),
        created_at=codec.moment_from_int(item["created"]),
        runs_begun=item["runs"],
    )
