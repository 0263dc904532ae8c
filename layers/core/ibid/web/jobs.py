"""Routes of indexing jobs."""

from fastapi import APIRouter

from ibid.web.access import ViewedJob
from ibid.web.errors import documented
from ibid.web.project_bodies import JobBody

router = APIRouter(tags=["projects"])


@router.get("/jobs/{jobId}", responses=documented(404, 422))
async def get_job(job: ViewedJob) -> JobBody:
    """Return one indexing job, with its progress."""
    return JobBody.of(job)
