"""Routes of uploads: announce an archive, then post it as the form that the answer describes.

The form is that of a presigned POST; where objects lie in a folder, this server takes it itself.
An announcement is kept beside the archives, so that any process on the same data can take it.
"""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Self

from fastapi import APIRouter, Path, Request
from pydantic import Field, StringConstraints, ValidationError

from ibid.domain.errors import ObjectExists, ObjectMissing, UploadNotFound
from ibid.domain.projects import Project
from ibid.domain.uploads import upload_key, upload_prefix
from ibid.ports.objects import ObjectStore
from ibid.web.access import EditedProject, Given
from ibid.web.errors import documented
from ibid.web.minting import Minted
from ibid.web.upload_form import archive_of, refused
from ibid.web.wire import Asked, JsonInteger, Wire

router = APIRouter(tags=["projects"])

MAX_ANNOUNCEMENT_BYTES = 4_096
_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["key", "file"],
                    "properties": {
                        "key": {"type": "string"},
                        "file": {"type": "string", "format": "binary"},
                    },
                }
            }
        },
    }
}


class NewUploadBody(Asked):
    """An archive to upload, and its exact size."""

    file_name: Annotated[
        str,
        StringConstraints(
            max_length=120, pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]*\.(zip|tar|tar\.gz|tgz)$"
        ),
    ]
    bytes: Annotated[int, Field(ge=1), JsonInteger]


class UploadBody(Wire):
    """Where to post the archive: a multipart form of the `fields`, then `file`."""

    upload_id: str
    url: str
    fields: Mapping[str, str]


class Announcement(Wire):
    """What is kept of an upload until it has come."""

    file_name: str
    size: int
    expires_at: datetime

    @classmethod
    async def read(cls, objects: ObjectStore, key: str) -> Self | None:
        """Return the kept announcement; None if there is none."""
        try:
            return cls.model_validate_json(b"".join([piece async for piece in objects.get(key)]))
        except (ObjectMissing, ValidationError):
            return None


@router.post(
    "/projects/{projectId}/uploads",
    status_code=201,
    responses=documented(403, 404, 413, 422),
)
async def announce_upload(
    body: NewUploadBody, project: EditedProject, services: Given, request: Request, minted: Minted
) -> UploadBody:
    """Announce an archive and say how to post it."""
    if body.bytes > services.limits.max_upload_bytes:
        raise refused("bytes", f"is over {services.limits.max_upload_bytes}")
    upload_id = minted.value
    announcement = Announcement(
        file_name=body.file_name,
        size=body.bytes,
        expires_at=services.clock.now() + timedelta(seconds=services.limits.upload_expires_s),
    )
    await services.objects.put(
        _announcement_key(project, upload_id),
        _once(announcement.model_dump_json().encode()),
        max_bytes=MAX_ANNOUNCEMENT_BYTES,
    )
    url = str(request.url_for("take_upload", projectId=project.id, uploadId=upload_id))
    key = _archive_key(project, upload_id, announcement)
    return UploadBody(upload_id=upload_id, url=url, fields={"key": key})


@router.post(
    "/projects/{projectId}/uploads/{uploadId}",
    status_code=204,
    responses=documented(403, 404, 413, 422),
    openapi_extra=_FORM,
)
async def take_upload(
    upload_id: Annotated[str, Path(alias="uploadId")],
    project: EditedProject,
    services: Given,
    request: Request,
) -> None:
    """Take the form of an announced upload; the archive is kept whole or not at all, and once."""
    missing = UploadNotFound("no such upload is announced")
    if not upload_id.isalnum():
        raise missing
    announced = _announcement_key(project, upload_id)
    announcement = await Announcement.read(services.objects, announced)
    if announcement is None or announcement.expires_at <= services.clock.now():
        raise missing
    key = _archive_key(project, upload_id, announcement)

    def admit(fields: dict[str, str]) -> None:
        if fields.get("key") != key:
            raise refused("key", "is not the announced one, or does not stand before the file")

    archive = archive_of(
        request.stream(),
        content_type=request.headers.get("content-type", ""),
        size=announcement.size,
        admit=admit,
    )
    try:
        await services.objects.put_new(key, archive, max_bytes=announcement.size)
    except ObjectExists:  # of several at once, another one came whole first
        raise missing from None
    await services.objects.delete(announced)


def _archive_key(project: Project, upload_id: str, announcement: Announcement) -> str:
    return upload_key(
        tenant=project.tenant,
        project_id=project.id,
        upload_id=upload_id,
        file_name=announcement.file_name,
    )


def _announcement_key(project: Project, upload_id: str) -> str:
    # No upload's id holds a dash, so none is ever mistaken for this folder.
    return f"{upload_prefix(tenant=project.tenant, project_id=project.id)}-announced/{upload_id}"


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
