"""Ratings in the app table, in the partition of the conversation that they are deleted with."""

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.table import ConditionFailed, Table
from ibid.adapters.dynamodb.records.threads import THERE
from ibid.adapters.dynamodb.records.writes import Write
from ibid.adapters.records import codec
from ibid.domain.conversations import parse_run_id
from ibid.domain.errors import ConversationNotFound
from ibid.ports.feedback import Feedback


class DynamoFeedback:
    """Implements FeedbackStore."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def put(self, feedback: Feedback) -> None:
        """Keep a rating."""
        place = parse_run_id(feedback.run_id)
        missing = ConversationNotFound(f"no conversation {feedback.conversation_id!r}")
        if place is None or place[0] != feedback.conversation_id:
            raise missing
        check = Write(
            key=keys.conversation(feedback.tenant, feedback.conversation_id),
            condition=THERE,
            values={"subject": feedback.subject},
        )
        rating = Write(
            key=keys.rating(feedback.tenant, *place, feedback.subject),
            item={
                "rating": feedback.rating,
                "comment": feedback.comment,
                "created": codec.moment_to_int(feedback.created_at),
            },
        )
        try:
            await self._table.run(lambda: self._table.transact(check, rating))
        except ConditionFailed as error:
            raise missing from error

    async def get(self, run_id: str, *, tenant: str, subject: str) -> Feedback | None:
        """Return a subject's rating of a run, or None."""
        place = parse_run_id(run_id)
        if place is None:
            return None
        key = keys.rating(tenant, *place, subject)
        item = await self._table.run(lambda: self._table.get(key))
        if item is None:
            return None
        return Feedback(
            tenant=tenant,
            subject=subject,
            conversation_id=place[0],
            run_id=run_id,
            rating=item["rating"],
            comment=item.get("comment"),
            created_at=codec.moment_from_int(item["created"]),
        )
