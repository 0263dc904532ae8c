"""Objects in memory."""

from collections.abc import AsyncIterator, Sequence

from ibid.domain.errors import ObjectExists, ObjectMissing, ValidationFailed


class FakeObjects:
    """Implements ObjectStore."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    async def put(self, key: str, chunks: AsyncIterator[bytes], *, max_bytes: int) -> int:
        self._objects[key] = body = await _whole(key, chunks, max_bytes)
        return len(body)

    async def put_new(self, key: str, chunks: AsyncIterator[bytes], *, max_bytes: int) -> int:
        body = await _whole(key, chunks, max_bytes)
        if key in self._objects:
            raise ObjectExists("there is an object under this key")
        self._objects[key] = body
        return len(body)

    async def get(self, key: str) -> AsyncIterator[bytes]:
        _check(key)
        if key not in self._objects:
            raise ObjectMissing(f"no object {key!r}")
        body = self._objects[key]
        for start in range(0, len(body), 1 << 20):
            yield body[start : start + (1 << 20)]

    async def delete(self, key: str) -> None:
        _check(key)
        self._objects.pop(key, None)

    async def delete_prefix(self, prefix: str) -> None:
        if not prefix.endswith("/"):
            raise ValueError("a prefix to delete ends in '/'")
        _check(prefix[:-1])
        for key in await self.keys(prefix):
            del self._objects[key]

    async def keys(self, prefix: str) -> Sequence[str]:
        if parent := prefix.rpartition("/")[0]:
            _check(parent)
        return sorted(key for key in self._objects if key.startswith(prefix))


async def _whole(key: str, chunks: AsyncIterator[bytes], max_bytes: int) -> bytes:
    _check(key)
    body = b""
    async for chunk in chunks:
        body += chunk
        if len(body) > max_bytes:
            raise ValidationFailed(f"the object is larger than {max_bytes} bytes")
    return body


def _check(key: str) -> None:
    if not 1 <= len(key.encode()) <= 900 or {"", ".", ".."} & set(key.split("/")):
        raise ValueError("a key outside the form")
