"""`ibid projects`."""

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ibid.bootstrap.runtime import open_runtime
from ibid.cli.environment import settings_for
from ibid.cli.running import run
from ibid.cli.terminal import printable
from ibid.cli.workspace import all_projects
from ibid.domain.projects import Project


def list_projects(*, data: Path | None, as_json: bool) -> None:
    """Print every project of the local principal, newest first."""
    projects = run(_projects(data))
    if as_json:
        print(json.dumps([_row(project) for project in projects]))  # noqa: T201 - a script reads it
        return
    console = Console()
    if not projects:
        console.print("No projects yet: ibid index PATH")
        return
    table = Table("name", "status", "files", "chunks", "vectors", "commit")
    table.add_column("id", no_wrap=True, min_width=32)  # whole: it is what one copies
    for project in projects:
        table.add_row(
            printable(project.name),
            str(project.status),
            str(project.path_count),
            str(project.chunk_count),
            "yes" if project.embedding_signature else "no",
            (project.commit_sha or "")[:10],
            project.id,
        )
    console.print(table)


async def _projects(data: Path | None) -> list[Project]:
    async with open_runtime(settings_for(data=data)) as runtime:
        return await all_projects(runtime)


def _row(project: Project) -> dict[str, object]:
    return {
        "id": project.id,
        "name": project.name,
        "status": str(project.status),
        "activeGeneration": project.active_generation,
        "embeddingSignature": project.embedding_signature,
        "chunkCount": project.chunk_count,
        "pathCount": project.path_count,
        "commitSha": project.commit_sha,
        "createdAt": project.created_at.isoformat(),
    }
