"""A queue of runs in memory, which a test takes tickets from."""

import asyncio
from collections.abc import Sequence

from ibid.domain.tickets import RunTicket


class FakeRunQueue:
    """Implements RunQueue.

    Attributes:
        messages: What was sent, as a queue keeps it.
        error: What every send raises, after it put the ticket into the queue if `loses_reply`.
        loses_reply: See there.
    """

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.error: BaseException | None = None
        self.loses_reply = False

    async def send(self, ticket: RunTicket) -> None:
        await asyncio.sleep(0)
        if self.error is None or self.loses_reply:
            self.messages.append(ticket.to_json())
        if self.error is not None:
            raise self.error

    @property
    def tickets(self) -> Sequence[RunTicket]:
        return [RunTicket.from_json(message) for message in self.messages]
