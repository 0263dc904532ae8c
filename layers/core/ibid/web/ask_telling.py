"""Run events as the Ask surface names them."""

from json.encoder import encode_basestring
from typing import assert_never

from ibid.domain.conversations import Run
from ibid.domain.events import (
    CitationsFound,
    Done,
    Entry,
    Failed,
    Paused,
    Phase,
    StatusChanged,
    TokenDelta,
)
from ibid.web.ask_envelope import envelope_of
from ibid.web.ask_events import AskErrorEvent, AskStatusEvent
from ibid.web.wire import whole


class AskTelling:
    """Translates one run's entries, all of them from the first: the envelope holds every token.

    Attributes:
        body: The data of the terminator, which is also the whole answer as JSON; None before.
    """

    def __init__(self) -> None:
        self.body: str | None = None
        self._phase = Phase.RETRIEVING
        self._pieces: list[str] = []

    def add(self, entry: Entry, run: Run) -> None:
        """Take in the next entry."""
        self.tell(entry, run)

    def tell(self, entry: Entry, run: Run) -> tuple[str, str]:
        """Translate the next entry: its name, and its JSON, which holds no line end.

        Args:
            entry: The one after the last one that was told.
            run: With its terminator, the run as it is kept.
        """
        event = entry.event
        match event:
            case TokenDelta():
                self._pieces.append(event.text)
                # Byte for byte what TokenDeltaEvent gives, without the cost of a model a token.
                return "token_delta", f'{{"delta":{encode_basestring(whole(event.text))}}}'
            case StatusChanged():
                self._phase = event.phase
                return "status", AskStatusEvent(phase=event.phase).model_dump_json()
            case CitationsFound():
                found = AskStatusEvent(phase=self._phase, passages=len(event.citations))
                return "status", found.model_dump_json()
            case Done() | Paused():
                name, self.body = "answer", self._answer(event, run)
            case Failed():
                name, self.body = "error", _error(event, run)
            case _:
                assert_never(event)
        return name, self.body

    def _answer(self, end: Done | Paused, run: Run) -> str:
        return envelope_of(run, end, "".join(self._pieces)).model_dump_json()


def _error(failed: Failed, run: Run) -> str:
    return AskErrorEvent(
        code=failed.code,
        message=whole(failed.message),
        run_id=run.id,
        finish_reason=failed.finish_reason,
        kept_through_id=failed.kept_through_id,
    ).model_dump_json()
