"""A server process of the soak: the real composition root, with an answerer that takes its time."""

import asyncio
import os
import random
import socket
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import uvicorn

from ibid.adapters.models.extractive import ExtractiveModel
from ibid.bootstrap.runtime import open_runtime
from ibid.ports.models import ModelRequest, ReplyEnd, TextDelta
from ibid.settings import read_settings

LONGEST_PAUSE_S = 0.01  # between two tokens
TERM_S = 1.5


class SlowModel(ExtractiveModel):
    """Quotes by rules, at the speed of a language model, so that runs are met in their middle."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - seeds make a run repeatable

    async def stream(self, request: ModelRequest) -> AsyncIterator[TextDelta | ReplyEnd]:
        """Quote, with a pause before each word."""
        async for piece in super().stream(request):
            await asyncio.sleep(self._random.uniform(0, LONGEST_PAUSE_S))
            yield piece


def serve(
    listening: socket.socket, data: Path, sources: Path, seed: int, environ: Mapping[str, str]
) -> None:
    """Serve on a listening socket until killed; the environment says which store."""
    os.environ.update(environ)
    asyncio.run(_serve(listening, data, sources, seed))


async def _serve(listening: socket.socket, data: Path, sources: Path, seed: int) -> None:
    settings = read_settings(
        os.environ,
        data=data,
        embedder="none",
        folders=str(sources),
        dev_principals=True,
        lease_term_s=TERM_S,
        run_timeout_s=30,
    )
    async with open_runtime(settings, model=SlowModel(seed), keep_watch=True) as runtime:
        config = uvicorn.Config(runtime.app, log_config=None, lifespan="off", access_log=False)
        await uvicorn.Server(config).serve(sockets=[listening])
