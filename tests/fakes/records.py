"""The app store in memory: every method yields to the loop once, then does its work at a stroke."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from ibid.domain.conversations import Conversation, Message
from ibid.domain.errors import JobNotFound, LeaseLost
from ibid.domain.pages import Page
from ibid.domain.principals import Principal
from ibid.domain.projects import (
    Job,
    JobError,
    JobState,
    JobStatistics,
    Project,
    ProjectSettings,
    ProjectStatus,
    Source,
)
from ibid.ports.conversations import ConversationStore
from ibid.ports.feedback import FeedbackStore
from ibid.ports.idempotency import IdempotencyStore
from ibid.ports.projects import JobStore, ProjectStore
from ibid.ports.runs import RunStore
from tests.fakes.key_records import FakeFeedback, FakeIdempotency
from tests.fakes.rows import LIVE_JOBS, Key, Leased, Rows, page
from tests.fakes.run_records import FakeRuns


class Records(Protocol):
    """The stores of one app store."""

    @property
    def projects(self) -> ProjectStore: ...
    @property
    def jobs(self) -> JobStore: ...
    @property
    def conversations(self) -> ConversationStore: ...
    @property
    def runs(self) -> RunStore: ...
    @property
    def idempotency(self) -> IdempotencyStore: ...
    @property
    def feedback(self) -> FeedbackStore: ...


class FakeRecords:
    """All stores over the same rows."""

    def __init__(self) -> None:
        self.rows = rows = Rows()
        self.projects = FakeProjects(rows)
        self.jobs = FakeJobs(rows)
        self.conversations = FakeConversations(rows)
        self.runs = FakeRuns(rows)
        self.idempotency = FakeIdempotency(rows)
        self.feedback = FakeFeedback(rows)

    async def close(self) -> None:
        """Do nothing, as there is nothing to close."""


class FakeProjects:
    """Implements ProjectStore."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def create(self, project: Project) -> None:
        await asyncio.sleep(0)
        if (project.tenant, project.id) in self._rows.projects:
            raise ValueError("the id was used before")
        self._rows.projects[project.tenant, project.id] = project

    async def get(self, project_id: str, *, tenant: str) -> Project:
        await asyncio.sleep(0)
        return self._rows.project(tenant, project_id)

    def _newest(self, tenant: str, subject: str) -> Sequence[Project]:
        mine = [
            self._rows.project(tenant, project.id)
            for project in self._rows.projects.values()
            if project.tenant == tenant and subject in project.members
        ]
        return sorted(mine, key=lambda project: (project.created_at, project.id), reverse=True)

    async def list_for(
        self, *, tenant: str, subject: str, cursor: str | None, limit: int
    ) -> Page[Project]:
        await asyncio.sleep(0)
        return page(
            self._newest(tenant, subject),
            lambda project: project.id,
            scope=("projects", tenant, subject),
            cursor=cursor,
            limit=limit,
        )

    async def named(self, name: str, *, tenant: str, subject: str) -> Sequence[Project]:
        await asyncio.sleep(0)
        named = [project for project in self._newest(tenant, subject) if project.name == name]
        return named[:100]

    async def update(
        self,
        project_id: str,
        *,
        tenant: str,
        name: str | None = None,
        source: Source | None = None,
        reply_language: str | None = None,
        settings: ProjectSettings | None = None,
        status: ProjectStatus | None = None,
    ) -> Project:
        await asyncio.sleep(0)
        project = self._rows.project(tenant, project_id)
        project = replace(
            project,
            name=project.name if name is None else name,
            source=project.source if source is None else source,
            reply_language=project.reply_language if reply_language is None else reply_language,
            settings=project.settings if settings is None else settings,
            status=project.status if status is None else status,
        )
        self._rows.projects[tenant, project_id] = project
        return project

    async def activate(
        self,
        project_id: str,
        *,
        tenant: str,
        generation: int,
        job_id: str,
        embedding_signature: str | None,
        chunk_count: int,
        path_count: int,
        commit_sha: str | None,
    ) -> Project:
        await asyncio.sleep(0)
        project = self._rows.project(tenant, project_id)
        live = self._rows.live_job(tenant, project_id)
        if live is None or live.id != job_id:
            raise LeaseLost(f"job {job_id!r} does not hold project {project_id!r}")
        project = replace(
            project,
            status=ProjectStatus.READY,
            active_generation=generation,
            embedding_signature=embedding_signature,
            chunk_count=chunk_count,
            path_count=path_count,
            commit_sha=commit_sha,
        )
        self._rows.projects[tenant, project_id] = project
        return project

    async def delete(self, project_id: str, *, tenant: str) -> Collection[str]:
        await asyncio.sleep(0)
        turns: set[str] = set()
        self._rows.projects.pop((tenant, project_id), None)
        for key, row in list(self._rows.jobs.items()):
            if (key[0], row.job.project_id) == (tenant, project_id):
                del self._rows.jobs[key]
        for key, conversation in list(self._rows.conversations.items()):
            if (key[0], conversation.project_id) == (tenant, project_id):
                turns |= self._rows.drop_conversation(key)
        return turns


class FakeJobs:
    """Implements JobStore."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def begin(self, job: Job, *, owner: str) -> Job | None:
        await asyncio.sleep(0)
        self._rows.project(job.tenant, job.project_id)
        live = self._rows.live_job(job.tenant, job.project_id)
        if live is None:
            self._rows.jobs[job.tenant, job.id] = Leased(job, owner)
        return live

    def _owned(self, job_id: str, tenant: str, owner: str) -> Leased:
        row = self._rows.jobs.get((tenant, job_id))
        if row is None or row.owner != owner or row.job.state not in LIVE_JOBS:
            raise LeaseLost(f"job {job_id!r} has ended, or has another owner")
        return row

    def _end(self, row: Leased, job: Job) -> None:
        row.job = job
        key = (job.tenant, job.project_id)
        project = self._rows.projects[key]
        if job.state is JobState.FAILED and project.active_generation is None:
            self._rows.projects[key] = replace(project, status=ProjectStatus.FAILED)

    async def beat(
        self, job_id: str, *, tenant: str, owner: str, phase: str, statistics: JobStatistics
    ) -> None:
        await asyncio.sleep(0)
        row = self._owned(job_id, tenant, owner)
        row.beat += 1
        row.job = replace(row.job, state=JobState.RUNNING, phase=phase, statistics=statistics)

    async def end(
        self,
        job_id: str,
        *,
        tenant: str,
        owner: str,
        state: JobState,
        statistics: JobStatistics,
        error: JobError | None,
        at: datetime,
    ) -> None:
        await asyncio.sleep(0)
        row = self._owned(job_id, tenant, owner)
        ended = replace(row.job, state=state, statistics=statistics, error=error, finished_at=at)
        self._end(row, ended)

    async def live(self) -> Mapping[Key, int]:
        await asyncio.sleep(0)
        return {key: row.beat for key, row in self._rows.jobs.items() if row.job.state in LIVE_JOBS}

    async def try_write(self, job_id: str, *, tenant: str) -> None:
        self._rows.jobs.get((tenant, job_id))
        await asyncio.sleep(0)

    async def take_over(self, job_id: str, *, tenant: str, beat: int, at: datetime) -> bool:
        await asyncio.sleep(0)
        row = self._rows.jobs.get((tenant, job_id))
        if row is None or row.beat != beat or row.job.state not in LIVE_JOBS:
            return False
        lost = JobError(code="JOB_LOST", message="The process that ran the job died.")
        self._end(row, replace(row.job, state=JobState.FAILED, error=lost, finished_at=at))
        return True

    async def get(self, job_id: str, *, tenant: str) -> Job:
        await asyncio.sleep(0)
        if (tenant, job_id) not in self._rows.jobs:
            raise JobNotFound(f"no job {job_id!r}")
        return self._rows.jobs[tenant, job_id].job

    async def list_for(
        self, project_id: str, *, tenant: str, cursor: str | None, limit: int
    ) -> Page[Job]:
        await asyncio.sleep(0)
        jobs = [
            row.job
            for row in self._rows.jobs.values()
            if (row.job.tenant, row.job.project_id) == (tenant, project_id)
        ]
        return page(
            sorted(jobs, key=lambda job: (job.started_at, job.id), reverse=True),
            lambda job: job.id,
            scope=("jobs", tenant, project_id),
            cursor=cursor,
            limit=limit,
        )


class FakeConversations:
    """Implements ConversationStore."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def create(self, conversation: Conversation, *, idempotency: str | None = None) -> None:
        await asyncio.sleep(0)
        self._rows.project(conversation.tenant, conversation.project_id)
        if (conversation.tenant, conversation.id) in self._rows.conversations:
            raise ValueError("the id was used before")
        self._rows.conversations[conversation.tenant, conversation.id] = conversation
        self._rows.bind_key(idempotency, conversation.tenant, conversation.id)

    async def get(self, conversation_id: str, *, principal: Principal) -> Conversation:
        await asyncio.sleep(0)
        return self._rows.conversation(conversation_id, principal)

    async def list_for(
        self, *, principal: Principal, cursor: str | None, limit: int
    ) -> Page[Conversation]:
        await asyncio.sleep(0)
        mine = [
            conversation
            for conversation in self._rows.conversations.values()
            if (conversation.tenant, conversation.subject) == (principal.tenant, principal.subject)
        ]
        return page(
            sorted(mine, key=lambda one: (one.created_at, one.id), reverse=True),
            lambda conversation: conversation.id,
            scope=("conversations", principal.tenant, principal.subject),
            cursor=cursor,
            limit=limit,
        )

    async def rename(
        self, conversation_id: str, *, principal: Principal, title: str
    ) -> Conversation:
        await asyncio.sleep(0)
        renamed = replace(self._rows.conversation(conversation_id, principal), title=title)
        self._rows.conversations[principal.tenant, conversation_id] = renamed
        return renamed

    async def delete(self, conversation_id: str, *, principal: Principal) -> Collection[str]:
        await asyncio.sleep(0)
        self._rows.conversation(conversation_id, principal)
        return self._rows.drop_conversation((principal.tenant, conversation_id))

    def _messages(self, conversation_id: str, principal: Principal) -> Sequence[Message]:
        self._rows.conversation(conversation_id, principal)
        return list(self._rows.messages.get((principal.tenant, conversation_id), []))

    async def messages(
        self, conversation_id: str, *, principal: Principal, cursor: str | None, limit: int
    ) -> Page[Message]:
        await asyncio.sleep(0)
        return page(
            self._messages(conversation_id, principal),
            lambda message: message.id,
            scope=("messages", principal.tenant, principal.subject, conversation_id),
            cursor=cursor,
            limit=limit,
        )

    async def latest_messages(
        self, conversation_id: str, *, principal: Principal, limit: int
    ) -> Sequence[Message]:
        await asyncio.sleep(0)
        return self._messages(conversation_id, principal)[-limit:]
