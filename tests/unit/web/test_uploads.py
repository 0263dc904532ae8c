"""Uploads: announced, then taken as the form that was described, whole or not at all."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from ibid.adapters.folder_objects import FolderObjects
from ibid.domain.projects import Project, Role, UploadSource
from ibid.web.services import WebLimits
from tests.fakes.app import ANN, BOB, FakeApp
from tests.fakes.objects import FakeObjects

ARCHIVE = bytes(range(256)) * 40


async def announced(
    client: httpx.AsyncClient, project: Project, *, size: int = len(ARCHIVE)
) -> dict[str, Any]:
    answer = await client.post(
        f"/projects/{project.id}/uploads", json={"fileName": "shop.zip", "bytes": size}
    )
    assert answer.status_code == 201
    upload: dict[str, Any] = answer.json()
    return upload


async def test_an_announced_archive_is_taken_and_can_be_indexed() -> None:
    app = FakeApp()
    project = await app.project()
    async with app.client() as ann:
        upload = await announced(ann, project)

        taken = await ann.post(upload["url"], data=upload["fields"], files={"file": ARCHIVE})

        begun = await ann.post(
            f"/projects/{project.id}/index",
            json={"source": {"kind": "upload", "uploadId": upload["uploadId"]}},
        )
    assert (taken.status_code, taken.content) == (204, b"")
    assert begun.status_code == 202
    source = UploadSource(upload_id=upload["uploadId"], file_name="shop.zip")
    assert app.indexed == [(project.id, source, False)]
    kept = [piece async for piece in app.objects.get(upload["fields"]["key"])]
    assert b"".join(kept) == ARCHIVE


async def test_an_upload_is_taken_once() -> None:
    app = FakeApp()
    project = await app.project()
    async with app.client() as ann:
        upload = await announced(ann, project)
        await ann.post(upload["url"], data=upload["fields"], files={"file": ARCHIVE})

        again = await ann.post(upload["url"], data=upload["fields"], files={"file": ARCHIVE})

    assert again.status_code == 404
    assert again.json()["detail"]["code"] == "UPLOAD_NOT_FOUND"


@pytest.mark.parametrize("on_disk", [False, True])
async def test_of_many_posts_at_once_one_is_taken(tmp_path: Path, *, on_disk: bool) -> None:
    objects = FolderObjects(tmp_path) if on_disk else FakeObjects()
    app = FakeApp(change=lambda services: replace(services, objects=objects))
    project = await app.project()
    bodies = [bytes([number]) * len(ARCHIVE) for number in range(6)]
    admitted = asyncio.Event()
    waiting = 0

    async def slowly(body: bytes) -> AsyncIterator[bytes]:
        nonlocal waiting
        yield body[:500]
        waiting += 1
        if waiting == len(bodies):
            admitted.set()
        await admitted.wait()
        yield body[500:]

    async with app.client() as ann:
        upload = await announced(ann, project)
        key = upload["fields"]["key"]
        forms = [form(('name="key"', key.encode()), (FILE[0], body)) for body in bodies]
        answers = await asyncio.gather(
            *(
                ann.post(
                    upload["url"],
                    content=slowly(body),
                    headers={"Content-Type": "multipart/form-data; boundary=b"},
                )
                for body in forms
            )
        )

    assert sorted(answer.status_code for answer in answers) == [204, *[404] * 5]
    assert {answer.json()["detail"]["code"] for answer in answers if answer.status_code == 404} == {
        "UPLOAD_NOT_FOUND"
    }
    (taken,) = (
        body for body, answer in zip(bodies, answers, strict=True) if answer.status_code == 204
    )
    assert b"".join([piece async for piece in objects.get(key)]) == taken
    assert list(await objects.keys("")) == [key]


@pytest.mark.parametrize("size", [len(ARCHIVE) - 1, len(ARCHIVE) + 1, 1])
async def test_an_archive_of_another_size_is_not_kept(size: int) -> None:
    app = FakeApp()
    project = await app.project()
    async with app.client() as ann:
        upload = await announced(ann, project, size=size)

        answer = await ann.post(upload["url"], data=upload["fields"], files={"file": ARCHIVE})

    assert answer.status_code == 422
    assert upload["fields"]["key"] not in await app.objects.keys("")


def form(*parts: tuple[str, bytes]) -> bytes:
    body = b"".join(
        b"--b\r\nContent-Disposition: form-data; " + head.encode() + b"\r\n\r\n" + value + b"\r\n"
        for head, value in parts
    )
    return body + b"--b--\r\n"


FILE = ('name="file"; filename="x.zip"', b"four")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "body"),
        (b"nothing of a form", "body"),
        (form(('name="key"', b"KEY"), FILE)[:-9], "body"),
        (form(('name="key"', b"KEY")), "file"),
        (form(FILE), "key"),
        (form(FILE, ('name="key"', b"KEY")), "key"),
        (form(('name="key"', b"another"), FILE), "key"),
        (form(('name="key"', b"\xff"), FILE), "key"),
        (form(('name="key"', b"KEY"), FILE, FILE), "file"),
        (form(('name="key"', b"x" * 5_000), FILE), "body"),
        (form(*[(f'name="f{number}"', b"") for number in range(30)]), "body"),
    ],
)
async def test_a_form_that_was_not_described_is_422_and_keeps_nothing(
    body: bytes, field: str
) -> None:
    app = FakeApp()
    project = await app.project()
    async with app.client() as ann:
        upload = await announced(ann, project, size=4)
        whole = body.replace(b"KEY", upload["fields"]["key"].encode())

        answer = await ann.post(
            upload["url"],
            content=whole,
            headers={"Content-Type": "multipart/form-data; boundary=b"},
        )

    assert answer.status_code == 422
    assert list(answer.json()["detail"]["fields"]) == [field]
    assert upload["fields"]["key"] not in await app.objects.keys("")


@pytest.mark.parametrize(
    "content_type",
    ["", "application/json", "multipart/form-data", "multipart/form-data; boundary=" + "b" * 300],
)
async def test_a_body_that_is_no_form_is_422(content_type: str) -> None:
    app = FakeApp()
    project = await app.project()
    async with app.client() as ann:
        upload = await announced(ann, project, size=4)

        answer = await ann.post(
            upload["url"], content=b"four", headers={"Content-Type": content_type}
        )

    assert answer.status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {"fileName": "shop.exe", "bytes": 4},
        {"fileName": "../shop.zip", "bytes": 4},
        {"fileName": ".zip", "bytes": 4},
        {"fileName": "a/b.zip", "bytes": 4},
        {"fileName": "shop.zip\n", "bytes": 4},
        {"fileName": "x" * 120 + ".zip", "bytes": 4},
        {"fileName": "shop.zip", "bytes": 0},
        {"fileName": "shop.zip", "bytes": 1.5},
        {"fileName": "shop.zip", "bytes": 1_001},
        {"fileName": "shop.zip"},
    ],
)
async def test_what_can_not_be_uploaded_is_not_announced(body: dict[str, object]) -> None:
    limits = WebLimits(max_upload_bytes=1_000)
    app = FakeApp(change=lambda services: replace(services, limits=limits))
    project = await app.project()

    async with app.client() as ann:
        answer = await ann.post(f"/projects/{project.id}/uploads", json=body)

    assert answer.status_code == 422
    assert await app.objects.keys("") == []


async def test_a_form_over_the_limit_is_413() -> None:
    limits = WebLimits(max_body_bytes=1_000, max_upload_bytes=1_000)
    app = FakeApp(change=lambda services: replace(services, limits=limits))
    project = await app.project()
    async with app.client() as ann:
        upload = await announced(ann, project, size=1_000)

        answer = await ann.post(upload["url"], data=upload["fields"], files={"file": b"x" * 2_001})

    assert answer.status_code == 413


async def test_a_form_larger_than_other_bodies_is_taken() -> None:
    limits = WebLimits(max_body_bytes=1_000)
    app = FakeApp(change=lambda services: replace(services, limits=limits))
    project = await app.project()
    async with app.client() as ann:
        upload = await announced(ann, project)

        answer = await ann.post(upload["url"], data=upload["fields"], files={"file": ARCHIVE})

    assert answer.status_code == 204


async def test_an_announcement_expires() -> None:
    app = FakeApp()
    project = await app.project()
    async with app.client() as ann:
        upload = await announced(ann, project)
        app.clock.move(3_600)

        answer = await ann.post(upload["url"], data=upload["fields"], files={"file": ARCHIVE})

    assert answer.status_code == 404


@pytest.mark.parametrize("upload_id", ["0" * 32, "a.b", "-announced", "%20"])
async def test_an_upload_that_was_never_announced_is_404(upload_id: str) -> None:
    app = FakeApp()
    project = await app.project()

    async with app.client() as ann:
        answer = await ann.post(
            f"/projects/{project.id}/uploads/{upload_id}", files={"file": b"four"}
        )

    assert answer.status_code == 404


async def test_an_announcement_that_can_not_be_read_is_none() -> None:
    app = FakeApp()
    project = await app.project()
    async with app.client() as ann:
        upload = await announced(ann, project)
        (key,) = await app.objects.keys("")
        await app.put(key, b"{")

        answer = await ann.post(upload["url"], data=upload["fields"], files={"file": ARCHIVE})

    assert answer.status_code == 404


async def test_a_viewer_uploads_nothing() -> None:
    app = FakeApp()
    project = await app.project(ANN, members={BOB.subject: Role.VIEWER})
    async with app.client(ANN) as ann, app.client(BOB) as bob:
        upload = await announced(ann, project)

        answer = await bob.post(upload["url"], data=upload["fields"], files={"file": ARCHIVE})

    assert answer.status_code == 403
