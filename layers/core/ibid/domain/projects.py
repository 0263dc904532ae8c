"""Projects, their sources, and the jobs that index them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    """What a member may do, each more than the one before."""

    VIEWER = "viewer"
    EDITOR = "editor"
    OWNER = "owner"


class ProjectStatus(StrEnum):
    """`ready` as soon as one generation can be searched, and from then on."""

    EMPTY = "empty"
    INDEXING = "indexing"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSource:
    """A folder of this machine; `path` is absolute."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSource:
    """A repository over https; `ref` is a branch, a tag or a commit, None the remote's HEAD.

    `credential` names a secret, it is never the secret itself.
    """

    url: str
    ref: str | None = None
    credential: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadSource:
    """An archive in the object store (`.zip`, `.tar`, `.tar.gz`, `.tgz`)."""

    upload_id: str
    file_name: str


Source = FolderSource | GitSource | UploadSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSettings:
    """What a project decides for its turns.

    Attributes:
        classify_intent: Ask the model for the intent before the first search.
        grade_evidence: Ask the model if the passages suffice.
        max_retrieval_attempts: Searches a turn, 1 to 5.
    """

    classify_intent: bool = True
    grade_evidence: bool = True
    max_retrieval_attempts: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A corpus of a tenant, its settings and its members.

    Attributes:
        members: Role by subject; a subject of the tenant that is not in it is a stranger.
        active_generation: The one that is searched; None before the first flip.
        embedding_signature: Of the active generation's vectors; None while it is lexical.
        chunk_count: Chunks of the active generation.
        path_count: Files of the active generation.
        commit_sha: The active generation's commit, None where the source has none.
    """

    tenant: str
    id: str
    name: str
    members: Mapping[str, Role]
    status: ProjectStatus
    source: Source | None
    reply_language: str | None
    settings: ProjectSettings
    active_generation: int | None
    reindex_in_progress: bool
    embedding_signature: str | None
    chunk_count: int
    path_count: int
    commit_sha: str | None
    created_at: datetime


class JobState(StrEnum):
    """`queued`, `running`, and the ends."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatistics:
    """Files by what became of them; `skipped` counts them by reason."""

    scanned: int = 0
    new: int = 0
    modified: int = 0
    deleted: int = 0
    unchanged: int = 0
    failed: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    chunks: int = 0
    chunks_embedded: int = 0
    chunks_to_embed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobError:
    """Why a job failed, with a stable code."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One indexing of a project.

    Attributes:
        phase: What it does now, for a progress bar: fetching, scanning, lexical, embedding, done.
    """

    tenant: str
    id: str
    project_id: str
    state: JobState
    phase: str
    statistics: JobStatistics
    error: JobError | None
    started_at: datetime
    finished_at: datetime | None
