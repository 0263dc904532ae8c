"""What every ProjectStore does."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from ibid.domain.errors import (
    ConversationNotFound,
    JobNotFound,
    LeaseLost,
    ProjectNotFound,
    RunNotFound,
    ValidationFailed,
)
from ibid.domain.projects import (
    FolderSource,
    GitSource,
    Project,
    ProjectSettings,
    ProjectStatus,
    Role,
    Source,
    UploadSource,
)
from tests.contract.odd import ODD
from tests.contract.run_steps import begin
from tests.fakes.records import Records
from tests.fakes.samples import (
    ANN,
    NOON,
    a_conversation,
    a_job,
    a_project,
    a_run,
)


async def _names(records: Records, subject: str, limit: int) -> list[list[str]]:
    pages: list[list[str]] = []
    cursor = None
    while True:
        page = await records.projects.list_for(
            tenant="acme", subject=subject, cursor=cursor, limit=limit
        )
        pages.append([project.id for project in page.items])
        cursor = page.next_cursor
        if cursor is None:
            return pages


@pytest.mark.parametrize(
    "source",
    [
        None,
        FolderSource(path="/srv/é"),
        GitSource(url="https://example.org/a.git"),
        GitSource(url="https://example.org/a.git", ref="v1", credential="github"),
        UploadSource(upload_id="u1", file_name="a.zip"),
    ],
)
async def test_a_project_comes_back_as_it_was_kept(records: Records, source: Source | None) -> None:
    project = replace(
        a_project(),
        source=source,
        members={"ann": Role.OWNER, "bob": Role.VIEWER},
        settings=ProjectSettings(classify_intent=False, max_retrieval_attempts=5),
        reply_language="pt-BR",
        embedding_signature="minilm:384:abc",
        commit_sha="f" * 40,
    )

    await records.projects.create(project)

    assert await records.projects.get("p1", tenant="acme") == project


@pytest.mark.parametrize("odd", ODD)
async def test_any_text_serves_as_tenant_id_subject_and_name(records: Records, odd: str) -> None:
    project = replace(a_project(), tenant=odd, id=odd, name=odd, members={odd: Role.OWNER})

    await records.projects.create(project)

    assert await records.projects.get(odd, tenant=odd) == project
    assert await records.projects.named(odd, tenant=odd, subject=odd) == [project]
    page = await records.projects.list_for(tenant=odd, subject=odd, cursor=None, limit=1)
    assert list(page.items) == [project]
    assert page.next_cursor is None


async def test_a_time_of_another_zone_is_the_same_time(records: Records) -> None:
    elsewhere = datetime(1969, 12, 31, 1, 2, 3, 4, tzinfo=timezone(timedelta(hours=-9)))

    await records.projects.create(replace(a_project(), created_at=elsewhere))

    kept = (await records.projects.get("p1", tenant="acme")).created_at
    assert kept == elsewhere
    assert kept.utcoffset() is not None


async def test_an_id_is_not_used_twice(records: Records) -> None:
    await records.projects.create(a_project())

    with pytest.raises(ValueError, match=r".+"):
        await records.projects.create(replace(a_project(), name="another"))

    assert (await records.projects.get("p1", tenant="acme")).name == "flask"


async def test_two_tenants_may_use_one_id_and_see_their_own(records: Records) -> None:
    theirs = replace(a_project(), tenant="rival", name="theirs")
    await records.projects.create(a_project())
    await records.projects.create(theirs)

    await records.projects.delete("p1", tenant="acme")

    assert await records.projects.get("p1", tenant="rival") == theirs
    with pytest.raises(ProjectNotFound):
        await records.projects.get("p1", tenant="acme")


async def test_a_list_is_newest_first_with_ties_by_falling_id(records: Records) -> None:
    for project_id, age in [("b", 1), ("é", 0), ("a", 0), ("Z", 0), ("🦊", 0), ("old", 2)]:
        created_at = NOON - timedelta(microseconds=age)
        await records.projects.create(replace(a_project(project_id), created_at=created_at))
    order = ["🦊", "é", "a", "Z", "b", "old"]

    pages = {limit: await _names(records, "ann", limit) for limit in (1, 2, 3, 6, 200)}

    assert pages == {
        1: [[one] for one in order],
        2: [order[:2], order[2:4], order[4:]],
        3: [order[:3], order[3:]],
        6: [order],
        200: [order],
    }


async def test_a_list_holds_what_one_is_a_member_of(records: Records) -> None:
    await records.projects.create(a_project("mine"))
    shared = replace(a_project("shared"), members={"bob": Role.OWNER, "ann": Role.VIEWER})
    await records.projects.create(shared)
    await records.projects.create(replace(a_project("bobs"), members={"bob": Role.OWNER}))
    await records.projects.create(replace(a_project("other"), tenant="rival"))

    assert await _names(records, "ann", 200) == [["shared", "mine"]]
    assert await _names(records, "bob", 200) == [["shared", "bobs"]]
    assert await _names(records, "Ann", 200) == [[]]


async def test_a_page_goes_on_though_its_last_project_was_deleted(records: Records) -> None:
    for project_id in ("a", "b", "c"):
        await records.projects.create(a_project(project_id))
    first = await records.projects.list_for(tenant="acme", subject="ann", cursor=None, limit=2)
    await records.projects.create(a_project("d"))

    rest = await records.projects.list_for(
        tenant="acme", subject="ann", cursor=first.next_cursor, limit=2
    )

    assert [project.id for project in rest.items] == ["a"]


@pytest.mark.parametrize("cursor", ["", "x", "é", "AAAA", "bnVsbA", "W10", "9" * 5_000, "[1]"])
async def test_a_made_up_cursor_is_refused(records: Records, cursor: str) -> None:
    await records.projects.create(a_project())

    with pytest.raises(ValidationFailed) as refusal:
        await records.projects.list_for(tenant="acme", subject="ann", cursor=cursor, limit=1)

    assert "cursor" in refusal.value.fields


async def test_a_cursor_of_another_list_is_refused(records: Records) -> None:
    for project_id in ("a", "b"):
        both = {"ann": Role.OWNER, "bob": Role.VIEWER}
        await records.projects.create(replace(a_project(project_id), members=both))
    page = await records.projects.list_for(tenant="acme", subject="ann", cursor=None, limit=1)

    with pytest.raises(ValidationFailed):
        await records.projects.list_for(
            tenant="acme", subject="bob", cursor=page.next_cursor, limit=1
        )
    with pytest.raises(ValidationFailed):
        await records.conversations.list_for(principal=ANN, cursor=page.next_cursor, limit=1)


async def test_all_of_a_name_are_found_newest_first_and_only_among_ones_own(
    records: Records,
) -> None:
    older = replace(a_project("z"), created_at=NOON - timedelta(days=1))
    await records.projects.create(older)
    await records.projects.create(a_project("a"))
    await records.projects.create(replace(a_project("c"), members={"bob": Role.OWNER}))

    found = await records.projects.named("flask", tenant="acme", subject="ann")

    assert [project.id for project in found] == ["a", "z"]
    assert await records.projects.named("Flask", tenant="acme", subject="ann") == []
    assert await records.projects.named("flask", tenant="rival", subject="ann") == []


async def test_an_update_changes_what_it_is_given_and_nothing_else(records: Records) -> None:
    project = replace(a_project(), source=FolderSource(path="/a"), reply_language="en")
    await records.projects.create(project)
    await records.projects.create(a_project("p2"))

    same = await records.projects.update("p1", tenant="acme")
    changed = await records.projects.update(
        "p1",
        tenant="acme",
        name="new",
        source=GitSource(url="https://example.org/a"),
        reply_language="es-419",
        settings=ProjectSettings(grade_evidence=False),
        status=ProjectStatus.FAILED,
    )

    assert same == project
    assert changed == replace(
        project,
        name="new",
        source=GitSource(url="https://example.org/a"),
        reply_language="es-419",
        settings=ProjectSettings(grade_evidence=False),
        status=ProjectStatus.FAILED,
    )
    assert await records.projects.get("p1", tenant="acme") == changed
    assert await records.projects.get("p2", tenant="acme") == a_project("p2")


async def _activate(records: Records, job_id: str, tenant: str = "acme") -> Project:
    return await records.projects.activate(
        "p1",
        tenant=tenant,
        generation=2,
        job_id=job_id,
        embedding_signature="s",
        chunk_count=7,
        path_count=3,
        commit_sha="c",
    )


async def test_the_job_that_holds_the_project_flips_its_generation(records: Records) -> None:
    empty = replace(a_project(), status=ProjectStatus.INDEXING, active_generation=None)
    await records.projects.create(empty)
    await records.jobs.begin(a_job(), owner="me")

    flipped = await _activate(records, "j1")

    assert flipped == replace(
        empty,
        status=ProjectStatus.READY,
        active_generation=2,
        reindex_in_progress=True,
        embedding_signature="s",
        chunk_count=7,
        path_count=3,
        commit_sha="c",
    )
    assert await records.projects.get("p1", tenant="acme") == flipped


async def test_no_other_job_flips_it(records: Records) -> None:
    await records.projects.create(a_project())
    with pytest.raises(LeaseLost):
        await _activate(records, "j1")
    await records.jobs.begin(a_job(), owner="me")
    with pytest.raises(LeaseLost):
        await _activate(records, "j2")
    await records.jobs.take_over("j1", tenant="acme", beat=0, at=NOON)
    with pytest.raises(LeaseLost):
        await _activate(records, "j1")

    assert await records.projects.get("p1", tenant="acme") == a_project()


async def test_a_deletion_takes_all_that_belongs_to_the_project(records: Records) -> None:
    run = a_run()
    await records.projects.create(a_project())
    await records.projects.create(a_project("p2"))
    await records.jobs.begin(a_job(), owner="me")
    await records.jobs.begin(a_job("j2", project_id="p2"), owner="me")
    await records.conversations.create(a_conversation())
    await records.conversations.create(a_conversation("c2", project_id="p2"))
    await begin(records, run)

    assert list(await records.projects.delete("p1", tenant="acme")) == [run.turn_id]
    assert not await records.projects.delete("p1", tenant="acme")

    with pytest.raises(JobNotFound):
        await records.jobs.get("j1", tenant="acme")
    with pytest.raises(ConversationNotFound):
        await records.conversations.get("c1", principal=ANN)
    with pytest.raises(RunNotFound):
        await records.runs.get(run.id, principal=ANN)
    assert await records.runs.live() == {}
    assert await records.jobs.live() == {("acme", "j2"): 0}
    assert await records.conversations.get("c2", principal=ANN)


async def test_what_was_deleted_meanwhile_is_not_brought_back(records: Records) -> None:
    await records.projects.create(a_project())
    await records.jobs.begin(a_job(), owner="me")
    await records.projects.delete("p1", tenant="acme")

    with pytest.raises(ProjectNotFound):
        await records.projects.update("p1", tenant="acme", name="back")
    with pytest.raises(ProjectNotFound):
        await _activate(records, "j1")
    with pytest.raises(ProjectNotFound):
        await records.projects.update("p1", tenant="rival", name="back")

    assert await _names(records, "ann", 9) == [[]]


async def test_concurrent_updates_of_different_fields_all_hold(records: Records) -> None:
    await records.projects.create(a_project())

    await asyncio.gather(
        records.projects.update("p1", tenant="acme", name="new"),
        records.projects.update("p1", tenant="acme", reply_language="en"),
        records.projects.update("p1", tenant="acme", status=ProjectStatus.FAILED),
    )

    kept = await records.projects.get("p1", tenant="acme")
    assert (kept.name, kept.reply_language, kept.status) == ("new", "en", ProjectStatus.FAILED)


async def test_a_list_of_nothing_is_an_empty_page(records: Records) -> None:
    page = await records.projects.list_for(tenant="acme", subject="ann", cursor=None, limit=200)

    assert (list(page.items), page.next_cursor) == ([], None)
