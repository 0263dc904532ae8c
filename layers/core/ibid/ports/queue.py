"""Where runs wait for a process that works on them."""

from typing import Protocol

from ibid.domain.tickets import RunTicket


class RunQueue(Protocol):
    """Hands each ticket to a worker at least once, some time, in any order.

    A worker that does not say that it is through gets the ticket again, or another one does.
    """

    async def send(self, ticket: RunTicket) -> None:
        """Put a ticket into the queue; it is there for certain once this returns.

        Raises:
            QueueUnavailable: It may be there or not.
        """
