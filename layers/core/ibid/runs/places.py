"""Places for runs: so many a process, a tenant and a subject, first come, first served."""

import asyncio
from collections import Counter

from ibid.domain.principals import Principal
from ibid.runs.limits import RunLimits

_Counted = tuple[str, ...]  # (), (tenant,), (tenant, subject)


class Places:
    """The places of one process; whoever waits passes only those who can't go yet."""

    def __init__(self, limits: RunLimits) -> None:
        self._most = (limits.process, limits.tenant, limits.subject)
        self._taken: Counter[_Counted] = Counter()
        self._waiting: list[Place] = []

    def claim(self, principal: Principal) -> "Place":
        """Take a place, or stand in line for one."""
        place = Place(self, principal)
        self._waiting.append(place)
        self._admit()
        return place

    def leave(self, place: "Place") -> None:
        """Give up a place, or the wait for one."""
        if place in self._waiting:
            self._waiting.remove(place)
            return
        self._taken.subtract(place.counted)
        self._taken = +self._taken  # a tenant without runs takes no memory
        self._admit()

    def _admit(self) -> None:
        for place in list(self._waiting):
            if all(
                self._taken[counted] < most
                for counted, most in zip(place.counted, self._most, strict=True)
            ):
                self._waiting.remove(place)
                self._taken.update(place.counted)
                place.admit()


class Place:
    """One run's place, taken or waited for; free it in the end.

    Attributes:
        counted: What it counts against.
    """

    def __init__(self, places: Places, principal: Principal) -> None:
        tenant, subject = principal.tenant, principal.subject
        self.counted: tuple[_Counted, ...] = ((), (tenant,), (tenant, subject))
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
