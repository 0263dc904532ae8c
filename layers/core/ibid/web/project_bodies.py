"""Projects, sources and jobs as they are sent and taken (design.md §5.0)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints

from ibid.domain.projects import (
    Job,
    JobState,
    JobStatistics,
    Project,
    ProjectSettings,
    ProjectStatus,
)
from ibid.web.wire import Asked, JsonInteger, ReplyLanguage, Title, WellFormed, Wire, is_absent

Named = Annotated[str, StringConstraints(min_length=1, max_length=2_000), WellFormed]


class GitSourceBody(Asked):
    """A repository over https; no `ref` means the remote's HEAD."""

    kind: Literal["git"]
    url: Named
    ref: Annotated[str, StringConstraints(min_length=1, max_length=255), WellFormed] | None = None


class FolderSourceBody(Asked):
    """A folder of the server's machine, below one of `IBID_FOLDERS`."""

    kind: Literal["folder"]
    path: Named


class UploadSourceBody(Asked):
    """An archive that was uploaded to the project before."""

    kind: Literal["upload"]
    upload_id: Annotated[str, StringConstraints(min_length=1, max_length=64), WellFormed]


class S3SourceBody(Asked):
    """Objects of a bucket; taken only by a server whose stores are in the cloud."""

    kind: Literal["s3"]
    bucket: Named
    prefix: Annotated[str, StringConstraints(max_length=1_024), WellFormed] = ""


SourceBody = Annotated[
    GitSourceBody | FolderSourceBody | UploadSourceBody | S3SourceBody,
    Field(discriminator="kind"),
]


class SettingsBody(Asked):
    """What a project decides for its turns; what is left out keeps its value."""

    classify_intent: bool | None = None
    grade_evidence: bool | None = None
    max_retrieval_attempts: Annotated[int, Field(ge=1, le=5), JsonInteger] | None = None

    def over(self, settings: ProjectSettings) -> ProjectSettings:
        """Return the settings with what is given here in its place."""
        return ProjectSettings(
            classify_intent=_given(self.classify_intent, settings.classify_intent),
            grade_evidence=_given(self.grade_evidence, settings.grade_evidence),
            max_retrieval_attempts=self.max_retrieval_attempts or settings.max_retrieval_attempts,
        )


def _given(value: bool | None, otherwise: bool) -> bool:  # noqa: FBT001 - two values of one field
    return otherwise if value is None else value


class NewProjectBody(Asked):
    """A project to create; naming a source does not index it yet."""

    name: Title
    source: SourceBody | None = None
    reply_language: ReplyLanguage | None = None
    settings: SettingsBody | None = None


class ProjectChangesBody(Asked):
    """What to change of a project; null or absent leaves a field as it is."""

    name: Title | None = None
    source: SourceBody | None = None
    reply_language: ReplyLanguage | None = None
    settings: SettingsBody | None = None


class ProjectBody(Wire):
    """A project; counts and commit are those of the active generation."""

    id: str
    name: str
    status: ProjectStatus
    active_generation: int | None
    reindex_in_progress: bool
    embedding_signature: str | None
    chunk_count: int
    path_count: int
    commit_sha: str | None
    created_at: datetime

    @classmethod
    def of(cls, project: Project) -> Self:
        """Translate one project."""
        return cls(
            id=project.id,
            name=project.name,
            status=project.status,
            active_generation=project.active_generation,
            reindex_in_progress=project.reindex_in_progress,
            embedding_signature=project.embedding_signature,
            chunk_count=project.chunk_count,
            path_count=project.path_count,
            commit_sha=project.commit_sha,
            created_at=project.created_at,
        )


class IndexRequestBody(Asked):
    """What to index: a new source, or the project's own; `force` even if nothing changed."""

    source: SourceBody | None = None
    force: bool = False


class JobStartedBody(Wire):
    """The job that was begun, or with `enqueued` false the one that is under way."""

    job_id: str
    enqueued: bool


class StatisticsBody(Wire):
    """Files by what became of them, `skipped` by reason; chunks, and how many have vectors."""

    scanned: int
    new: int
    modified: int
    deleted: int
    unchanged: int
    failed: int
    skipped: Mapping[str, int]
    chunks: int
    chunks_embedded: int
    chunks_to_embed: int

    @classmethod
    def of(cls, statistics: JobStatistics) -> Self:
        """Translate a job's progress."""
        return cls(
            scanned=statistics.scanned,
            new=statistics.new,
            modified=statistics.modified,
            deleted=statistics.deleted,
            unchanged=statistics.unchanged,
            failed=statistics.failed,
            skipped=dict(statistics.skipped),
            chunks=statistics.chunks,
            chunks_embedded=statistics.chunks_embedded,
            chunks_to_embed=statistics.chunks_to_embed,
        )


class JobErrorBody(Wire):
    """Why a job failed."""

    code: str
    message: str


class JobBody(Wire):
    """One indexing of a project; `error` is there only once it failed."""

    id: str
    state: JobState
    statistics: StatisticsBody
    error: JobErrorBody | None = Field(default=None, exclude_if=is_absent)
    started_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, job: Job) -> Self:
        """Translate one job."""
        error = job.error and JobErrorBody(code=job.error.code, message=job.error.message)
        return cls(
            id=job.id,
            state=job.state,
            statistics=StatisticsBody.of(job.statistics),
            error=error,
            started_at=job.started_at,
            finished_at=job.finished_at,
        )


class IndexedPathsBody(Wire):
    """Indexed paths in code point order; `truncated` says that there are more."""

    paths: tuple[str, ...]
    truncated: bool
