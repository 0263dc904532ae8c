"""What a process knows of the runs that it writes, so that it need not read them back.

Only a spared read: who knows nothing of a run reads it, and every write is conditional all the
same.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass

from ibid.domain.conversations import Run

_REMEMBERED = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A live run, as its owner's last write left it.

    Attributes:
        beat: The run's counter.
        slot: The place of the journal that was written last.
        last_id: The last event that is kept.
        is_cancelled: Somebody asked to stop it.
    """

    owner: str
    beat: int = 0
    slot: int = 0
    last_id: int = 0
    is_cancelled: bool = False


class Memory:
    """The runs that were written last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], Known] = OrderedDict()

    def recall(self, run: Run, beat: int) -> Known | None:
        """Return what is known of a run; None if it has another owner or counter, or is unknown."""
        with self._lock:
            known = self._known.get((run.tenant, run.id))
        if known is None or (known.owner, known.beat) != (run.lease_owner, beat):
            return None
        return known

    def keep(self, run: Run, known: Known) -> None:
        """Remember a run."""
        with self._lock:
            self._known[run.tenant, run.id] = known
            self._known.move_to_end((run.tenant, run.id))
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)

    def forget(self, run: Run) -> None:
        """Know nothing of a run any more."""
        with self._lock:
            self._known.pop((run.tenant, run.id), None)
