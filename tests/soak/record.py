"""What a client of the soak was shown, and what must hold of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.fakes.event_source import Dispatched, EventSourceReader

TERMINATORS = frozenset({"done", "error", "answer"})


@dataclass
class Shown:
    """The events of one run as one client got them, over all its connections."""

    run_id: str
    principal: str
    events: list[Dispatched] = field(default_factory=list)

    @property
    def end(self) -> Dispatched | None:
        """The terminator, if it was shown."""
        last = self.events[-1] if self.events else None
        return last if last is not None and last.type in TERMINATORS else None

    @property
    def last_id(self) -> int:
        """The id of the last event, 0 before the first."""
        return int(self.events[-1].last_event_id) if self.events else 0

    async def read(self, response: httpx.Response, *, most: int | None = None) -> None:
        """Read on, to the terminator, to so many events in all, or until the connection breaks."""
        reader = EventSourceReader()
        async for piece in response.aiter_raw():
            self.events += reader.feed(piece)
            if self.end is not None or (most is not None and len(self.events) >= most):
                return


def faults(shown: Shown, kept: Sequence[Dispatched], kept_through: int | None) -> list[str]:
    """Say what of a client's view differs from what a reload shows.

    Args:
        shown: What the client got.
        kept: What another client is told of the whole run now.
        kept_through: The terminator's own word of what was kept, where its process died.
    """
    found: list[str] = []
    ends = [event for event in kept if event.type in TERMINATORS]
    if len(ends) != 1 or kept[-1].type not in TERMINATORS:
        found.append(f"{len(ends)} terminators are kept")
        return found
    if [event for event in shown.events[:-1] if event.type in TERMINATORS]:
        found.append("something was shown behind a terminator")
    if shown.end is not None and shown.end != kept[-1]:
        found.append("another terminator was shown than is kept")
    ids = [int(event.last_event_id) for event in kept[:-1]]
    if ids != list(range(1, len(ids) + 1)):
        found.append("the ids that are kept do not rise by one")
    by_id = {event.last_event_id: event for event in kept[:-1]}
    for event in shown.events:
        if event.type in TERMINATORS:
            continue
        is_cut = kept_through is not None and int(event.last_event_id) > kept_through
        if not is_cut and by_id.get(event.last_event_id) != event:
            found.append(f"event {event.last_event_id} was shown otherwise than it is kept")
    return found


def kept_through(end: dict[str, Any]) -> int | None:
    """Return what a terminator's data says was kept, in either surface's case."""
    found = end.get("keptThroughId", end.get("kept_through_id"))
    return None if found is None else int(found)
