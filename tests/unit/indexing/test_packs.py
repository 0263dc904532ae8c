import io
import zlib

import pytest

from ibid.domain.errors import SourceRejected
from ibid.indexing.packs import check_pack

BLOB = 3
OFS_DELTA = 6
REF_DELTA = 7


def varint(size: int) -> bytes:
    out = b""
    while size > 0x7F:
        out, size = out + bytes([size & 0x7F | 0x80]), size >> 7
    return out + bytes([size])


def packed(kind: int, data: bytes, *, says: int | None = None, base: bytes = b"") -> bytes:
    size = len(data) if says is None else says
    first, rest = kind << 4 | size & 15, size >> 4
    head = bytes([first | 0x80]) + varint(rest) if rest else bytes([first])
    return head + base + zlib.compress(data)


def pack(*objects: bytes) -> io.BytesIO:
    head = b"PACK" + (2).to_bytes(4, "big") + len(objects).to_bytes(4, "big")
    return io.BytesIO(head + b"".join(objects) + bytes(20))


def test_an_honest_pack_passes() -> None:
    delta = varint(5) + varint(70) + b"\x90\x05"

    check_pack(
        pack(
            packed(BLOB, b"hello"),
            packed(BLOB, b"x" * 300_000),
            packed(OFS_DELTA, delta, base=b"\x81\x05"),
            packed(REF_DELTA, delta, base=bytes(20)),
        ),
        max_total_bytes=1_000_000,
    )


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (pack(packed(BLOB, b"x" * 2_000)), "a file of more than 1,000 bytes"),
        (pack(packed(BLOB, b"x" * 900, says=10)), "more than it says"),
        (
            pack(packed(REF_DELTA, varint(1) + varint(2_000), base=bytes(20))),
            "a file of more than 1,000 bytes",
        ),
        (pack(*(packed(BLOB, b"x" * 900) for _ in range(4))), "unpacks to more than 3,000 bytes"),
        (pack(packed(OFS_DELTA, b"\x80", base=b"\x05")), "damaged"),
        (io.BytesIO(b"PACK"), "ends early"),
        (io.BytesIO(b"KCAP" + bytes(20)), "no pack"),
        (io.BytesIO(pack(packed(BLOB, b"x" * 900)).getvalue()[:20]), "ends early"),
        (io.BytesIO(pack(bytes([BLOB << 4 | 3]) + b"noise").getvalue()), "damaged"),
    ],
)
def test_a_dishonest_or_damaged_pack_is_refused(body: io.BytesIO, why: str) -> None:
    with pytest.raises(SourceRejected, match=why):
        check_pack(body, max_total_bytes=3_000, max_object_bytes=1_000)
