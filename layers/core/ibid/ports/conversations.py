"""Where conversations, messages and runs are kept."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from ibid.domain.conversations import Conversation, Message, Run, RunState
from ibid.domain.events import Terminator
from ibid.domain.pages import Page
from ibid.domain.principals import Principal


class ConversationStore(Protocol):
    """Conversations and their messages; reads see every acknowledged write.

    A conversation belongs to one principal; to anyone else it does not exist.
    Every method may raise StoreUnavailable.
    """

    async def create(self, conversation: Conversation) -> None:
        """Keep a new conversation.

        Raises:
            ProjectNotFound: Its project was deleted meanwhile.
        """

    async def get(self, conversation_id: str, *, principal: Principal) -> Conversation:
        """Return one conversation.

        Raises:
            ConversationNotFound: The principal has none of this id.
        """

    async def list_for(
        self, *, principal: Principal, cursor: str | None, limit: int
    ) -> Page[Conversation]:
        """List the principal's conversations, newest first, ties by falling id; `limit` is 1-200.

        Raises:
            ValidationFailed: The cursor is not one of this list's.
        """

    async def rename(
        self, conversation_id: str, *, principal: Principal, title: str
    ) -> Conversation:
        """Give it another title, 1 to 200 characters, and return it.

        Raises:
            ConversationNotFound: The principal has none of this id.
        """

    async def delete(self, conversation_id: str, *, principal: Principal) -> None:
        """Remove the conversation, its messages and its runs; nothing can be kept in it again.

        Raises:
            ConversationNotFound: The principal has none of this id.
        """

    async def messages(
        self, conversation_id: str, *, principal: Principal, cursor: str | None, limit: int
    ) -> Page[Message]:
        """List its messages in the order they were kept; `limit` is 1 to 200.

        Raises:
            ConversationNotFound: The principal has none of this id.
            ValidationFailed: The cursor is not one of this list's.
        """

    async def latest_messages(
        self, conversation_id: str, *, principal: Principal, limit: int
    ) -> Sequence[Message]:
        """Return its last messages, oldest first; `limit` is 1 to 200.

        Raises:
            ConversationNotFound: The principal has none of this id.
        """


class RunStore(Protocol):
    """Runs, each with its lease and its one terminator.

    A lease is dead only when its counter did not move for a full term on the observer's own
    monotonic clock: `live` shows the counters, `end_dead` ends what did not move.
    Every method may raise StoreUnavailable.
    """

    async def begin(self, run: Run, *, question: Message, title: str) -> None:
        """Keep a new run and the asker's message in one write, if the conversation is free.

        A conversation without a title gets `title`.

        Raises:
            ConversationNotFound: The run's principal has no such conversation.
            ThreadBusy: Another run of the conversation is live; the error names it.
        """

    async def beat(self, run_id: str, *, tenant: str, owner: str, state: RunState) -> None:
        """Raise the run's counter and set its live state (`queued` or `running`).

        Raises:
            LeaseLost: Another owner has it, it has ended, or its conversation is gone.
        """

    async def end(
        self,
        run_id: str,
        *,
        tenant: str,
        owner: str,
        state: RunState,
        terminator: Terminator,
        event_id: int,
        answer: Message | None,
        at: datetime,
    ) -> Run:
        """Keep the terminator and the assistant message in one write, and free the conversation.

        The first end wins: if the run has ended, nothing is written.

        Returns:
            The run as it is kept: with this terminator, or with the one that came first.

        Raises:
            RunNotFound: The run or its conversation was deleted meanwhile; nothing is written.
            LeaseLost: It is live and has another owner; nothing is written.
        """

    async def get(self, run_id: str, *, principal: Principal) -> Run:
        """Return one run.

        Raises:
            RunNotFound: The principal has none of this id.
        """

    async def live(self) -> Mapping[tuple[str, str], int]:
        """Return the beat of every live run of every tenant, by (tenant, run id)."""

    async def end_dead(
        self,
        run_id: str,
        *,
        tenant: str,
        beat: int,
        terminator: Terminator,
        event_id: int,
        answer: Message,
        at: datetime,
    ) -> bool:
        """End a live run as `failed` if its counter still is `beat`; say if this call did.

        `answer` is kept as the run's assistant message: its `id`, `conversation_id` and `run_id`,
        and the terminator's `message_id`, are set from the run by the store, so that the caller
        needs no second read.
        """
