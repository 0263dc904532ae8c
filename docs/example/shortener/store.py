"""Links by row number, with their expiry."""

import time
from dataclasses import dataclass

LIFETIME_S = 30 * 24 * 3600


@dataclass
class Link:
    """One shortened address."""

    url: str
    expires_at: float


class LinkStore:
    """Keeps links in memory; a row number is never used twice."""

    def __init__(self) -> None:
        self._links: list[Link] = []

    def add(self, url: str) -> int:
        """Keep an address and return its row number."""
        self._links.append(Link(url, time.time() + LIFETIME_S))
        return len(self._links) - 1

    def visit(self, number: int) -> str | None:
        """Return the address and renew the link, or None if it has expired."""
        link = self._links[number]
        if link.expires_at < time.time():
            return None
        link.expires_at = time.time() + LIFETIME_S
        return link.url
