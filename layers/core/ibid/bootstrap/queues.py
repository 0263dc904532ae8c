"""Opens the queue that the settings name."""

from contextlib import AsyncExitStack

from ibid.ports.queue import RunQueue
from ibid.settings import Settings


def open_run_queue(settings: Settings, stack: AsyncExitStack) -> RunQueue | None:
    """Return where background runs wait, closed with the stack; None if they wait nowhere."""
    if settings.queue_runs is None:
        return None
    from ibid.adapters.sqs import SqsRunQueue

    queue = SqsRunQueue(settings.queue_runs)
    stack.push_async_callback(queue.close)
    return queue
