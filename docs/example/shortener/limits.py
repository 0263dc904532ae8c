"""How many links one client may make."""

from collections import defaultdict, deque

LINKS_PER_HOUR = 20
HOUR_S = 3600.0


class RateLimit:
    """Counts what each client made within the last hour."""

    def __init__(self) -> None:
        self._made: defaultdict[str, deque[float]] = defaultdict(deque)

    def allow(self, client: str, now: float) -> bool:
        """Count one more link of a client, unless it has made too many within the hour."""
        made = self._made[client]
        while made and made[0] <= now - HOUR_S:
            made.popleft()
        if len(made) >= LINKS_PER_HOUR:
            return False
        made.append(now)
        return True
