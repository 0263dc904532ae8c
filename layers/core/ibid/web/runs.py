"""Routes of runs."""

from fastapi import APIRouter

from ibid.web.access import OwnRun
from ibid.web.conversation_bodies import RunBody
from ibid.web.errors import documented

router = APIRouter(tags=["runs"])


@router.get("/runs/{runId}", responses=documented(404, 422))
async def get_run(run: OwnRun) -> RunBody:
    """Return how one run stands."""
    return RunBody.of(run)
