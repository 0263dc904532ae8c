"""Who reads a run in its own process, and how far each has come."""

import asyncio

from ibid.domain.events import Entry
from ibid.runs.transcript import Transcript


class Reading:
    """One reader's place in a transcript that may still grow.

    Args:
        transcript: What is read.
        after: The id of the last event that the reader has; entries up to it are passed over.

    Attributes:
        taken: How many entries it has taken or passed over.
    """

    def __init__(self, transcript: Transcript, *, after: int = 0) -> None:
        self._transcript = transcript
        self._news: asyncio.Future[None] | None = None
        self.taken = after

    @property
    def unread(self) -> int:
        """How many entries wait for the reader."""
        return max(len(self._transcript.entries) - self.taken, 0)

    def reach_end(self) -> None:
        """See to it that the terminator is read, whatever the reader claims to have."""
        self.taken = min(self.taken, self._transcript.last_id)
        self.wake()

    def take(self) -> Entry:
        """Return the next entry; there has to be one."""
        entry = self._transcript.entries[self.taken]
        self.taken += 1
        return entry

    async def wait(self, timeout_s: float) -> None:
        """Wait until there is something to read, or for so long."""
        loop = asyncio.get_running_loop()
        self._news = loop.create_future()
        timer = loop.call_later(timeout_s, self._end_wait)
        try:
            await self._news
        finally:
            timer.cancel()

    def wake(self) -> None:
        """End the wait if there is something to read."""
        if self.unread:
            self._end_wait()

    def _end_wait(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
