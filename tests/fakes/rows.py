"""The rows that the fake stores share, and what more than one of them does with them."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from ibid.domain.conversations import Conversation, Message, Run
from ibid.domain.errors import ConversationNotFound, ProjectNotFound, ValidationFailed
from ibid.domain.events import Entry
from ibid.domain.pages import Page
from ibid.domain.principals import Principal
from ibid.domain.projects import Job, JobState, Project
from ibid.ports.feedback import Feedback
from ibid.ports.idempotency import KeyRecord

T = TypeVar("T")
Key = tuple[str, str]  # tenant, id

LIVE_JOBS = {JobState.QUEUED, JobState.RUNNING}


@dataclass
class Leased:
    """A job and who holds it."""

    job: Job
    owner: str
    beat: int = 0


@dataclass
class Journal:
    """The entries of a run without its terminator; None once they were removed."""

    entries: list[Entry] | None = field(default_factory=list)
    expires_at: datetime | None = None


@dataclass
class KeyRow:
    """An idempotency record, when it ends, and the conversation that it goes with."""

    record: KeyRecord
    expires_at: datetime
    conversation_id: str | None = None


@dataclass
class Rows:
    """All that one fake app store keeps."""

    projects: dict[Key, Project] = field(default_factory=dict)
    jobs: dict[Key, Leased] = field(default_factory=dict)
    conversations: dict[Key, Conversation] = field(default_factory=dict)
    messages: dict[Key, list[Message]] = field(default_factory=dict)  # by conversation
    runs: dict[Key, Run] = field(default_factory=dict)
    journals: dict[Key, Journal] = field(default_factory=dict)  # by run
    keys: dict[Key, KeyRow] = field(default_factory=dict)
    feedback: dict[tuple[str, str, str], Feedback] = field(default_factory=dict)

    def live_job(self, tenant: str, project_id: str) -> Job | None:
        """The job that works on the project."""
        for (of, _), row in self.jobs.items():
            job = row.job
            if (of, job.project_id) == (tenant, project_id) and job.state in LIVE_JOBS:
                return job
        return None

    def project(self, tenant: str, project_id: str) -> Project:
        """A project as a reader sees it."""
        if (tenant, project_id) not in self.projects:
            raise ProjectNotFound(f"no project {project_id!r}")
        return replace(
            self.projects[tenant, project_id],
            reindex_in_progress=self.live_job(tenant, project_id) is not None,
        )

    def conversation(self, conversation_id: str, principal: Principal) -> Conversation:
        """A conversation of the principal's."""
        found = self.conversations.get((principal.tenant, conversation_id))
        if found is None or found.subject != principal.subject:
            raise ConversationNotFound(f"no conversation {conversation_id!r}")
        return found

    def runs_of(self, tenant: str, conversation_id: str) -> Iterator[Run]:
        """A conversation's runs, in any order."""
        for run in list(self.runs.values()):
            if (run.tenant, run.conversation_id) == (tenant, conversation_id):
                yield run

    def bind_key(self, record_id: str | None, tenant: str, conversation_id: str) -> None:
        """Let an idempotency record go with a conversation, if there is such a record."""
        row = None if record_id is None else self.keys.get((tenant, record_id))
        if row is not None:
            row.conversation_id = conversation_id

    def drop_conversation(self, key: Key) -> set[str]:
        """Remove a conversation and all that hangs on it; return its turns."""
        del self.conversations[key]
        self.messages.pop(key, None)
        for of, row in list(self.keys.items()):
            if (of[0], row.conversation_id) == key:
                del self.keys[of]
        turns = set()
        for run in self.runs_of(*key):
            turns.add(run.turn_id)
            del self.runs[run.tenant, run.id]
            del self.journals[run.tenant, run.id]
        for rated, feedback in list(self.feedback.items()):
            if (feedback.tenant, feedback.conversation_id) == key:
                del self.feedback[rated]
        return turns


def page(
    items: Sequence[T],
    position: Callable[[T], object],
    *,
    scope: tuple[str, ...],
    cursor: str | None,
    limit: int,
) -> Page[T]:
    """Cut a page out of items that are in order, each with a position that is JSON."""
    start = 0
    if cursor is not None:
        positions = [json.dumps([*scope, position(item)]) for item in items]
        if cursor not in positions:
            raise ValidationFailed("not a cursor of this list", {"cursor": "unknown"})
        start = positions.index(cursor) + 1
    cut = items[start : start + limit]
    more = start + limit < len(items)
    return Page(
        items=cut,
        next_cursor=json.dumps([*scope, position(cut[-1])]) if more else None,
    )
