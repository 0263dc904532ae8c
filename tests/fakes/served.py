"""Applications behind real sockets, each as its own process would serve it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import uvicorn
from starlette.types import ASGIApp

from ibid.domain.principals import Principal
from tests.fakes.app import ANN


@dataclass(frozen=True, kw_only=True)
class Served:
    """An application that listens on loopback."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(
        self, principal: Principal = ANN, *, headers: Mapping[str, str] | None = None
    ) -> httpx.AsyncClient:
        """Make a client that is the principal, and has all the time it needs."""
        who = {"Ibid-Dev-Principal": f"{principal.tenant}/{principal.subject}"}
        return httpx.AsyncClient(base_url=self.url, headers={**who, **(headers or {})}, timeout=60)


@asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[Served]:
    """Serve until left."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield Served(port=listening.getsockname()[1])
        finally:
            server.should_exit = True
            await task
