"""`ibid serve`: the HTTP server, and perhaps a first project beside it."""

import asyncio
import json
import shlex
import socket
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import uvicorn
from rich.console import Console

from ibid.bootstrap.runtime import DRAIN_S, Runtime, open_runtime
from ibid.cli.environment import settings_for
from ibid.cli.first_question import first_question
from ibid.cli.index import begin_indexing, place_of, tell_outcome, watch_job
from ibid.cli.workspace import new_conversation
from ibid.domain.errors import IbidError, Misconfigured
from ibid.domain.projects import Job, Project
from ibid.settings import Settings, is_loopback

LINGER_S = 1  # for what is no run, such as half an upload
POLL_S = 0.1


def serve_until_stopped(
    *, data: Path | None, host: str | None, port: int | None, source: str | None, name: str | None
) -> None:
    """Serve until SIGTERM or SIGINT; running turns get their terminator within `DRAIN_S`.

    Raises:
        Misconfigured: A setting is absurd, or the port is taken.
        SourceRejected: There is no such source.
    """
    settings = settings_for(data=data, host=host, port=port)
    if source is not None:
        place_of(source)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(settings, None if source is None else _First(source, name)))


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
        self._is_stopping = False
        self.started_up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.started_up.set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._is_stopping:
            super().handle_exit(sig, frame)
            return
        self._is_stopping = True
        self._on_stop()


class _First(NamedTuple):
    """What to index when the server has started, and the project's name if one was given."""

    source: str
    name: str | None


async def _serve(settings: Settings, first: _First | None) -> None:
    console = Console(stderr=True)
    with _listening(settings) as listening:
        await _serve_on(listening, settings, first, console)


def _base(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _listening(settings: Settings) -> socket.socket:
    """Take the port before anything is opened.

    Raises:
        Misconfigured: It is taken or not allowed, or the host is not this machine's.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise Misconfigured(
            f"Can't listen on {settings.host}:{settings.port}: {error.strerror}"
        ) from None
    return listening


async def _serve_on(
    listening: socket.socket, settings: Settings, first: _First | None, console: Console
) -> None:
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
                lifespan="off",
                access_log=False,
                log_level="warning",
                server_header=False,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=LINGER_S,
            ),
            stop,
        )
        if not is_loopback(settings.host):
            console.print(
                f"{settings.host} is not loopback: whoever reaches this port is the one user",
                style="yellow",
            )
        guide = asyncio.create_task(_guide(runtime, server, _base(listening), first, console))
        try:
            await server.serve([listening])
        finally:
            guide.cancel()
            await asyncio.gather(guide, return_exceptions=True)


async def _guide(
    runtime: Runtime, server: _Server, base: str, first: _First | None, console: Console
) -> None:
    """Once the server listens, say where; index the source and say how to ask about it."""
    await server.started_up.wait()
    console.print(f"Ibid serves on {base}", markup=False)
    if first is None:
        return
    try:
        project, job_id = await begin_indexing(runtime, first.source, name=first.name, force=False)
        watching = asyncio.create_task(watch_job(runtime, project, job_id, console))
        project = await _searchable(runtime, project, watching)
        if project.active_generation is not None:
            await _tell_how_to_ask(runtime, project, base, console)
        job = await watching
        tell_outcome(project, job, console)
    except IbidError as error:
        console.print(f"{first.source!r}: {error} ({error.code})", style="red", markup=False)


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
    question = await first_question(runtime.services.index, project)
    body = json.dumps({"question": question})
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
