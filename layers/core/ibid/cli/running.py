"""Runs a command's coroutine so that a signal lets it end in order."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

import typer

T = TypeVar("T")

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)  # SIGINT is asyncio's own: it cancels as well
_SHELLS_BASE = 128


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end; SIGTERM and SIGHUP cancel it, and what it has open is closed.

    Raises:
        KeyboardInterrupt: After SIGINT.
        Exit: After another signal, with the status that a shell shows for it.
    """
    caught: list[signal.Signals] = []

    async def cancellable() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def stop(sign: signal.Signals) -> None:
            caught.append(sign)
            if task is not None:
                task.cancel()

        for sign in _SIGNALS:
            loop.add_signal_handler(sign, stop, sign)
        return await work

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        raise typer.Exit(_SHELLS_BASE + (caught[0] if caught else signal.SIGINT)) from None
