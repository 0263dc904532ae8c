"""Lists by page: the query that asks for one, and the body that answers."""

from collections.abc import Callable
from typing import Annotated, Generic, Self, TypeVar

from fastapi import Query

from ibid.domain.pages import Page
from ibid.web.wire import Wire

Item = TypeVar("Item")
Body = TypeVar("Body", bound=Wire)

Cursor = Annotated[
    str | None,
    Query(max_length=1_000, description="`nextCursor` of the page before; none for the first."),
]
Limit = Annotated[int, Query(ge=1, le=200, description="Most items to return.")]
DEFAULT_LIMIT = 50


class PageBody(Wire, Generic[Body]):
    """One page; `nextCursor` is null where the list ends."""

    items: tuple[Body, ...]
    next_cursor: str | None

    @classmethod
    def of(cls, page: Page[Item], translate: Callable[[Item], Body]) -> Self:
        """Translate one page, item by item."""
        return cls(
            items=tuple(translate(item) for item in page.items), next_cursor=page.next_cursor
        )
