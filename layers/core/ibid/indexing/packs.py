"""A pack's objects are measured before they are unpacked into memory.

Form: https://git-scm.com/docs/pack-format. Every object says how large it is, a delta also how
large its result is; both are checked against what the objects really hold.
"""

import zlib
from typing import BinaryIO, Final

from ibid.domain.errors import SourceRejected

MAX_OBJECT_BYTES = 100_000_000
_HEADER: Final = 12
_OFS_DELTA: Final = 6
_REF_DELTA: Final = 7
_SHA_BYTES: Final = 20
_PIECE: Final = 1 << 16
_DELTA_HEAD: Final = 32


class _Reader:
    """A file that can take back what was read too far."""

    def __init__(self, pack: BinaryIO) -> None:
        self._pack = pack
        self._ahead = b""

    def take(self, count: int) -> bytes:
        piece = self._ahead[:count]
        self._ahead = self._ahead[count:]
        if len(piece) < count:
            piece += self._pack.read(count - len(piece))
        if len(piece) < count:
            raise SourceRejected("The repository's pack ends early")
        return piece

    def take_some(self) -> bytes:
        piece, self._ahead = self._ahead or self._pack.read(_PIECE), b""
        if not piece:
            raise SourceRejected("The repository's pack ends early")
        return piece

    def put_back(self, piece: bytes) -> None:
        self._ahead = piece + self._ahead


def check_pack(
    pack: BinaryIO, *, max_total_bytes: int, max_object_bytes: int = MAX_OBJECT_BYTES
) -> None:
    """Read a pack through, without keeping anything.

    Raises:
        SourceRejected: One object, or all together, would unpack to more than is allowed; or it
            is no whole pack.
    """
    reader = _Reader(pack)
    header = reader.take(_HEADER)
    if header[:4] != b"PACK":
        raise SourceRejected("The repository's pack is no pack")
    total = 0
    for _ in range(int.from_bytes(header[8:], "big")):
        kind, size = _object_head(reader)
        if kind == _OFS_DELTA:
            while reader.take(1)[0] & 0x80:
                pass
        elif kind == _REF_DELTA:
            reader.take(_SHA_BYTES)
        if size > max_object_bytes:
            raise SourceRejected(
                f"The repository has a file of more than {max_object_bytes:,} bytes"
            )
        head = _pass_object(reader, size)
        if kind in {_OFS_DELTA, _REF_DELTA}:
            size = _delta_result(head)
        if size > max_object_bytes:
            raise SourceRejected(
                f"The repository has a file of more than {max_object_bytes:,} bytes"
            )
        total += size
        if total > max_total_bytes:
            raise SourceRejected(f"The repository unpacks to more than {max_total_bytes:,} bytes")


def _object_head(reader: _Reader) -> tuple[int, int]:
    byte = reader.take(1)[0]
    kind, size, shift = (byte >> 4) & 7, byte & 15, 4
    while byte & 0x80:
        byte = reader.take(1)[0]
        size |= (byte & 0x7F) << shift
        shift += 7
    return kind, size


def _pass_object(reader: _Reader, size: int) -> bytes:
    """Read an object to its end; return its first bytes."""
    inflate = zlib.decompressobj()
    seen, head = 0, b""
    try:
        while not inflate.eof:
            piece = inflate.unconsumed_tail or reader.take_some()
            out = inflate.decompress(piece, _PIECE)
            head = (head + out)[:_DELTA_HEAD] if len(head) < _DELTA_HEAD else head
            seen += len(out)
            if seen > size:
                raise SourceRejected("The repository's pack holds more than it says")
    except zlib.error as error:
        raise SourceRejected("The repository's pack is damaged") from error
    reader.put_back(inflate.unused_data)
    return head


def _delta_result(head: bytes) -> int:
    """Read the second of the two sizes that a delta begins with."""
    at, sizes = 0, []
    for _ in range(2):
        size = shift = 0
        while True:
            if at >= len(head):
                raise SourceRejected("The repository's pack is damaged")
            byte = head[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        sizes.append(size)
    return sizes[1]
