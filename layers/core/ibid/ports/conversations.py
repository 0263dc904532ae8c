"""Where conversations and their messages are kept."""

from collections.abc import Collection, Sequence
from typing import Protocol

from ibid.domain.conversations import Conversation, Message
from ibid.domain.pages import Page
from ibid.domain.principals import Principal


class ConversationStore(Protocol):
    """Conversations and their messages; reads see every acknowledged write.

    A conversation belongs to one principal; to anyone else it does not exist.
    Every method may raise StoreUnavailable.
    """

    async def create(self, conversation: Conversation, *, idempotency: str | None = None) -> None:
        """Keep a new conversation.

        Args:
            conversation: With an id that was never used.
            idempotency: The id of the idempotency record that it answers, deleted with it.

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

    async def delete(self, conversation_id: str, *, principal: Principal) -> Collection[str]:
        """Remove the conversation; nothing can be kept in it again.

        With it go its messages, runs, journals and feedback, and the idempotency records that it
        and its runs answered. Its checkpoint threads are another store's.

        Returns:
            The turns of all runs that went: no other run of it will ever be.

        Raises:
            ConversationNotFound: The principal has none of this id.
        """

    async def messages(
        self, conversation_id: str, *, principal: Principal, cursor: str | None, limit: int
    ) -> Page[Message]:
        """List its messages in the order they were kept; `limit` is 1 to 200.

        A question that was queued behind a run may come after that run's answer.

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
