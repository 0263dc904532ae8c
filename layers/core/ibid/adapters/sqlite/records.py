"""The embedded app store: one SQLite file behind all ports of app records."""

from pathlib import Path

from ibid.adapters.sqlite.conversations import SqliteConversations
from ibid.adapters.sqlite.database import Database
from ibid.adapters.sqlite.feedback import SqliteFeedback
from ibid.adapters.sqlite.idempotency import SqliteIdempotency
from ibid.adapters.sqlite.jobs import SqliteJobs
from ibid.adapters.sqlite.projects import SqliteProjects
from ibid.adapters.sqlite.runs import SqliteRuns


class SqliteRecords:
    """The stores of one file; several processes may have it open.

    Attributes:
        projects: The ProjectStore.
        jobs: The JobStore.
        conversations: The ConversationStore.
        runs: The RunStore.
        idempotency: The IdempotencyStore.
        feedback: The FeedbackStore.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.projects = SqliteProjects(database)
        self.jobs = SqliteJobs(database)
        self.conversations = SqliteConversations(database)
        self.runs = SqliteRuns(database)
        self.idempotency = SqliteIdempotency(database)
        self.feedback = SqliteFeedback(database)

    @classmethod
    async def open(cls, path: Path, *, busy_s: float = 2.0) -> "SqliteRecords":
        """Open the file, made if need be; the errors are those of `Database.open`.

        Args:
            path: Of the file; SQLite keeps two more beside it.
            busy_s: Seconds to wait while another process writes, above 0.
        """
        return cls(await Database.open(path, busy_s=busy_s))

    async def close(self) -> None:
        """Finish what was handed over and close the file; repeatable."""
        await self._database.close()
