"""One page of a longer list."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """Some items in the list's order, and where to go on.

    Attributes:
        items: At most as many as were asked for; may be empty.
        next_cursor: Opaque; None means that the list ends here.
    """

    items: Sequence[T]
    next_cursor: str | None
