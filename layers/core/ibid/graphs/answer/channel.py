"""A bounded way from one writer to one reader, of whom either may leave at any time."""

import asyncio
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Channel(Generic[T]):
    """Items in order. A full channel holds its writer back, but never once the reader has left.

    Args:
        room: Items that may wait for the reader, at least 1.
    """

    def __init__(self, *, room: int) -> None:
        self._room = asyncio.Semaphore(room)
        self._items: asyncio.Queue[tuple[T] | None] = asyncio.Queue()
        self._left = False

    async def put(self, item: T) -> None:
        """Hand an item on as soon as there is room; drop it at once if nobody reads any more."""
        await self._room.acquire()
        if self._left:
            self._room.release()
        else:
            self._items.put_nowait((item,))

    def end(self) -> None:
        """Let the reader's loop end behind the last item; never waits."""
        self._items.put_nowait(None)

    def leave(self) -> None:
        """Stop reading: a writer that waits for room goes on."""
        self._left = True
        self._room.release()

    async def __aiter__(self) -> AsyncIterator[T]:
        """Yield the items until the end; for the one reader."""
        while (item := await self._items.get()) is not None:
            self._room.release()
            yield item[0]
