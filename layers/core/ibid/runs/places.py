"""The places for runs in one process: first come, first served.

What a tenant and a subject may run at once is counted in the store.
"""

import asyncio


class Places:
    """So many at once; more wait.

    Args:
        most: At least 1.
    """

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: list[Place] = []

    def claim(self) -> "Place":
        """Take a place, or stand in line for one."""
        place = Place(self)
        self._waiting.append(place)
        self._admit()
        return place

    def leave(self, place: "Place") -> None:
        """Give up a place, or the wait for one."""
        if place in self._waiting:
            self._waiting.remove(place)
            return
        self._free += 1
        self._admit()

    def _admit(self) -> None:
        while self._free > 0 and self._waiting:
            self._free -= 1
            self._waiting.pop(0).admit()


class Place:
    """One run's place, taken or waited for; free it in the end."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._admitted = asyncio.Event()
        self._freed = False

    @property
    def is_taken(self) -> bool:
        """Whether the run may go."""
        return self._admitted.is_set()

    def admit(self) -> None:
        """Let the run go."""
        self._admitted.set()

    async def taken(self) -> None:
        """Wait until the run may go; a cancelled wait changes nothing."""
        await self._admitted.wait()

    def free(self) -> None:
        """Let others have it; repeatable."""
        if not self._freed:
            self._freed = True
            self._places.leave(self)
