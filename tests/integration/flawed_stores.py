"""Stores of runs that are worse on purpose: a sweep that finds nothing wrong with them is none."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from ibid.domain.conversations import Run
from ibid.domain.errors import LeaseLost
from ibid.ports.runs import PlaceLimits, RunStore

_LATE_S = 0.05


class _HastyRuns:
    """Says of an end that it is kept, and keeps it a little later."""

    def __init__(self, runs: RunStore) -> None:
        self._runs = runs
        self._late: set[asyncio.Task[None]] = set()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the port has
        return getattr(self._runs, name)

    async def end(self, run: Run, **end: Any) -> Run:  # noqa: ANN401 - the port's own
        task = asyncio.create_task(self._keep(run, end))
        self._late.add(task)
        told = {"state": end["state"], "terminator": end["terminator"]}
        return replace(run, last_event_id=end["event_id"], ended_at=end["at"], **told)

    async def _keep(self, run: Run, end: dict[str, Any]) -> None:
        await asyncio.sleep(_LATE_S)
        await self._runs.end(run, **end)


class _UnfencedRuns:
    """Gives a run to whoever asks for it, though another process has it."""

    def __init__(self, runs: RunStore) -> None:
        self._runs = runs

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the port has
        return getattr(self._runs, name)

    async def adopt(self, run: Run, *, beat: int, owner: str) -> Run:
        try:
            return await self._runs.adopt(run, beat=beat, owner=owner)
        except LeaseLost:
            return replace(run, lease_owner=owner, beat=beat + 1)

    async def admit(self, run: Run, *, limits: PlaceLimits) -> bool:
        try:
            return await self._runs.admit(run, limits=limits)
        except LeaseLost:
            return True


def _sound(runs: RunStore) -> RunStore:
    return runs


FLAWS: Mapping[str, Callable[[RunStore], RunStore]] = {
    "": _sound,
    "ends are kept late": lambda runs: cast("RunStore", _HastyRuns(runs)),
    "adoptions are not fenced": lambda runs: cast("RunStore", _UnfencedRuns(runs)),
}
