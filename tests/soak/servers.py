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
_MOMENT_S = 0.5  # longer than most turns, so that a death comes anywhere in one


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
        self._environ = dict(environ)
        self._http = httpx.AsyncClient()  # making one takes longer than most requests
        self._random = random.Random(seed)  # noqa: S311 - seeds make a run repeatable
        self._processes: list[ForkServerProcess] = []
        self._urls: list[str] = []
        self._count = count
        self._turns = asyncio.Semaphore(0)
        self.kills = 0

    async def start(self) -> None:
        """Start all, and wait until they answer."""
        started = [await self._one()]
        if "IBID_CREATE_TABLES" in self._environ:
            self._environ["IBID_CREATE_TABLES"] = "false"  # the first one has made them
        started += [await self._one() for _ in range(1, self._count)]
        self._processes = [process for process, _ in started]
        self._urls = [url for _, url in started]

    def url(self) -> str:
        """Return some server's address; it may be dead by the time that it is used."""
        return self._random.choice(self._urls)

    def turn_done(self) -> None:
        """Bring the next death nearer."""
        self._turns.release()

    async def kill_some(self, between_turns: tuple[int, int]) -> None:
        """Kill a server and replace it after so many turns, again and again, until cancelled.

        They are counted, not timed: on a busy machine what died must have the time to be found
        before more dies, else nothing is ever ended.
        """
        while True:
            for _ in range(self._random.randint(*between_turns)):
                await self._turns.acquire()
            await asyncio.sleep(self._random.uniform(0, _MOMENT_S))
            at = self._random.randrange(self._count)
            self._processes[at].kill()
            self.kills += 1
            self._processes[at], self._urls[at] = await self._one()

    async def start_again(self) -> None:
        """Replace all of them, for the last look."""
        self._stop()
        await self.start()

    async def stop(self) -> None:
        """Kill all that are left."""
        self._stop()
        await self._http.aclose()

    def _stop(self) -> None:
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
        await self._up(url)
        return process, url

    async def _up(self, url: str) -> None:
        async with asyncio.timeout(_UP_S):
            while True:
                with suppress(httpx.TransportError):
                    if (await self._http.get(f"{url}/healthz")).status_code == httpx.codes.OK:
                        return
                await asyncio.sleep(0.05)
