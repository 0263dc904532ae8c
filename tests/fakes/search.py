"""A passage search that finds what a test tells it to, and remembers what it was asked."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ibid.domain.passages import Passage

Found = Sequence[Passage] | BaseException


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One call."""

    query: str
    tenant: str
    project_id: str
    generation: int
    path_prefix: str | None
    limit: int
    max_characters: int
    timeout_s: float


class FakePassageSearch:
    """Gives one result a call, in order of the calls; the last one stays.

    Args:
        found: Passages, best first, or what is raised instead.
        before: Awaited at the start of every search.
    """

    def __init__(
        self, *found: Found, before: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        self.searches: list[Search] = []
        self._found: Sequence[Found] = found or ((),)
        self._before = before

    async def search(
        self,
        query: str,
        *,
        tenant: str,
        project_id: str,
        generation: int,
        path_prefix: str | None = None,
        limit: int = 12,
        max_characters: int = 24_000,
        timeout_s: float,
    ) -> Sequence[Passage]:
        found = self._found[min(len(self.searches), len(self._found) - 1)]
        self.searches.append(
            Search(
                query=query,
                tenant=tenant,
                project_id=project_id,
                generation=generation,
                path_prefix=path_prefix,
                limit=limit,
                max_characters=max_characters,
                timeout_s=timeout_s,
            )
        )
        if self._before is not None:
            await self._before()
        if isinstance(found, BaseException):
            raise found
        return found
