"""Ratings of answers in the app store."""

import sqlite3

from ibid.adapters.records import codec
from ibid.adapters.sqlite.conversations import find
from ibid.adapters.sqlite.database import Database
from ibid.domain.principals import Principal
from ibid.ports.feedback import Feedback


class SqliteFeedback:
    """Implements FeedbackStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, feedback: Feedback) -> None:
        """Keep a rating; a later one of the same run replaces it."""
        principal = Principal(tenant=feedback.tenant, subject=feedback.subject)

        def work(connection: sqlite3.Connection) -> None:
            find(connection, feedback.conversation_id, principal)
            connection.execute(
                """
                INSERT OR REPLACE INTO feedback (
                    tenant, subject, run_id, conversation_id, rating, comment, created_at
                ) VALUES (?, ?, ?, ?, ?, ?, ?)
                """,
                (
                    feedback.tenant,
                    feedback.subject,
                    feedback.run_id,
                    feedback.conversation_id,
                    feedback.rating,
                    feedback.comment,
                    codec.moment_to_int(feedback.created_at),
                ),
            )

        await self._database.write(work)

    async def get(self, run_id: str, *, tenant: str, subject: str) -> Feedback | None:
        """Return a subject's rating of a run, or None."""

        def work(connection: sqlite3.Connection) -> Feedback | None:
            row = connection.execute(
                "SELECT * FROM feedback WHERE tenant = ? AND subject = ? AND run_id = ?",
                (tenant, subject, run_id),
            ).fetchone()
            return None if row is None else read(row)

        return await self._database.read(work)


def read(row: sqlite3.Row) -> Feedback:
    """Make the rating of a row."""
    return Feedback(
        tenant=row["tenant"],
        subject=row["subject"],
        conversation_id=row["conversation_id"],
        run_id=row["run_id"],
        rating=row["rating"],
        comment=row["comment"],
        created_at=codec.moment_from_int(row["created_at"]),
    )
