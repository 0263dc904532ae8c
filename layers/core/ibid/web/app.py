"""The web application: its routes, its one form for errors, and its edges."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp

from ibid.web import (
    ask,
    conversations,
    feedback,
    health,
    internal_events,
    jobs,
    messages,
    projects,
    runs,
    uploads,
)
from ibid.web.edges import BodyLimit, CatchAll, HostCheck
from ibid.web.errors import add_error_handlers
from ibid.web.idempotency import Idempotency
from ibid.web.schema import openapi_of
from ibid.web.services import Services

MODULES = (health, projects, uploads, jobs, conversations, messages, runs, ask, feedback)


class IbidApp(FastAPI):
    """FastAPI with our outermost edges and the events in its schema."""

    def build_middleware_stack(self) -> ASGIApp:
        """Wrap the framework's own outermost layer, which sends a 500 and then raises on."""
        services: Services = self.state.services
        limits = services.limits
        inner = BodyLimit(
            Idempotency(super().build_middleware_stack(), services),
            max_bytes=limits.max_body_bytes,
            max_upload_bytes=limits.max_upload_bytes + limits.max_body_bytes,
        )
        return CatchAll(HostCheck(inner, services.hosts))

    def openapi(self) -> dict[str, Any]:
        """Return the schema of all routes and events."""
        return openapi_of(self)


def make_app(services: Services) -> FastAPI:
    """Make the application on its collaborators; it opens and reads nothing by itself."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if services.lifespan is None:
            yield
            return
        async with services.lifespan():
            yield

    modules = (*MODULES, internal_events) if services.queue_events else MODULES
    app = IbidApp(
        title="Ibid",
        summary="Answers questions about a team's code and documents with checked citations.",
        version=services.version,
        routes=[route for module in modules for route in module.router.routes],
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.services = services
    add_error_handlers(app)
    return app
