"""Projects in the app table: one item each, and a pointer for every member."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.deletion import Deletion
from ibid.adapters.dynamodb.records.pointers import ID, MOMENT, page_of
from ibid.adapters.dynamodb.records.table import ConditionFailed, Table
from ibid.adapters.dynamodb.records.wire import Item, Value
from ibid.adapters.dynamodb.records.writes import Write
from ibid.adapters.records import codec
from ibid.domain.errors import LeaseLost, ProjectNotFound
from ibid.domain.pages import Page
from ibid.domain.projects import Project, ProjectSettings, ProjectStatus, Role, Source

THERE = "attribute_exists(#pk) AND attribute_not_exists(#gone)"

_MOST_NAMED = 100
_PAGE = 100


class DynamoProjects:
    """Implements ProjectStore; `reindex_in_progress` is whether the item names a live job."""

    def __init__(self, table: Table, deletion: Deletion) -> None:
        self._table = table
        self._deletion = deletion

    async def create(self, project: Project) -> None:
        """Keep a new project, of at most 99 members."""
        created = codec.moment_to_int(project.created_at)
        writes = [
            Write(
                key=keys.project(project.tenant, project.id),
                item=_attributes(project),
                condition="attribute_not_exists(#pk)",
            ),
            *(
                Write(
                    key=(
                        keys.member(project.tenant, subject),
                        keys.dated(keys.PROJECTS, created, project.id),
                    ),
                    item={ID: project.id, MOMENT: created},
                )
                for subject in project.members
            ),
        ]
        try:
            await self._table.run(lambda: self._table.transact(*writes))
        except ConditionFailed as error:
            raise ValueError("the project's id was used before") from error

    async def get(self, project_id: str, *, tenant: str) -> Project:
        """Return one project."""
        item = await self._table.run(lambda: self._table.get(keys.project(tenant, project_id)))
        if item is None:
            raise _missing(project_id)
        return project_of(tenant, project_id, item)

    async def list_for(
        self, *, tenant: str, subject: str, cursor: str | None, limit: int
    ) -> Page[Project]:
        """List the projects of which the subject is a member, newest first."""
        return await self._table.run(lambda: self._page(tenant, subject, cursor, limit))

    async def named(self, name: str, *, tenant: str, subject: str) -> Sequence[Project]:
        """Return the projects of this exact name of which the subject is a member, newest first."""

        def work() -> Sequence[Project]:
            found: list[Project] = []
            cursor: str | None = None
            while True:
                page = self._page(tenant, subject, cursor, _PAGE)
                found.extend(project for project in page.items if project.name == name)
                cursor = page.next_cursor
                if cursor is None or len(found) >= _MOST_NAMED:
                    return found[:_MOST_NAMED]

        return await self._table.run(work)

    def _page(self, tenant: str, subject: str, cursor: str | None, limit: int) -> Page[Project]:
        def read(project_id: str, item: Item) -> Project | None:
            project = project_of(tenant, project_id, item)
            return project if subject in project.members else None

        return page_of(
            self._table,
            keys.member(tenant, subject),
            prefix=keys.PROJECTS,
            key_of=lambda project_id: keys.project(tenant, project_id),
            read=read,
            scope=("projects", tenant, subject),
            cursor=cursor,
            limit=limit,
        )

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
        changes = {
            "label": name,
            "source": codec.source_to_json(source),
            "language": reply_language,
            "settings": None if settings is None else codec.settings_to_json(settings),
            "status": status,
        }
        given = {field: value for field, value in changes.items() if value is not None}
        if not given:
            return await self.get(project_id, tenant=tenant)
        return await self._change(tenant, project_id, given)

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
        given: dict[str, Value | None] = {
            "status": ProjectStatus.READY,
            "generation": generation,
            "signature": embedding_signature,
            "chunks": chunk_count,
            "paths": path_count,
            "sha": commit_sha,
        }
        return await self._change(tenant, project_id, given, job_id=job_id)

    async def _change(
        self,
        tenant: str,
        project_id: str,
        given: Mapping[str, Value | None],
        *,
        job_id: str | None = None,
    ) -> Project:
        """Set these fields, and remove those that are None; with a job, if it holds the project."""
        values = {field: value for field, value in given.items() if value is not None}
        absent = [f"#{field}" for field, value in given.items() if value is None]
        update = "SET " + ", ".join(f"#{field} = :{field}" for field in values)
        write = Write(
            key=keys.project(tenant, project_id),
            update=update + (" REMOVE " + ", ".join(absent) if absent else ""),
            condition=THERE if job_id is None else THERE + " AND #job = :job",
            values=values if job_id is None else {**values, "job": job_id},
        )
        try:
            item = await self._table.run(lambda: self._table.write(write))
        except ConditionFailed as error:
            if error.item is None or "gone" in error.item:
                raise _missing(project_id) from error
            raise LeaseLost(f"job {job_id!r} does not hold project {project_id!r}") from error
        return project_of(tenant, project_id, item)

    async def delete(self, project_id: str, *, tenant: str) -> Collection[str]:
        """Remove the project and all that belongs to it."""
        return await self._table.run(lambda: self._deletion.project(tenant, project_id))


def project_of(tenant: str, project_id: str, item: Item) -> Project:
    """Make the project of an item."""
    members = json.loads(item["members"])
    return Project(
        tenant=tenant,
        id=project_id,
        name=item["label"],
        members={subject: Role(role) for subject, role in members.items()},
        status=ProjectStatus(item["status"]),
        source=codec.source_from_json(item.get("source")),
        reply_language=item.get("language"),
        settings=codec.settings_from_json(item["settings"]),
        active_generation=item.get("generation"),
        reindex_in_progress="job" in item,
        embedding_signature=item.get("signature"),
        chunk_count=item["chunks"],
        path_count=item["paths"],
        commit_sha=item.get("sha"),
        created_at=codec.moment_from_int(item["created"]),
    )


def _attributes(project: Project) -> dict[str, Any]:
    return {
        "label": project.name,
        "members": json.dumps(dict(project.members)),
        "status": project.status,
        "source": codec.source_to_json(project.source),
        "language": project.reply_language,
        "settings": codec.settings_to_json(project.settings),
        "generation": project.active_generation,
        "signature": project.embedding_signature,
        "chunks": project.chunk_count,
        "paths": project.path_count,
        "sha": project.commit_sha,
        "created": codec.moment_to_int(project.created_at),
    }


def _missing(project_id: str) -> ProjectNotFound:
    return ProjectNotFound(f"no project {project_id!r}")
