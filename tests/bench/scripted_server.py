"""Ibid as `ibid serve` runs it, but with a scripted model: `python -m ... PORT DATA`."""

import asyncio
import os
import sys
from pathlib import Path

import uvicorn
import uvloop

from ibid.bootstrap.runtime import open_runtime
from ibid.cli.index import begin_indexing
from ibid.domain.projects import JobState
from ibid.settings import read_settings
from tests.fakes.scripted_model import ScriptedModel

CORPUS = {
    "sessions.py": '''"""Sessions in a signed cookie."""


def sign_session(cookie: str, key: str) -> str:
    """Sign the session cookie, so that a client can't change it."""
    return f"{cookie}.{key}"


def open_session(cookie: str, key: str) -> str:
    """Check the signature of the session cookie, and return what it holds."""
    return cookie.removesuffix(f".{key}")
''',
    "README.md": "# Sessions\n\nThe session cookie is signed in `sessions.py`.\n",
}


async def serve(port: int, data: Path) -> None:
    """Index the small corpus, then serve with the limits raised."""
    settings = read_settings(
        {}, data=data, port=port, max_runs=512, max_runs_per_tenant=512, max_runs_per_subject=512
    )
    tokens = [f"tok{number} " for number in range(int(os.environ.get("TOKENS", "200")))]
    async with open_runtime(settings, model=ScriptedModel(tokens), keep_watch=True) as runtime:
        corpus = data / "corpus"
        corpus.mkdir(parents=True, exist_ok=True)
        for name, text in CORPUS.items():
            (corpus / name).write_text(text)
        project, job_id = await begin_indexing(runtime, str(corpus), name="bench", force=False)
        while True:
            job = await runtime.records.jobs.get(job_id, tenant=project.tenant)
            if job.state in {JobState.SUCCEEDED, JobState.FAILED}:
                break
            await asyncio.sleep(0.05)
        config = uvicorn.Config(
            runtime.app, port=port, lifespan="off", log_level="warning", access_log=False
        )
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(int(sys.argv[1]), Path(sys.argv[2])))
