"""A browser's EventSource as the HTML standard has it, fed whatever bytes a network gives it.

https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

import codecs
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dispatched:
    """One event as a page's listener gets it."""

    type: str
    data: str
    last_event_id: str


class EventSourceReader:
    """Decodes UTF-8 across pieces, then lines across pieces, then fields."""

    def __init__(self) -> None:
        self.comments: list[str] = []
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._started = False
        self._line = ""
        self._after_return = False
        self._type = ""
        self._data: list[str] = []
        self._last_event_id = ""

    def feed(self, piece: bytes) -> list[Dispatched]:
        """Return the events that this piece completes."""
        events: list[Dispatched] = []
        for sign in self._decode(piece):
            if not self._started:
                self._started = True
                if sign == "\ufeff":
                    continue
            if sign == "\n" and self._after_return:
                self._after_return = False
                continue
            self._after_return = sign == "\r"
            if sign in "\r\n":
                events += self._end_line()
            else:
                self._line += sign
        return events

    def feed_all(self, pieces: Iterable[bytes]) -> list[Dispatched]:
        return [event for piece in pieces for event in self.feed(piece)]

    def _end_line(self) -> list[Dispatched]:
        line, self._line = self._line, ""
        if not line:
            return self._dispatch()
        name, colon, value = line.partition(":")
        value = value.removeprefix(" ")
        if colon and not name:
            self.comments.append(value)
        elif name == "event":
            self._type = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._last_event_id = value
        return []

    def _dispatch(self) -> list[Dispatched]:
        data, kind = self._data, self._type
        self._data, self._type = [], ""
        if not data:
            return []
        return [Dispatched(kind or "message", "\n".join(data), self._last_event_id)]
