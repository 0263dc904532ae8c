"""Work that must not be left half done."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await work that goes on to its end even if the awaiting task is cancelled meanwhile.

    Raises:
        CancelledError: Once the work has ended; what it gave or raised is then dropped.
    """
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # seen, so that nobody warns of it
        raise cancelled
    return task.result()
