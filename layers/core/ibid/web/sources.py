"""Sources as an HTTP caller may name them, checked before anything is fetched."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import assert_never

from ibid.domain.errors import SourceRejected, UploadNotFound, ValidationFailed
from ibid.domain.git_urls import repository_url
from ibid.domain.projects import FolderSource, GitSource, Source, UploadSource
from ibid.domain.uploads import upload_prefix
from ibid.ports.objects import ObjectStore
from ibid.web.project_bodies import (
    FolderSourceBody,
    GitSourceBody,
    S3SourceBody,
    SourceBody,
    UploadSourceBody,
)


async def checked_source(
    body: SourceBody,
    *,
    tenant: str,
    project_id: str,
    folders: Sequence[Path],
    objects: ObjectStore,
) -> Source:
    """Return the source that the body names.

    Args:
        body: As the caller sent it.
        tenant: The project's.
        project_id: The project whose uploads may be named.
        folders: Folders below which a folder may be named.
        objects: Where uploads are.

    Raises:
        ValidationFailed: The server can't take it; the message does not repeat it.
        UploadNotFound: The project has no whole upload of this id.
    """
    match body:
        case GitSourceBody():
            return _git(body)
        case FolderSourceBody():
            return FolderSource(path=str(await asyncio.to_thread(_folder, body.path, folders)))
        case UploadSourceBody():
            return await _upload(body, tenant=tenant, project_id=project_id, objects=objects)
        case S3SourceBody():
            raise _refused("kind", "must be git, folder or upload: this server has no bucket")
        case _:
            assert_never(body)


def _git(body: GitSourceBody) -> GitSource:
    try:
        repository_url(body.url)
    except SourceRejected:
        raise _refused(
            "url",
            "must be an https URL of a host and a path: no name, password, query or fragment",
        ) from None
    if body.ref is not None and (body.ref.startswith("-") or any(map(str.isspace, body.ref))):
        raise _refused("ref", "must be a branch, a tag or a commit")
    return GitSource(url=body.url, ref=body.ref)


def _folder(named: str, folders: Sequence[Path]) -> Path:
    try:
        folder = Path(named)
        if folder.is_absolute():
            resolved = folder.resolve(strict=True)
            allowed = [root.resolve() for root in folders]
            if resolved.is_dir() and any(resolved.is_relative_to(root) for root in allowed):
                return resolved
    except (OSError, RuntimeError):
        pass  # it isn't there, or its links go round: the answer says no more than for any other
    raise _refused("path", "must be a folder below one of IBID_FOLDERS")


async def _upload(
    body: UploadSourceBody, *, tenant: str, project_id: str, objects: ObjectStore
) -> UploadSource:
    missing = UploadNotFound(f"project {project_id!r} has no such upload")
    if not body.upload_id.isalnum():
        raise missing
    prefix = upload_prefix(tenant=tenant, project_id=project_id, upload_id=body.upload_id)
    keys = await objects.keys(prefix)
    if not keys:
        raise missing
    return UploadSource(upload_id=body.upload_id, file_name=keys[0].removeprefix(prefix))


def _refused(field: str, why: str) -> ValidationFailed:
    return ValidationFailed("The source can't be taken.", {f"source.{field}": why})
