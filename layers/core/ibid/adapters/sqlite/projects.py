"""Projects and their members in the app store."""

import sqlite3
from collections.abc import Collection, Sequence

from ibid.adapters.records import codec, cursors
from ibid.adapters.sqlite.database import Database
from ibid.domain.errors import LeaseLost, ProjectNotFound
from ibid.domain.pages import Page
from ibid.domain.projects import Project, ProjectSettings, ProjectStatus, Role, Source

_SELECT = """
    SELECT projects.*, EXISTS (
        SELECT 1 FROM jobs
        WHERE jobs.tenant = projects.tenant AND jobs.project_id = projects.id
            AND jobs.finished_at IS NULL
    ) AS has_live_job
    FROM projects
"""
_GET = _SELECT + " WHERE tenant = ? AND id = ?"
_OF_SUBJECT = (
    _SELECT
    + """
    JOIN members ON members.tenant = projects.tenant AND members.project_id = projects.id
    WHERE members.tenant = ? AND members.subject = ?
    """
)
_NEWEST_FIRST = " ORDER BY projects.created_at DESC, projects.id DESC LIMIT ?"
_LIST = _OF_SUBJECT + _NEWEST_FIRST
_LIST_ON = _OF_SUBJECT + " AND (projects.created_at, projects.id) < (?, ?)" + _NEWEST_FIRST
_MOST_NAMED = 100
_FIND = _OF_SUBJECT + " AND projects.name = ?" + _NEWEST_FIRST


class SqliteProjects:
    """Implements ProjectStore; `reindex_in_progress` is whether a live job exists."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, project: Project) -> None:
        """Keep a new project; its id is the caller's, random and never used before."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO projects VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    project.tenant,
                    project.id,
                    project.name,
                    project.status,
                    codec.source_to_json(project.source),
                    project.reply_language,
                    codec.settings_to_json(project.settings),
                    project.active_generation,
                    project.embedding_signature,
                    project.chunk_count,
                    project.path_count,
                    project.commit_sha,
                    codec.moment_to_int(project.created_at),
                ),
            )
            connection.executemany(
                "INSERT INTO members VALUES (?, ?, ?, ?)",
                [
                    (project.tenant, subject, project.id, role)
                    for subject, role in project.members.items()
                ],
            )

        await self._database.write(work)

    async def get(self, project_id: str, *, tenant: str) -> Project:
        """Return one project."""
        return await self._database.read(lambda connection: _get(connection, tenant, project_id))

    async def list_for(
        self, *, tenant: str, subject: str, cursor: str | None, limit: int
    ) -> Page[Project]:
        """List the projects of which the subject is a member, newest first."""
        scope = ("projects", tenant, subject)
        start = None if cursor is None else cursors.decode(cursor, int, str, scope=scope)

        def work(connection: sqlite3.Connection) -> Sequence[Project]:
            if start is None:
                rows = connection.execute(_LIST, (tenant, subject, limit + 1))
            else:
                rows = connection.execute(_LIST_ON, (tenant, subject, *start, limit + 1))
            return [_project(connection, row) for row in rows.fetchall()]

        found = await self._database.read(work)
        if len(found) <= limit:
            return Page(items=found, next_cursor=None)
        last = found[limit - 1]
        position = cursors.encode(codec.moment_to_int(last.created_at), last.id, scope=scope)
        return Page(items=found[:limit], next_cursor=position)

    async def named(self, name: str, *, tenant: str, subject: str) -> Sequence[Project]:
        """Return the projects of this exact name of which the subject is a member, newest first."""

        def work(connection: sqlite3.Connection) -> Sequence[Project]:
            rows = connection.execute(_FIND, (tenant, subject, name, _MOST_NAMED)).fetchall()
            return [_project(connection, row) for row in rows]

        return await self._database.read(work)

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
        """Change what is given and return the project."""

        def work(connection: sqlite3.Connection) -> Project:
            connection.execute(
                """
                UPDATE projects SET
                    name = coalesce(?, name),
                    source = coalesce(?, source),
                    reply_language = coalesce(?, reply_language),
                    settings = coalesce(?, settings),
                    status = coalesce(?, status)
                WHERE tenant = ? AND id = ?
                """,
                (
                    name,
                    codec.source_to_json(source),
                    reply_language,
                    None if settings is None else codec.settings_to_json(settings),
                    status,
                    tenant,
                    project_id,
                ),
            )
            return _get(connection, tenant, project_id)

        return await self._database.write(work)

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
        """Flip the pointer to a sealed generation and make the project `ready`."""

        def work(connection: sqlite3.Connection) -> Project:
            _get(connection, tenant, project_id)
            holder = connection.execute(
                """
                SELECT id FROM jobs WHERE tenant = ? AND project_id = ? AND finished_at IS NULL
                """,
                (tenant, project_id),
            ).fetchone()
            if holder is None or holder["id"] != job_id:
                raise LeaseLost(f"job {job_id!r} does not hold project {project_id!r}")
            connection.execute(
                """
                UPDATE projects SET
                    status = ?, active_generation = ?, embedding_signature = ?,
                    chunk_count = ?, path_count = ?, commit_sha = ?
                WHERE tenant = ? AND id = ?
                """,
                (
                    ProjectStatus.READY,
                    generation,
                    embedding_signature,
                    chunk_count,
                    path_count,
                    commit_sha,
                    tenant,
                    project_id,
                ),
            )
            return _get(connection, tenant, project_id)

        return await self._database.write(work)

    async def delete(self, project_id: str, *, tenant: str) -> Collection[str]:
        """Remove the project and all that belongs to it, from the file's bytes too."""

        def work(connection: sqlite3.Connection) -> Collection[str]:
            turns = connection.execute(
                """
                SELECT DISTINCT turn_id FROM runs WHERE tenant = ? AND conversation_id IN
                    (SELECT id FROM conversations WHERE tenant = ? AND project_id = ?)
                """,
                (tenant, tenant, project_id),
            ).fetchall()
            connection.execute(
                "DELETE FROM projects WHERE tenant = ? AND id = ?", (tenant, project_id)
            )
            return {row["turn_id"] for row in turns}

        return await self._database.erase(work)


def _get(connection: sqlite3.Connection, tenant: str, project_id: str) -> Project:
    row = connection.execute(_GET, (tenant, project_id)).fetchone()
    if row is None:
        raise ProjectNotFound(f"no project {project_id!r}")
    return _project(connection, row)


def _project(connection: sqlite3.Connection, row: sqlite3.Row) -> Project:
    members = connection.execute(
        "SELECT subject, role FROM members WHERE tenant = ? AND project_id = ?",
        (row["tenant"], row["id"]),
    )
    return Project(
        tenant=row["tenant"],
        id=row["id"],
        name=row["name"],
        members={member["subject"]: Role(member["role"]) for member in members},
        status=ProjectStatus(row["status"]),
        source=codec.source_from_json(row["source"]),
        reply_language=row["reply_language"],
        settings=codec.settings_from_json(row["settings"]),
        active_generation=row["active_generation"],
        reindex_in_progress=bool(row["has_live_job"]),
        embedding_signature=row["embedding_signature"],
        chunk_count=row["chunk_count"],
        path_count=row["path_count"],
        commit_sha=row["commit_sha"],
        created_at=codec.moment_from_int(row["created_at"]),
    )
