"""What tells a worker of a run that waits in a queue.

A ticket never holds the question, or anything else of the asker's words: that is in the run's own
message, and goes with it when it is deleted. A queue keeps what it was given.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, get_args, get_type_hints

from ibid.domain.answers import REPLY_LANGUAGES, Style
from ibid.domain.principals import Principal

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTicket:
    """A run, and what of its turn is kept nowhere else.

    Attributes:
        style: As the asker likes to read.
        path_prefix: Only files whose path starts with it; None means all.
        reply_language: None takes the conversation's, else the project's, else English.
        is_behind: It may wait for the end of another run of its conversation.
    """

    tenant: str
    subject: str
    run_id: str
    style: Style = field(default_factory=Style)
    path_prefix: str | None = None
    reply_language: str | None = None
    is_behind: bool = False

    @property
    def principal(self) -> Principal:
        """Who asked."""
        return Principal(tenant=self.tenant, subject=self.subject)

    def to_json(self) -> str:
        """Write it as a message of a queue, in ASCII."""
        return json.dumps({"version": _VERSION, **asdict(self)}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "RunTicket":
        """Read what `to_json` wrote.

        Raises:
            ValueError: It is none, or another version's; the text is not in the message.
        """
        try:
            fields: Any = json.loads(text)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict) or fields.pop("version", None) != _VERSION:
            raise ValueError("a message is no ticket of this version")
        try:
            return _read(fields)
        except (KeyError, TypeError, ValueError):
            raise ValueError("a ticket has other fields than it should") from None


def _read(fields: Mapping[str, Any]) -> RunTicket:
    """Make the ticket of decoded fields; KeyError, TypeError or ValueError for what is none."""
    ticket = RunTicket(**{**fields, "style": Style(**fields["style"])})
    dials = get_type_hints(Style)
    if (
        not all(isinstance(one, str) and one for one in (ticket.tenant, ticket.subject))
        or not isinstance(ticket.run_id, str)
        or not isinstance(ticket.path_prefix, str | None)
        or ticket.reply_language not in {None, *REPLY_LANGUAGES}
        or not isinstance(ticket.is_behind, bool)
    ):
        raise TypeError("a field of another type")
    for name, value in fields["style"].items():
        literal, _ = get_args(dials[name])
        if value is not None and value not in get_args(literal):
            raise ValueError("an unknown style")
    return ticket
