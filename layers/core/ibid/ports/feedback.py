"""Where ratings of answers are kept."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """One subject's rating of one answered run.

    Attributes:
        comment: At most 500 characters; None where nothing was said.
    """

    tenant: str
    subject: str
    conversation_id: str
    run_id: str
    rating: Literal["up", "down"]
    comment: str | None
    created_at: datetime


class FeedbackStore(Protocol):
    """Ratings, one a subject and run; a later one replaces it. Deleted with the conversation.

    Every method may raise StoreUnavailable.
    """

    async def put(self, feedback: Feedback) -> None:
        """Keep a rating.

        Raises:
            ConversationNotFound: The subject has no such conversation.
        """

    async def get(self, run_id: str, *, tenant: str, subject: str) -> Feedback | None:
        """Return a subject's rating of a run, or None."""
