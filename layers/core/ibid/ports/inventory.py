"""Everything that the stores hold, row by row, for a checker: no request ever asks for it."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ibid.domain.conversations import Conversation, Message, Run
from ibid.domain.events import Entry
from ibid.ports.feedback import Feedback
from ibid.ports.idempotency import KeyRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRun:
    """A run, and whether its journal was removed when its time was over."""

    run: Run
    is_journal_removed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptJournal:
    """The events that are kept under a run's id, which need not be that of a run.

    Attributes:
        entries: By rising id, without the terminator that is kept with the run; None where they
            can't be read.
    """

    run_id: str
    entries: Sequence[Entry] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptConversation:
    """All rows that name one conversation, which need not be there.

    Attributes:
        conversation: None where only other rows name it.
        has_project: Whether the conversation's project is there.
        runs: By rising number.
        journals: Those that hold anything; of runs that are not there too.
        messages: In the order they were kept.
        keys: The idempotency records that are deleted with it.
        unreadable: Kind and id of each row that can't be read.
        void_numbers: Those that were taken by a run that was never begun, as its process died.
    """

    tenant: str
    id: str
    conversation: Conversation | None
    has_project: bool
    runs: Sequence[KeptRun]
    journals: Sequence[KeptJournal]
    messages: Sequence[Message]
    feedback: Sequence[Feedback]
    keys: Sequence[KeyRecord]
    unreadable: Sequence[str] = ()
    void_numbers: Sequence[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LooseKey:
    """An idempotency record that is deleted with no conversation: its request made none yet."""

    tenant: str
    record: KeyRecord


class Inventory(Protocol):
    """Every tenant's app records.

    What one conversation's rows show is of one moment, if the store can give that.
    Every method may raise StoreUnavailable.
    """

    async def faults(self) -> Sequence[str]:
        """Return what the store itself finds wrong with its files; names places, no content."""

    def conversations(self) -> AsyncIterator[KeptConversation]:
        """Return every conversation that any row names, each once."""

    def loose_keys(self) -> AsyncIterator[LooseKey]:
        """Return the idempotency records that belong to no conversation."""


class CheckpointInventory(Protocol):
    """The checkpoint threads that hold anything.

    Every method may raise StoreUnavailable.
    """

    async def faults(self) -> Sequence[str]:
        """Return what the store itself finds wrong with its files; names places, no content."""

    def threads(self) -> AsyncIterator[str]:
        """Return the id of each, once."""
