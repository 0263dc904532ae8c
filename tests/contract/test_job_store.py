"""What every JobStore does."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from ibid.domain.errors import JobNotFound, LeaseLost, ProjectNotFound, ValidationFailed
from ibid.domain.projects import JobError, JobState, JobStatistics, ProjectStatus
from tests.contract.odd import ODD
from tests.fakes.records import Records
from tests.fakes.samples import NOON, a_job, a_project

SOME = JobStatistics(
    scanned=9,
    new=1,
    modified=2,
    deleted=3,
    unchanged=4,
    failed=5,
    skipped={"binary": 2, "too big": 1},
    chunks=6,
    chunks_embedded=7,
    chunks_to_embed=8,
)


async def _end(records: Records, state: JobState, *, owner: str = "me") -> None:
    error = JobError(code="SOURCE_REJECTED", message="no") if state is JobState.FAILED else None
    await records.jobs.end(
        "j1", tenant="acme", owner=owner, state=state, statistics=SOME, error=error, at=NOON
    )


async def test_a_job_comes_back_as_it_was_begun_and_raises_the_flag(records: Records) -> None:
    await records.projects.create(a_project())

    begun = await records.jobs.begin(a_job(), owner="me")

    assert begun is None
    assert await records.jobs.get("j1", tenant="acme") == a_job()
    assert (await records.projects.get("p1", tenant="acme")).reindex_in_progress


@pytest.mark.parametrize("odd", ODD)
async def test_any_text_serves_as_id_and_owner(records: Records, odd: str) -> None:
    await records.projects.create(replace(a_project(odd), tenant=odd))
    job = a_job(odd, project_id=odd, tenant=odd)
    await records.jobs.begin(job, owner=odd)

    await records.jobs.beat(odd, tenant=odd, owner=odd, phase=odd, statistics=SOME)

    kept = await records.jobs.get(odd, tenant=odd)
    assert kept == replace(job, state=JobState.RUNNING, phase=odd, statistics=SOME)
    assert await records.jobs.live() == {(odd, odd): 1}


async def test_a_job_needs_its_project(records: Records) -> None:
    await records.projects.create(replace(a_project(), tenant="rival"))

    with pytest.raises(ProjectNotFound):
        await records.jobs.begin(a_job(), owner="me")

    assert await records.jobs.live() == {}


async def test_a_second_job_is_told_the_first_one(records: Records) -> None:
    await records.projects.create(a_project())
    await records.jobs.begin(a_job(), owner="me")
    await records.jobs.beat("j1", tenant="acme", owner="me", phase="lexical", statistics=SOME)

    holder = await records.jobs.begin(a_job("j2"), owner="you")

    assert holder == await records.jobs.get("j1", tenant="acme")
    with pytest.raises(JobNotFound):
        await records.jobs.get("j2", tenant="acme")


async def test_of_two_begins_at_once_one_wins(records: Records) -> None:
    await records.projects.create(a_project())

    holders = await asyncio.gather(
        *(records.jobs.begin(a_job(f"j{number}"), owner="me") for number in range(8))
    )

    ((winner, _),) = [key[::-1] for key in await records.jobs.live()]
    assert [holder for holder in holders if holder is None] == [None]
    assert {holder.id for holder in holders if holder is not None} == {winner}


async def test_jobs_of_two_projects_run_side_by_side(records: Records) -> None:
    await records.projects.create(a_project())
    await records.projects.create(a_project("p2"))
    await records.projects.create(replace(a_project(), tenant="rival"))

    await records.jobs.begin(a_job(), owner="me")
    await records.jobs.begin(a_job("j2", project_id="p2"), owner="me")
    await records.jobs.begin(a_job(tenant="rival"), owner="me")

    assert await records.jobs.live() == {
        ("acme", "j1"): 0,
        ("acme", "j2"): 0,
        ("rival", "j1"): 0,
    }


async def test_only_its_owner_beats_a_live_job(records: Records) -> None:
    await records.projects.create(a_project())
    await records.jobs.begin(a_job(), owner="me")

    async def beat(tenant: str, owner: str) -> None:
        await records.jobs.beat("j1", tenant=tenant, owner=owner, phase="x", statistics=SOME)

    with pytest.raises(LeaseLost):
        await beat("acme", "you")
    with pytest.raises(LeaseLost):
        await beat("rival", "me")
    assert await records.jobs.live() == {("acme", "j1"): 0}
    await _end(records, JobState.SUCCEEDED)
    with pytest.raises(LeaseLost):
        await beat("acme", "me")
    assert await records.jobs.live() == {}


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED])
async def test_an_end_is_kept_and_frees_the_project(records: Records, state: JobState) -> None:
    await records.projects.create(a_project())
    await records.jobs.begin(a_job(), owner="me")

    await _end(records, state)

    error = JobError(code="SOURCE_REJECTED", message="no") if state is JobState.FAILED else None
    ended = replace(a_job(), state=state, statistics=SOME, error=error, finished_at=NOON)
    assert await records.jobs.get("j1", tenant="acme") == ended
    assert await records.projects.get("p1", tenant="acme") == a_project()
    assert await records.jobs.begin(a_job("j2"), owner="you") is None


async def test_a_job_ends_once_and_by_its_owner(records: Records) -> None:
    await records.projects.create(a_project())
    await records.jobs.begin(a_job(), owner="me")

    with pytest.raises(LeaseLost):
        await _end(records, JobState.FAILED, owner="you")
    await _end(records, JobState.SUCCEEDED)
    with pytest.raises(LeaseLost):
        await _end(records, JobState.FAILED)

    assert (await records.jobs.get("j1", tenant="acme")).state is JobState.SUCCEEDED


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("generation", [None, 1])
async def test_a_failure_fails_a_project_that_never_had_a_generation(
    records: Records, generation: int | None, *, is_lost: bool
) -> None:
    before = ProjectStatus.INDEXING if generation is None else ProjectStatus.READY
    project = replace(a_project(), status=before, active_generation=generation)
    await records.projects.create(project)
    await records.jobs.begin(a_job(), owner="me")

    if is_lost:
        assert await records.jobs.take_over("j1", tenant="acme", beat=0, at=NOON)
    else:
        await _end(records, JobState.FAILED)

    after = ProjectStatus.FAILED if generation is None else ProjectStatus.READY
    assert await records.projects.get("p1", tenant="acme") == replace(project, status=after)


async def test_a_job_is_taken_over_only_while_its_counter_stands_still(records: Records) -> None:
    await records.projects.create(a_project())
    await records.jobs.begin(a_job(), owner="me")
    await records.jobs.beat("j1", tenant="acme", owner="me", phase="lexical", statistics=SOME)

    assert not await records.jobs.take_over("j1", tenant="acme", beat=0, at=NOON)
    assert not await records.jobs.take_over("j1", tenant="rival", beat=1, at=NOON)
    assert not await records.jobs.take_over("j9", tenant="acme", beat=0, at=NOON)
    assert await records.jobs.take_over("j1", tenant="acme", beat=1, at=NOON)
    assert not await records.jobs.take_over("j1", tenant="acme", beat=1, at=NOON)

    lost = await records.jobs.get("j1", tenant="acme")
    assert (lost.state, lost.phase, lost.statistics) == (JobState.FAILED, "lexical", SOME)
    assert lost.finished_at == NOON
    assert lost.error is not None
    assert lost.error.code == "JOB_LOST"
    with pytest.raises(LeaseLost):
        await _end(records, JobState.SUCCEEDED)


async def test_a_job_of_another_tenant_does_not_exist(records: Records) -> None:
    await records.projects.create(a_project())
    await records.jobs.begin(a_job(), owner="me")

    with pytest.raises(JobNotFound):
        await records.jobs.get("j1", tenant="rival")

    page = await records.jobs.list_for("p1", tenant="rival", cursor=None, limit=9)
    assert (list(page.items), page.next_cursor) == ([], None)


async def test_a_list_is_newest_first_with_ties_by_falling_id(records: Records) -> None:
    await records.projects.create(a_project())
    await records.projects.create(a_project("p2"))
    await records.jobs.begin(a_job("other", project_id="p2"), owner="me")
    for job_id, age in [("b", 1), ("a", 0), ("c", 0)]:
        job = replace(a_job(job_id), started_at=NOON - timedelta(microseconds=age))
        await records.jobs.begin(job, owner="me")
        await records.jobs.take_over(job_id, tenant="acme", beat=0, at=NOON)

    first = await records.jobs.list_for("p1", tenant="acme", cursor=None, limit=2)
    rest = await records.jobs.list_for("p1", tenant="acme", cursor=first.next_cursor, limit=2)

    assert [job.id for job in first.items] == ["c", "a"]
    assert [job.id for job in rest.items] == ["b"]
    assert rest.next_cursor is None
    with pytest.raises(ValidationFailed):
        await records.jobs.list_for("p2", tenant="acme", cursor=first.next_cursor, limit=2)


async def test_a_write_that_is_tried_changes_nothing(records: Records) -> None:
    await records.projects.create(a_project())
    await records.jobs.begin(a_job(), owner="me")
    before = await records.jobs.get("j1", tenant="acme"), await records.jobs.live()

    for tenant, job in (("acme", "j1"), ("acme", "j9"), ("rival", "j1")):
        await records.jobs.try_write(job, tenant=tenant)

    assert (await records.jobs.get("j1", tenant="acme"), await records.jobs.live()) == before
    assert await records.jobs.take_over("j1", tenant="acme", beat=0, at=NOON)
