"""`ibid index`, and what `ibid serve --index` shares with it."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ibid.bootstrap.runtime import Runtime, open_runtime
from ibid.cli.environment import settings_for
from ibid.cli.running import run
from ibid.cli.terminal import is_text, printable
from ibid.cli.workspace import keep_upload, new_project, projects_named
from ibid.domain.errors import SourceRejected, ValidationFailed
from ibid.domain.git_urls import repository_url
from ibid.domain.projects import (
    FolderSource,
    GitSource,
    Job,
    JobState,
    Project,
    Source,
    UploadSource,
)

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
POLL_S = 0.1
MAX_ARCHIVE_BYTES = 500_000_000
READ_BYTES = 1 << 20
MAX_NAME = 200
_HOST_AND_PATH = re.compile(r"(?:\w+@)?[\w-]+(?:\.[\w-]+)+[/:]")


def index_source(
    source: str, *, data: Path | None, name: str | None, force: bool, as_json: bool
) -> bool:
    """Index a source and show how it goes; True if the job succeeded."""
    return run(_index(source, data=data, name=name, force=force, as_json=as_json))


async def _index(
    source: str, *, data: Path | None, name: str | None, force: bool, as_json: bool
) -> bool:
    async with open_runtime(settings_for(data=data)) as runtime:
        project, job_id = await begin_indexing(runtime, source, name=name, force=force)
        console = Console(stderr=True, quiet=as_json)
        job = await watch_job(runtime, project, job_id, console)
        if as_json:
            print(json.dumps(_outcome(project, job)))  # noqa: T201 - a script reads it
        else:
            tell_outcome(project, job, console)
        return job.state is JobState.SUCCEEDED


async def begin_indexing(
    runtime: Runtime, source: str, *, name: str | None, force: bool
) -> tuple[Project, str]:
    """Find or make the project for a source, and begin or join its indexing job.

    A project is found by its name. One that was named after another source is left alone; a name
    that was given says which project is meant, and its source is then replaced.

    Raises:
        SourceRejected: The source can't be read, or its name is another source's.
        ValidationFailed: The name is too long or no text.
    """
    place = place_of(source)
    if name is not None and not (1 <= len(name) <= MAX_NAME and is_text(name)):
        raise ValidationFailed(f"A project's name has 1 to {MAX_NAME} characters of Unicode text")
    if name is None:
        name = _name_of(source)
        found = [p for p in await projects_named(runtime, name) if _is_of(p, place)]
        if not found and await projects_named(runtime, name):
            raise SourceRejected(
                f"Project {name!r} has another source: name this one's with --name"
            )
    else:
        found = list(await projects_named(runtime, name))
    project = found[0] if found else await new_project(runtime, name)
    if isinstance(place, Path):
        upload_id = await keep_upload(
            runtime, project, place, _pieces(place), max_bytes=MAX_ARCHIVE_BYTES
        )
        kept: Source = UploadSource(upload_id=upload_id, file_name=place.name)
    else:
        kept = place
    job_id, _ = await runtime.index_jobs.start(project, source=kept, force=force)
    return project, job_id


def place_of(source: str) -> FolderSource | GitSource | Path:
    """Return the folder or the repository that a source names, or the path of its archive.

    Raises:
        SourceRejected: It is none of them, not there, or a URL that may not be kept.
    """
    if "://" in source:
        repository_url(source)
        return GitSource(url=source)
    path = Path(source).expanduser().resolve()
    if path.is_dir():
        return FolderSource(path=str(path))
    if path.is_file() and path.name.lower().endswith(ARCHIVES):
        return path
    if path.exists():
        raise SourceRejected(f"{source!r} is neither a folder nor one of {', '.join(ARCHIVES)}")
    if _HOST_AND_PATH.match(source):
        raise SourceRejected(f"There is no {source!r}; a repository's URL begins with https://")
    raise SourceRejected(f"There is no {source!r}")


def _is_of(project: Project, place: FolderSource | GitSource | Path) -> bool:
    match project.source:
        case None:
            return True
        case UploadSource(file_name=file_name):
            return isinstance(place, Path) and place.name == file_name
        case _:
            return project.source == place


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, READ_BYTES):
            yield piece


def _name_of(source: str) -> str:
    """Name a project as its source is named: the folder, or the last part of the URL."""
    if "://" in source:
        last = urlsplit(source).path.rstrip("/").rsplit("/", 1)[-1]
        return last.removesuffix(".git") or "repository"
    base = Path(source).expanduser().resolve().name
    for ending in sorted(ARCHIVES, key=len, reverse=True):
        if base.lower().endswith(ending):
            return base[: -len(ending)] or base
    return base or "root"


async def watch_job(runtime: Runtime, project: Project, job_id: str, console: Console) -> Job:
    """Show a bar until the job ends, and return it as it ended."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    live = console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not live) as progress:
        bar = progress.add_task(f"{printable(project.name)}: queued", total=None)
        while True:
            job = await runtime.records.jobs.get(job_id, tenant=project.tenant)
            counts = job.statistics
            embedding = job.phase == "embedding"
            progress.update(
                bar,
                description=f"{printable(project.name)}: {job.phase}",
                completed=counts.chunks_embedded if embedding else counts.scanned,
                total=counts.chunks_to_embed if embedding else None,
            )
            if job.state in {JobState.SUCCEEDED, JobState.FAILED}:
                return job
            await asyncio.sleep(POLL_S)


def tell_outcome(project: Project, job: Job, console: Console) -> None:
    """Say in a few lines what was indexed, and what was left out and why."""
    counts = job.statistics
    if job.error is not None:
        console.print(
            f"{printable(project.name)}: failed, {printable(job.error.message)} ({job.error.code})",
            markup=False,
        )
        return
    console.print(
        f"{printable(project.name)}: {counts.chunks} chunks of {counts.scanned} files "
        f"({counts.new} new, {counts.modified} modified, {counts.deleted} deleted, "
        f"{counts.unchanged} unchanged), {counts.chunks_embedded} embedded",
        markup=False,
    )
    if counts.skipped:
        reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(counts.skipped.items()))
        console.print(f"{printable(project.name)}: skipped {reasons}", markup=False)


def _outcome(project: Project, job: Job) -> dict[str, object]:
    counts = job.statistics
    return {
        "projectId": project.id,
        "name": project.name,
        "jobId": job.id,
        "state": str(job.state),
        "error": None
        if job.error is None
        else {"code": job.error.code, "message": job.error.message},
        "statistics": {
            "scanned": counts.scanned,
            "new": counts.new,
            "modified": counts.modified,
            "deleted": counts.deleted,
            "unchanged": counts.unchanged,
            "failed": counts.failed,
            "skipped": dict(counts.skipped),
            "chunks": counts.chunks,
            "chunksEmbedded": counts.chunks_embedded,
        },
    }
