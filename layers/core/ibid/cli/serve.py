"""`ibid serve`: the HTTP server, and perhaps a first project beside it."""

import asyncio
import json
import shlex
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import uvicorn
from rich.console import Console

from ibid.bootstrap import Runtime, open_runtime
from ibid.cli.environment import settings_for
from ibid.cli.index import begin_indexing, tell_outcome, watch_job
from ibid.cli.workspace import new_conversation
from ibid.domain.errors import IbidError, Misconfigured
from ibid.domain.projects import Job, Project
from ibid.settings import Settings, is_loopback

DRAIN_S = 5.0
POLL_S = 0.1


def serve_until_stopped(
    *, data: Path | None, host: str | None, port: int | None, source: str | None, name: str | None
) -> None:
    """Serve until SIGTERM or SIGINT; running turns get their terminator within `DRAIN_S`.

    Raises:
        Misconfigured: A setting is absurd, or the port is taken.
    """
    settings = settings_for(data=data, host=host, port=port)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(settings, source, name))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Take uvloop where there is one: Windows has none."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


class _Server(uvicorn.Server):
    """uvicorn, but a signal first lets the running turns end: new ones get 503 meanwhile."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_stop = on_stop
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit or sig == signal.SIGINT:
            super().handle_exit(sig, frame)
            return
        self._on_stop()


async def _serve(settings: Settings, source: str | None, name: str | None) -> None:
    console = Console(stderr=True)
    async with open_runtime(settings, keep_watch=True) as runtime:
        loop = asyncio.get_running_loop()
        stopping: list[asyncio.Task[None]] = []

        def stop() -> None:
            loop.call_soon_threadsafe(lambda: stopping.append(asyncio.create_task(drain())))

        async def drain() -> None:
            await runtime.engine.drain(DRAIN_S)
            server.should_exit = True

        server = _Server(
            uvicorn.Config(
                runtime.app,
                host=settings.host,
                port=settings.port,
                lifespan="off",
                access_log=False,
                log_level="warning",
                server_header=False,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=int(DRAIN_S),
            ),
            stop,
        )
        if not is_loopback(settings.host):
            console.print(
                f"{settings.host} is not loopback: whoever reaches this port is the one user",
                style="yellow",
            )
        guide = asyncio.create_task(_guide(runtime, server, source, name, console))
        try:
            await server.serve()
        except SystemExit:
            raise Misconfigured(
                f"Can't listen on {settings.host}:{settings.port}: the port is taken or not allowed"
            ) from None
        finally:
            guide.cancel()
            await asyncio.gather(guide, return_exceptions=True)
            await runtime.engine.drain(DRAIN_S)


async def _guide(
    runtime: Runtime, server: _Server, source: str | None, name: str | None, console: Console
) -> None:
    """Once the server listens, say where; index the source and say how to ask about it."""
    await server.listening.wait()
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    base = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    console.print(f"Ibid serves on {base}", markup=False)
    if source is None:
        return
    try:
        project, job_id = await begin_indexing(runtime, source, name=name, force=False)
        watching = asyncio.create_task(watch_job(runtime, project, job_id, console))
        project = await _searchable(runtime, project, watching)
        if project.active_generation is not None:
            await _tell_how_to_ask(runtime, project, base, console)
        job = await watching
        tell_outcome(project, job, console)
    except IbidError as error:
        console.print(f"{source!r}: {error} ({error.code})", style="red", markup=False)


async def _searchable(runtime: Runtime, project: Project, watching: asyncio.Task[Job]) -> Project:
    """Wait for the first generation, or for the job's end, and return the project as it is."""
    while True:
        ended = watching.done()
        project = await runtime.records.projects.get(project.id, tenant=project.tenant)
        if project.active_generation is not None or ended:
            return project
        await asyncio.sleep(POLL_S)


async def _tell_how_to_ask(runtime: Runtime, project: Project, base: str, console: Console) -> None:
    conversation = await new_conversation(runtime, project)
    body = json.dumps({"question": "Where does a run end?"})
    console.print(
        f"\nProject {project.name!r} can be asked ({project.chunk_count} chunks). Paste this:\n",
        markup=False,
        highlight=False,
    )
    console.print(
        f"curl -N {base}/conversations/{conversation.id}/messages"
        " -H 'Accept: text/event-stream' -H 'Content-Type: application/json'"
        f" -d {shlex.quote(body)}\n",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
