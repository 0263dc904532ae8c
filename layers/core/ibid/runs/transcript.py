"""What a run has shown so far: numbered, in the order that every surface relies on."""

from collections.abc import Sequence
from typing import assert_never

from ibid.domain.events import CitationsFound, Entry, StatusChanged, TokenDelta, TurnEvent
from ibid.domain.passages import Citation


class Transcript:
    """Entries from id 1; pure, and the only place that numbers.

    Attributes:
        entries: All of them; the one with id n stands at n - 1, but for a terminator that another
            process wrote.
        has_ended: Whether the last one is the terminator.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.has_ended = False
        self._has_citations = False
        self._has_tokens = False

    @property
    def last_id(self) -> int:
        """The id of the last event before the terminator, 0 if there is none."""
        return len(self.entries) - self.has_ended

    @property
    def text(self) -> str:
        """The tokens so far, joined."""
        events = (entry.event for entry in self.entries)
        return "".join(event.text for event in events if isinstance(event, TokenDelta))

    @property
    def citations(self) -> Sequence[Citation]:
        """What the first retrieval found, if it was shown."""
        for entry in self.entries:
            if isinstance(entry.event, CitationsFound):
                return tuple(entry.event.citations)
        return ()

    def show(self, event: TurnEvent) -> None:
        """Add an event, unless it comes where none of its kind may.

        Phases end with the first token; citations come once, before it, and are added where a
        turn searched nothing; an empty token is none. Half of a surrogate pair, which no UTF-8
        holds, becomes U+FFFD, so that what is shown can be kept.
        """
        match event:
            case StatusChanged():
                if not self._has_tokens:
                    self._add(event)
            case CitationsFound():
                if not self._has_citations:
                    self._has_citations = True
                    self._add(event)
            case TokenDelta():
                if event.text:
                    self.complete()
                    self._has_tokens = True
                    self._add(_whole(event))
            case _:
                assert_never(event)

    def complete(self) -> None:
        """Show citations before a token or a `Done`, if the turn has not."""
        self.show(CitationsFound(citations=()))

    def cut(self, through_id: int) -> None:
        """Forget what came after an id: nobody saw it, and nobody will."""
        del self.entries[through_id:]

    def end(self, entry: Entry) -> None:
        """Add the terminator, under the id that was kept with it."""
        self.entries.append(entry)
        self.has_ended = True

    def _add(self, event: TurnEvent) -> None:
        self.entries.append(Entry(id=self.last_id + 1, event=event))


def _whole(token: TokenDelta) -> TokenDelta:
    try:
        token.text.encode()
    except UnicodeEncodeError:
        units = token.text.encode("utf-16-le", "surrogatepass")
        return TokenDelta(text=units.decode("utf-16-le", "replace"))
    return token
