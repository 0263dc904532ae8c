"""The part of a checkpoint saver that needs no graph: its threads can be deleted."""

from typing import Protocol


class CheckpointThreads(Protocol):
    """Checkpoint threads, one a turn; both savers are some."""

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove a thread with its checkpoints, writes and objects; repeatable.

        Raises:
            StoreUnavailable: The store gave no answer.
        """
