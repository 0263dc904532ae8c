"""Ibid as `ibid serve` runs it, with a model that keeps a pace: `python -m ... PORT DATA SOURCES`.

The question says the pace: `rate=125 tokens=500`. The environment says which store.
"""

import asyncio
import os
import re
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import uvicorn
import uvloop

from ibid.bootstrap.runtime import open_runtime
from ibid.ports.models import ModelRequest, ReplyEnd, TextDelta
from ibid.settings import read_settings
from tests.fakes.scripted_model import ScriptedModel

_PACE = re.compile(r"rate=(\d+) tokens=(\d+)")


class PacedModel(ScriptedModel):
    """Says as many tokens as it is asked for, at an even rate."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[TextDelta | ReplyEnd]:
        """Say `tok0 tok1 ...`."""
        match = _PACE.search(request.question)
        assert match is not None
        rate, count = map(int, match.groups())
        began = time.monotonic()
        for number in range(count):
            await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            yield TextDelta(text=f"tok{number} ")
        yield ReplyEnd(input_tokens=1, output_tokens=count)


async def serve(port: int, data: Path, sources: Path) -> None:
    """Serve with the limits raised."""
    settings = read_settings(
        os.environ,
        data=data,
        port=port,
        embedder="none",
        folders=str(sources),
        max_runs=512,
        max_runs_per_tenant=512,
        max_runs_per_subject=512,
    )
    async with open_runtime(settings, model=PacedModel(), keep_watch=True) as runtime:
        config = uvicorn.Config(
            runtime.app, port=port, lifespan="off", log_level="warning", access_log=False
        )
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])))
