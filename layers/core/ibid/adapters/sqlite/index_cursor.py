"""Cursors of a list: opaque, and good for the list that gave them only."""

import base64
import binascii
import hashlib
import struct
from typing import Final

from ibid.adapters.sqlite.index_place import GenerationPlace
from ibid.domain.errors import ValidationFailed

_FORM: Final = struct.Struct(">Q12s")


def write_cursor(position: int, place: GenerationPlace, path_prefix: str) -> str:
    """Name a position above 0 in the list of a generation's chunks under a prefix."""
    return base64.urlsafe_b64encode(_FORM.pack(position, _list(place, path_prefix))).decode()


def read_cursor(cursor: str, place: GenerationPlace, path_prefix: str) -> int:
    """Find the position that `write_cursor` named.

    Raises:
        ValidationFailed: It is another list's cursor, or none.
    """
    try:
        position, named = _FORM.unpack(base64.b64decode(cursor.encode(), b"-_", validate=True))
    except (ValueError, struct.error, binascii.Error) as error:
        raise bad_cursor() from error
    if named != _list(place, path_prefix):
        raise bad_cursor()
    return int(position)


def bad_cursor() -> ValidationFailed:
    """Say that a cursor is not one of the list's."""
    message = "not a cursor of this list"
    return ValidationFailed(f"cursor: {message}", {"cursor": message})


def _list(place: GenerationPlace, path_prefix: str) -> bytes:
    name = (place.project.tenant, place.project.project_id, place.number, path_prefix)
    return hashlib.sha256(repr(name).encode("utf-8", "surrogatepass")).digest()[:12]
