"""Projects over HTTP: their life, their sources, their jobs and paths."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from ibid.domain.errors import GenerationGone
from ibid.domain.projects import (
    FolderSource,
    GitSource,
    JobError,
    JobState,
    JobStatistics,
    UploadSource,
)
from ibid.domain.uploads import upload_key
from tests.fakes.app import ANN, FakeApp, scripted_turn

URL = "https://git.test/shop.git"


async def test_a_new_project_is_empty_and_its_creators() -> None:
    app = FakeApp()
    body = {"name": "  shop ", "source": {"kind": "git", "url": URL}, "replyLanguage": "es-419"}

    async with app.client() as ann:
        created = await ann.post("/projects", json=body)
        read = await ann.get(f"/projects/{created.json()['id']}")

    assert created.status_code == 201
    assert created.json() == {
        "id": created.json()["id"],
        "name": "shop",
        "status": "empty",
        "activeGeneration": None,
        "reindexInProgress": False,
        "embeddingSignature": None,
        "chunkCount": 0,
        "pathCount": 0,
        "commitSha": None,
        "createdAt": "2026-01-02T03:04:05.678901Z",
    }
    assert read.json() == created.json()
    kept = await app.records.projects.get(created.json()["id"], tenant=ANN.tenant)
    assert kept.source == GitSource(url=URL)
    assert kept.reply_language == "es-419"


async def test_projects_are_listed_newest_first_page_by_page() -> None:
    app = FakeApp()
    async with app.client() as ann:
        for name in ("one", "two", "three"):
            await ann.post("/projects", json={"name": name})
            app.clock.move(1)

        first = (await ann.get("/projects?limit=2")).json()
        second = (await ann.get(f"/projects?limit=2&cursor={first['nextCursor']}")).json()

    assert [item["name"] for item in first["items"]] == ["three", "two"]
    assert [item["name"] for item in second["items"]] == ["one"]
    assert second["nextCursor"] is None


async def test_a_change_leaves_what_it_does_not_name() -> None:
    app = FakeApp()
    async with app.client() as ann:
        project = (
            await ann.post(
                "/projects", json={"name": "shop", "settings": {"classifyIntent": False}}
            )
        ).json()

        changed = await ann.patch(
            f"/projects/{project['id']}",
            json={"name": "store", "settings": {"maxRetrievalAttempts": 3.0}},
        )

    assert changed.json() == {**project, "name": "store"}
    kept = await app.records.projects.get(project["id"], tenant=ANN.tenant)
    assert (kept.settings.classify_intent, kept.settings.grade_evidence) == (False, True)
    assert kept.settings.max_retrieval_attempts == 3


async def test_a_deleted_project_takes_everything_with_it() -> None:
    app = FakeApp(scripted_turn("Here [1]."))
    project = await app.project()
    conversation = await app.conversation(project=project)
    async with app.client() as ann:
        answer = await ann.post(
            f"/conversations/{conversation.id}/messages", json={"question": "Where?"}
        )
        await ann.post(f"/projects/{project.id}/uploads", json={"fileName": "a.zip", "bytes": 1})

        deleted = await ann.delete(f"/projects/{project.id}")

        after = [
            await ann.get(path)
            for path in (
                f"/projects/{project.id}",
                f"/conversations/{conversation.id}",
                answer.headers["location"],
            )
        ]
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert [one.status_code for one in after] == [404, 404, 404]
    assert await app.index.generations(tenant=ANN.tenant, project_id=project.id) == []
    assert await app.objects.keys("") == []


async def test_an_index_is_begun_once_and_then_answered_with_the_live_job() -> None:
    app = FakeApp()
    project = await app.project(source=GitSource(url=URL))
    async with app.client() as ann:
        first = await ann.post(f"/projects/{project.id}/index")
        second = await ann.post(f"/projects/{project.id}/index", json={"force": True})

    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json() == {"jobId": first.json()["jobId"], "enqueued": True}
    assert second.json() == {"jobId": first.json()["jobId"], "enqueued": False}
    assert app.indexed == [(project.id, None, False)]


async def test_an_index_takes_another_source_and_force() -> None:
    app = FakeApp()
    project = await app.project()
    source = {"kind": "git", "url": URL, "ref": "v1.2"}

    async with app.client() as ann:
        await ann.post(f"/projects/{project.id}/index", json={"source": source, "force": True})

    assert app.indexed == [(project.id, GitSource(url=URL, ref="v1.2"), True)]


async def test_a_project_without_a_source_has_nothing_to_index() -> None:
    app = FakeApp()
    project = await app.project()

    async with app.client() as ann:
        answer = await ann.post(f"/projects/{project.id}/index")

    assert answer.status_code == 422
    assert answer.json()["detail"]["fields"] == {"source": "the project has none"}


async def test_a_job_tells_its_progress_and_its_error_only_if_it_failed() -> None:
    app = FakeApp()
    project = await app.project(source=GitSource(url=URL))
    job = app.job(project)
    await app.records.jobs.begin(job, owner="indexer")
    async with app.client() as ann:
        queued = (await ann.get(f"/jobs/{job.id}")).json()
        await app.records.jobs.end(
            job.id,
            tenant=ANN.tenant,
            owner="indexer",
            state=JobState.FAILED,
            statistics=JobStatistics(scanned=3),
            error=JobError(code="SOURCE_REJECTED", message="it is a bomb"),
            at=app.clock.now() + timedelta(seconds=1),
        )

        failed = (await ann.get(f"/projects/{project.id}/jobs")).json()["items"][0]

    assert queued == {
        "id": job.id,
        "state": "queued",
        "statistics": {
            "scanned": 2,
            "new": 0,
            "modified": 0,
            "deleted": 0,
            "unchanged": 0,
            "failed": 0,
            "skipped": {"binary": 1},
            "chunks": 0,
            "chunksEmbedded": 0,
            "chunksToEmbed": 0,
        },
        "startedAt": "2026-01-02T03:04:05.678901Z",
        "finishedAt": None,
    }
    assert failed["state"] == "failed"
    assert failed["error"] == {"code": "SOURCE_REJECTED", "message": "it is a bomb"}


async def test_indexed_paths_are_cut_at_the_limit_and_filtered_by_prefix() -> None:
    app = FakeApp()
    project = await app.project()
    async with app.client() as ann:
        whole = await ann.get(f"/projects/{project.id}/indexed-paths")
        cut = await ann.get(f"/projects/{project.id}/indexed-paths?prefix=src/&limit=1")

    assert whole.json() == {
        "paths": ["README.md", "src/cart.py", "src/tax.py"],
        "truncated": False,
    }
    assert cut.json() == {"paths": ["src/cart.py"], "truncated": True}


async def test_a_project_without_a_generation_has_no_paths() -> None:
    app = FakeApp()
    project = await app.project(ready=False)

    async with app.client() as ann:
        answer = await ann.get(f"/projects/{project.id}/indexed-paths")

    assert answer.status_code == 409
    assert answer.json()["detail"]["code"] == "PROJECT_NOT_READY"


async def test_a_generation_that_goes_meanwhile_is_read_anew_once() -> None:
    app = FakeApp()
    project = await app.project()
    paths, calls = app.index.paths, 0

    class Going(type(app.index)):  # type: ignore[misc] # the fake's own class, once at fault
        async def paths(self, **asked: object) -> object:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise GenerationGone("generation 1 is gone")
            return await paths(**asked)  # type: ignore[arg-type] # passed on as they came

    gone = FakeApp(change=lambda _: replace(app.services, index=Going()))
    async with gone.client() as ann:
        answer = await ann.get(f"/projects/{project.id}/indexed-paths")

    assert answer.status_code == 200
    assert calls == 2


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """A folder that may be named, one beside it, and links between them."""
    allowed = tmp_path / "allowed"
    (allowed / "shop").mkdir(parents=True)
    (allowed / "file").touch()
    (tmp_path / "secret").mkdir()
    (tmp_path / "allowed-too").mkdir()
    (allowed / "out").symlink_to(tmp_path / "secret")
    (allowed / "in").symlink_to(allowed / "shop")
    (allowed / "loop").symlink_to(allowed / "loop")
    return allowed


@pytest.mark.parametrize("named", ["", "shop", "in", "shop/../shop"])
async def test_a_folder_below_an_allowed_one_is_taken_as_what_it_resolves_to(
    folders: Path, named: str
) -> None:
    app = FakeApp(change=lambda services: replace(services, folders=(folders,)))
    project = await app.project()
    source = {"kind": "folder", "path": str(folders / named)}

    async with app.client() as ann:
        answer = await ann.post(f"/projects/{project.id}/index", json={"source": source})

    assert answer.status_code == 202
    resolved = str((folders / named).resolve())
    assert app.indexed == [(project.id, FolderSource(path=resolved), False)]


@pytest.mark.parametrize(
    "named",
    [
        "file",
        "out",
        "loop",
        "missing",
        "../secret",
        "../allowed-too",
        "..",
        "shop/../../secret",
        "x" * 300,
    ],
)
async def test_a_folder_elsewhere_is_refused_in_the_words_of_one_that_is_not_there(
    folders: Path, named: str
) -> None:
    app = FakeApp(change=lambda services: replace(services, folders=(folders,)))
    project = await app.project()
    source = {"kind": "folder", "path": f"{folders}/{named}"}

    async with app.client() as ann:
        answer = await ann.post(f"/projects/{project.id}/index", json={"source": source})

    assert answer.status_code == 422
    assert answer.json()["detail"]["fields"] == {
        "source.path": "must be a folder below one of IBID_FOLDERS"
    }
    assert app.indexed == []


@pytest.mark.parametrize("path", ["/", "/etc", ".", "shop", "~"])
async def test_no_folder_is_taken_where_none_is_allowed(path: str) -> None:
    app = FakeApp()
    project = await app.project()

    async with app.client() as ann:
        answer = await ann.post(
            f"/projects/{project.id}/index", json={"source": {"kind": "folder", "path": path}}
        )

    assert answer.status_code == 422


@pytest.mark.parametrize(
    ("source", "field"),
    [
        ({"kind": "git", "url": "http://git.test/shop"}, "source.url"),
        ({"kind": "git", "url": "file:///etc"}, "source.url"),
        ({"kind": "git", "url": "ssh://git@git.test/shop"}, "source.url"),
        ({"kind": "git", "url": "https://"}, "source.url"),
        ({"kind": "git", "url": "https://[::1/shop"}, "source.url"),
        ({"kind": "git", "url": "https://git.test:x/shop"}, "source.url"),
        ({"kind": "git", "url": "https://git.test/a b"}, "source.url"),
        ({"kind": "git", "url": "https://me:tellt@git.test/shop"}, "source.url"),
        ({"kind": "git", "url": "https://tellt@git.test/shop"}, "source.url"),
        ({"kind": "git", "url": "https://:tellt@git.test/shop"}, "source.url"),
        ({"kind": "git", "url": "https://me:tellt@[bad/shop"}, "source.url"),
        ({"kind": "git", "url": f"{URL}?access_token=tellt"}, "source.url"),
        ({"kind": "git", "url": f"{URL}#tellt"}, "source.url"),
        ({"kind": "git", "url": URL, "ref": "--upload-pack=x"}, "source.ref"),
        ({"kind": "git", "url": URL, "ref": "a b"}, "source.ref"),
        ({"kind": "git", "url": URL, "credential": "tellt"}, "source.git.credential"),
        ({"kind": "s3", "bucket": "shop"}, "source.kind"),
        ({"kind": "ftp", "url": URL}, "source"),
    ],
)
async def test_a_source_that_can_not_be_taken_is_422_and_not_repeated(
    source: dict[str, str], field: str
) -> None:
    app = FakeApp()
    project = await app.project()

    async with app.client() as ann:
        answers = [
            await ann.post(f"/projects/{project.id}/index", json={"source": source}),
            await ann.patch(f"/projects/{project.id}", json={"source": source}),
            await ann.post("/projects", json={"name": "shop", "source": source}),
        ]

    for answer in answers:
        assert answer.status_code == 422
        assert list(answer.json()["detail"]["fields"]) == [field]
        assert "tellt" not in answer.text
    kept = await app.records.projects.get(project.id, tenant=project.tenant)
    assert kept.source == project.source


async def test_a_whole_upload_is_taken_as_a_source() -> None:
    app = FakeApp()
    project = await app.project()
    key = upload_key(
        tenant=ANN.tenant, project_id=project.id, upload_id="abc123", file_name="shop.tar.gz"
    )
    await app.put(key, b"archive")

    async with app.client() as ann:
        await ann.post(
            f"/projects/{project.id}/index",
            json={"source": {"kind": "upload", "uploadId": "abc123"}},
        )

    source = UploadSource(upload_id="abc123", file_name="shop.tar.gz")
    assert app.indexed == [(project.id, source, False)]


@pytest.mark.parametrize("upload_id", ["abc124", "abc12", "-announced", "..", "a/b"])
async def test_an_upload_that_has_not_come_is_404(upload_id: str) -> None:
    app = FakeApp()
    project = await app.project()
    key = upload_key(
        tenant=ANN.tenant, project_id=project.id, upload_id="abc123", file_name="shop.zip"
    )
    await app.put(key, b"archive")

    async with app.client() as ann:
        answer = await ann.post(
            f"/projects/{project.id}/index",
            json={"source": {"kind": "upload", "uploadId": upload_id}},
        )

    assert answer.status_code == 404
    assert answer.json()["detail"]["code"] == "UPLOAD_NOT_FOUND"
