"""Where large things are kept by key."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol


class ObjectStore(Protocol):
    """Objects by key: 1 to 900 UTF-8 bytes, `/`-parted segments, none empty, `.` or `..`.

    A put is seen whole or not at all. Every method may raise ObjectStoreUnavailable, and
    ValueError for a key outside the form.
    """

    async def put(self, key: str, chunks: AsyncIterator[bytes], *, max_bytes: int) -> int:
        """Keep an object, replacing what was there, and return its size.

        Raises:
            ValidationFailed: It is larger than `max_bytes`; nothing is kept.
        """

    async def put_new(self, key: str, chunks: AsyncIterator[bytes], *, max_bytes: int) -> int:
        """Keep an object where there is none, and return its size; of several at once, one does.

        Raises:
            ObjectExists: There is one by the time that this one is whole; it stays as it is.
            ValidationFailed: It is larger than `max_bytes`; nothing is kept.
        """

    def get(self, key: str) -> AsyncIterator[bytes]:
        """Read an object in pieces of at most 1 MiB.

        Raises:
            ObjectMissing: On the first piece: there is nothing under the key.
        """

    async def delete(self, key: str) -> None:
        """Remove an object; repeatable."""

    async def delete_prefix(self, prefix: str) -> None:
        """Remove every object whose key starts with `prefix`, which ends in `/`; repeatable."""

    async def keys(self, prefix: str) -> Sequence[str]:
        """List the keys that start with `prefix`, in code point order."""
