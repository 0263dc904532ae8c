"""What a run's events are called: each graph's journal is told in the words of its own surface."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ibid.domain.conversations import Run
from ibid.domain.events import Entry
from ibid.web.answering import AnswerParts
from ibid.web.ask_telling import AskTelling
from ibid.web.framing import message_event

Tell = Callable[[Entry, Run], tuple[str, str]]
"""Translates the next entry, given the run as it is known then: its name and its JSON."""


class Whole(Protocol):
    """A run's answer as one JSON body, made of its events."""

    @property
    def body(self) -> str | None:
        """The answer's JSON; None before the terminator was added."""

    def add(self, entry: Entry, run: Run) -> None:
        """Take in the next entry, with the terminator the run as it is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """The words of one surface.

    Attributes:
        telling: Begins to translate one run.
        whole: Begins to put together one run's answer.
        is_cumulative: An entry can only be told after all entries before it.
    """

    telling: Callable[[], Tell]
    whole: Callable[[], Whole]
    is_cumulative: bool


def _tell_message(entry: Entry, _: Run) -> tuple[str, str]:
    return message_event(entry.event)


SURFACES: Mapping[str, Surface] = {
    "messages": Surface(telling=lambda: _tell_message, whole=AnswerParts, is_cumulative=False),
    "ask": Surface(telling=lambda: AskTelling().tell, whole=AskTelling, is_cumulative=True),
}
"""By the name of the graph."""


def surface_of(run: Run) -> Surface:
    """Return the surface whose words a run is told in."""
    return SURFACES[run.graph]
