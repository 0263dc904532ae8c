"""Opaque cursors: where a list goes on, bound to that list."""

import base64
import hashlib
import json

from ibid.domain.errors import ValidationFailed

_MAX_CHARACTERS = 2_000
_DIGEST_CHARACTERS = 16
_MAX_INT = 2**63 - 1  # what a column holds


def encode(*position: int | str, scope: tuple[str, ...]) -> str:
    """Make the cursor of a position in the list that `scope` names.

    Args:
        position: The last item's sort key.
        scope: The list's name, and whose it is; only a digest of it is in the cursor.
    """
    text = json.dumps([_digest(scope), *position], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(cursor: str, *kinds: type[int] | type[str], scope: tuple[str, ...]) -> list[int | str]:
    """Return the position that `encode` was given.

    Args:
        cursor: From whoever asks: anything.
        kinds: Of the position's parts, in order.
        scope: As for `encode`.

    Raises:
        ValidationFailed: It is not a cursor of this list.
    """
    try:
        position = _parts(cursor, scope)
    except (ValueError, TypeError, RecursionError):
        position = None
    if position is None or [type(part) for part in position] != list(kinds):
        reason = "not a cursor of this list"
        raise ValidationFailed("the cursor is " + reason, {"cursor": reason})
    return position


def _parts(cursor: str, scope: tuple[str, ...]) -> list[int | str] | None:
    if len(cursor) > _MAX_CHARACTERS:
        return None
    padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
    digest, *position = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    for part in position:
        if isinstance(part, str):
            part.encode()  # half a surrogate pair can't be looked up
        elif abs(part) > _MAX_INT:
            return None
    return position if digest == _digest(scope) else None


def _digest(scope: tuple[str, ...]) -> str:
    text = json.dumps(scope)  # parts are told apart whatever they hold
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]
