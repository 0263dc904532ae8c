"""What makes two requests the same one, and how the answer to it is kept from other readers."""

import hashlib
import json
import re
from collections.abc import Sequence

from ibid.domain.errors import ValidationFailed

KEY_HEADER = "Idempotency-Key"
KEY_PATTERN = "^[!-~]{1,255}$"

_KEY = re.compile(KEY_PATTERN)


def checked_key(given: Sequence[str]) -> str:
    """Return the key that the headers name.

    Raises:
        ValidationFailed: There are several, or it is not 1 to 255 visible ASCII characters.
    """
    if len(given) != 1 or not _KEY.fullmatch(given[0]):
        raise ValidationFailed(
            "The idempotency key is malformed.",
            {KEY_HEADER: "is one header of 1 to 255 visible ASCII characters"},
        )
    return given[0]


class Likeness:
    """What is asked under a key; JSON is the same whatever its spaces and its order of names.

    How the answer is to be rendered is no part of it.

    Args:
        key: So that equal bodies of two callers can't be told by their records.
        query: The URL's, raw.
        body: The request's.

    Attributes:
        fingerprint: Equal for equal requests; tells nothing of them.
    """

    def __init__(self, *, key: str, query: bytes, body: bytes) -> None:
        digest = hashlib.sha256()
        for part in (key.encode(), query, _plain(body)):
            digest.update(len(part).to_bytes(8, "big") + part)
        self._digest = digest.digest()
        self.fingerprint = hashlib.sha256(b"fingerprint" + self._digest).hexdigest()

    def seal(self, answer: bytes, *, nonce: str) -> bytes:
        """Hide an answer from whoever has not the request, or show it again: its own inverse.

        So what an answer repeats of its request is not left in a record that outlives the thing
        that was made: only who sends the same request again can read it.

        Args:
            answer: Any bytes.
            nonce: Of this one answer.
        """
        pad = hashlib.shake_256(b"seal" + self._digest + nonce.encode()).digest(len(answer))
        return bytes(one ^ other for one, other in zip(answer, pad, strict=True))


def _plain(body: bytes) -> bytes:
    try:
        return json.dumps(json.loads(body), sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return body
