"""Server processes on one store, killed and replaced at random."""

import asyncio
import multiprocessing
import random
import socket
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import httpx

from tests.soak.server import serve

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.soak.server"])
_UP_S = 120.0


class Servers:
    """A few servers; any of them may die at any time, and another takes its place.

    Args:
        data: The data folder of all of them.
        sources: The folder that they may index.
        environ: What says which store they use.
        seed: Of who is killed when.
        count: How many.
    """

    def __init__(
        self,
        data: Path,
        sources: Path,
        *,
        environ: Mapping[str, str],
        seed: int,
        count: int = 2,
    ) -> None:
        self._data = data
        self._sources = sources
        self._environ = environ
        self._random = random.Random(seed)  # noqa: S311 - seeds make a run repeatable
        self._processes: list[ForkServerProcess] = []
        self._urls: list[str] = []
        self._count = count
        self.kills = 0

    async def start(self) -> None:
        """Start all, and wait until they answer."""
        started = [await self._one() for _ in range(self._count)]
        self._processes = [process for process, _ in started]
        self._urls = [url for _, url in started]

    def url(self) -> str:
        """Return some server's address; it may be dead by the time that it is used."""
        return self._random.choice(self._urls)

    async def kill_some(self, between_s: tuple[float, float]) -> None:
        """Kill a server and replace it, again and again, until cancelled."""
        while True:
            await asyncio.sleep(self._random.uniform(*between_s))
            at = self._random.randrange(self._count)
            self._processes[at].kill()
            self.kills += 1
            self._processes[at], self._urls[at] = await self._one()

    async def start_again(self) -> None:
        """Replace all of them, for the last look."""
        self.stop()
        await self.start()

    def stop(self) -> None:
        """Kill all that are left."""
        for process in self._processes:
            process.kill()
            process.join()
            process.close()
        self._processes = []

    async def _one(self) -> tuple[ForkServerProcess, str]:
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen(128)
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            seed = self._random.getrandbits(32)
            arguments = (listening, self._data, self._sources, seed, self._environ)
            process = _CONTEXT.Process(target=serve, args=arguments, daemon=True)
            process.start()
        await _up(url)
        return process, url


async def _up(url: str) -> None:
    async with asyncio.timeout(_UP_S), httpx.AsyncClient() as client:
        while True:
            with suppress(httpx.TransportError):
                if (await client.get(f"{url}/healthz")).status_code == httpx.codes.OK:
                    return
            await asyncio.sleep(0.05)
