"""Every event of every surface, by surface and by name: the one list that the schema is made of."""

from collections.abc import Mapping

from ibid.web.ask_events import ASK_EVENTS
from ibid.web.message_events import MESSAGE_EVENTS
from ibid.web.wire import Wire

EVENT_MODELS: Mapping[str, Mapping[str, type[Wire]]] = {
    "messages": MESSAGE_EVENTS,
    "ask": ASK_EVENTS,
}
