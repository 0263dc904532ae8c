"""Faults at every await: of a port's calls, and of every task of an event loop."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Literal

At = Callable[[str], Awaitable[None]]


class Faulty:
    """A port whose calls ask `at` for a fault before they begin and after they are done.

    `at` is given `name:before` or `name:after`; after means that the work is done and only its
    answer is lost.
    """

    def __init__(self, port: object, at: At) -> None:
        self._port = port
        self._at = at

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        method = getattr(self._port, name)

        async def call(*args: object, **kwargs: object) -> object:
            await self._at(f"{name}:before")
            result = await method(*args, **kwargs)
            await self._at(f"{name}:after")
            return result

        return call


def die() -> None:
    """End this process at once, as the operating system would."""
    os.kill(os.getpid(), signal.SIGKILL)


class Gate:
    """Holds a port's calls at some points while it is shut, as if the process were suspended.

    Args:
        points: Where.

    Attributes:
        met: Set once a call waits.
    """

    def __init__(self, *points: str) -> None:
        self._points = points
        self._is_open = asyncio.Event()
        self._is_open.set()
        self.met = asyncio.Event()

    def shut(self) -> None:
        self._is_open.clear()

    def open(self) -> None:
        self._is_open.set()

    async def __call__(self, point: str) -> None:
        if point in self._points and not self._is_open.is_set():
            self.met.set()
            await self._is_open.wait()


Kind = Literal["error", "late error", "cancel", "kill"]


class InjectedError(Exception):
    """Nobody expects this one."""


class Injector:
    """A task factory: every suspension of every task is counted, and one of them goes wrong.

    Args:
        at: Which, from 1; 0 only counts.
        kind: `error` is raised at once, `late error` in the place of what was waited for,
            `cancel` cancels the task, `kill` ends the process.

    Attributes:
        suspensions: How many there were.
    """

    def __init__(self, at: int = 0, kind: Kind = "error") -> None:
        self._at = at
        self._kind = kind
        self.suspensions = 0

    def __call__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        **options: Any,  # noqa: ANN401 - a task factory's, which differ by Python version
    ) -> "asyncio.Task[Any]":
        return asyncio.Task(_Suspensions(work, self._fault), loop=loop, **options)

    def _fault(self) -> Kind | None:
        self.suspensions += 1
        return self._kind if self.suspensions == self._at else None


class _Suspensions(Coroutine[Any, Any, Any]):
    """A coroutine that steps another one and meddles with it at its suspensions."""

    def __init__(
        self,
        work: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        fault: Callable[[], Kind | None],
    ) -> None:
        self._work = work
        self._fault = fault
        self._is_late = False

    def send(self, value: Any) -> object:  # noqa: ANN401 - a task sends None
        if self._is_late:
            self._is_late = False
            return self.throw(InjectedError())
        return self._suspended(self._work.send(value))

    def throw(self, *error: Any) -> object:  # noqa: ANN401 - one error, or the old three parts
        return self._suspended(self._work.throw(*error))

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        raise NotImplementedError  # a task steps it

    def _suspended(self, waited_for: object) -> object:
        match self._fault():
            case "error":
                return self.throw(InjectedError())
            case "late error":
                self._is_late = True
            case "cancel":
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            case "kill":
                die()
            case None:
                pass
        return waited_for
