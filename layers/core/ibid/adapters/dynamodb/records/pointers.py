"""Lists, newest first: small items in the list's order that lead to the things themselves.

A pointer is written with its thing, in one transaction; one that leads nowhere is passed over.
"""

from collections.abc import Callable
from itertools import islice
from typing import TypeVar

from ibid.adapters.dynamodb.records import keys
from ibid.adapters.dynamodb.records.keys import Key
from ibid.adapters.dynamodb.records.table import Table
from ibid.adapters.dynamodb.records.wire import Item
from ibid.adapters.records import cursors
from ibid.domain.pages import Page

T = TypeVar("T")

MOMENT, ID = "moment", "id"


def page_of(
    table: Table,
    partition: str,
    *,
    prefix: str,
    key_of: Callable[[str], Key],
    read: Callable[[str, Item], T | None],
    scope: tuple[str, ...],
    cursor: str | None,
    limit: int,
) -> Page[T]:
    """Return a page of the things that the pointers of a partition lead to.

    Args:
        table: Where.
        partition: Of the pointers.
        prefix: Of their range keys.
        key_of: The key of a thing by its id.
        read: A thing by its id and item; None passes it over.
        scope: Of the cursors.
        cursor: From an earlier page, or None for the first.
        limit: The most things.

    Raises:
        ValidationFailed: The cursor is not one of this list's.
    """
    below = None
    if cursor is not None:
        when, last_id = cursors.decode(cursor, int, str, scope=scope)
        below = keys.dated(prefix, int(when), str(last_id))
    pointers = table.query(partition, prefix=prefix, below=below, newest_first=True, page=limit + 1)
    things: list[T] = []
    position: str | None = None
    while len(things) <= limit:
        some = list(islice(pointers, limit + 1 - len(things)))
        if not some:
            return Page(items=things, next_cursor=None)
        found = table.get_many([key_of(pointer[ID]) for pointer in some])
        for pointer in some:
            item = found.get(key_of(pointer[ID]))
            thing = None if item is None else read(pointer[ID], item)
            if thing is None:
                continue
            things.append(thing)
            if len(things) == limit:
                position = cursors.encode(pointer[MOMENT], pointer[ID], scope=scope)
    return Page(items=things[:limit], next_cursor=position)
