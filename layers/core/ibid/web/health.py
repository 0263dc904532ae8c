"""The route that says that the server serves."""

from typing import Literal

from fastapi import APIRouter

from ibid.web.access import Given
from ibid.web.errors import documented
from ibid.web.wire import Wire

router = APIRouter(tags=["health"])


class HealthBody(Wire):
    """That the process answers, and which version it runs."""

    status: Literal["ok"]
    version: str


@router.get("/healthz", responses=documented())
async def get_health(services: Given) -> HealthBody:
    """Say that the process answers; no store is asked."""
    return HealthBody(status="ok", version=services.version)
