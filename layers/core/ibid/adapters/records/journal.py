"""A run's events as bytes: one pack for a batch, cut where a row can't hold it.

A pack is a version byte and compressed JSON: the first id, then the events in order, tokens that
follow each other as one list. Ids rise by one, so no other id is written.
"""

import itertools
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ibid.domain.events import (
    CitationsFound,
    Entry,
    Phase,
    RunEvent,
    StatusChanged,
    TokenDelta,
    TurnEvent,
)
from ibid.domain.passages import Citation

_VERSION = 1
_TOKENS, _STATUS, _CITATIONS = "t", "s", "c"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """What one row holds: a batch of entries, or a part of an entry that is too long for a row.

    Attributes:
        first_id: Of the entries, which have every id through `last_id`.
        part: From 0; parts of one batch are joined in this order.
        parts: How many there are, at least 1.
        body: At most as many bytes as `pack` was told.
    """

    first_id: int
    last_id: int
    part: int
    parts: int
    body: bytes


def pack(entries: Sequence[Entry], *, max_bytes: int) -> Sequence[Pack]:
    """Pack entries whose ids rise by one, in order, into as few rows as need be.

    Args:
        entries: None gives no pack; a terminator is refused, as its run keeps it.
        max_bytes: What one body may hold, at least 1.
    """
    if not entries:
        return []
    body = _to_bytes(entries)
    if len(body) > max_bytes and len(entries) > 1:
        half = len(entries) // 2
        return [
            *pack(entries[:half], max_bytes=max_bytes),
            *pack(entries[half:], max_bytes=max_bytes),
        ]
    bodies = [body[start : start + max_bytes] for start in range(0, len(body), max_bytes)]
    return [
        Pack(
            first_id=entries[0].id,
            last_id=entries[-1].id,
            part=part,
            parts=len(bodies),
            body=piece,
        )
        for part, piece in enumerate(bodies)
    ]


def unpack(packs: Iterable[Pack]) -> Iterator[Entry]:
    """Return the entries of packs that are in order, as they were packed.

    Raises:
        ValueError: A part is missing or damaged, or a newer version wrote it.
    """
    for first_id, group in itertools.groupby(packs, key=lambda one: one.first_id):
        parts = list(group)
        if [one.part for one in parts] != list(range(parts[0].parts)):
            raise ValueError(f"a part of the entries from id {first_id} is missing")
        entries = _from_bytes(b"".join(one.body for one in parts))
        if (entries[0].id, entries[-1].id) != (first_id, parts[0].last_id):
            raise ValueError(f"the entries from id {first_id} have other ids")
        yield from entries


def _to_bytes(entries: Sequence[Entry]) -> bytes:
    items: list[list[Any]] = []
    for expected, entry in enumerate(entries, entries[0].id):
        if entry.id != expected:
            raise ValueError(f"id {entry.id} stands where {expected} should")
        kind, value = _written(entry.event)
        if kind == _TOKENS and items and items[-1][0] == _TOKENS:
            items[-1][1].append(value)
        else:
            items.append([kind, [value] if kind == _TOKENS else value])
    text = json.dumps([entries[0].id, items], ensure_ascii=False, separators=(",", ":"))
    # a model may cut between the two halves of a pair, which are no text of their own
    return bytes([_VERSION]) + zlib.compress(text.encode("utf-8", "surrogatepass"))


def _written(event: RunEvent) -> tuple[str, Any]:
    match event:
        case TokenDelta():
            return _TOKENS, event.text
        case StatusChanged():
            return _STATUS, event.phase
        case CitationsFound():
            return _CITATIONS, [asdict(citation) for citation in event.citations]
        case _:
            raise ValueError("a terminator is kept with its run, not in the journal")


def _from_bytes(body: bytes) -> Sequence[Entry]:
    if body[:1] != bytes([_VERSION]):
        raise ValueError("a newer version wrote these entries")
    try:
        text = zlib.decompress(body[1:]).decode("utf-8", "surrogatepass")
    except zlib.error as error:
        raise ValueError("the entries are damaged") from error
    first_id, items = json.loads(text)
    events = itertools.chain.from_iterable(_read(item) for item in items)
    return [Entry(id=id_, event=event) for id_, event in enumerate(events, first_id)]


def _read(item: Sequence[Any]) -> Iterator[TurnEvent]:
    kind, value = item
    if kind == _TOKENS:
        yield from (TokenDelta(text=text) for text in value)
    elif kind == _STATUS:
        yield StatusChanged(phase=Phase(value))
    elif kind == _CITATIONS:
        yield CitationsFound(citations=tuple(Citation(**citation) for citation in value))
    else:
        raise ValueError(f"no event is written as {kind!r}")
