"""Frames of AWS's binary event stream, as Bedrock sends them.

A frame is its total length, its headers' length, the CRC-32 of those eight bytes, the headers, the
payload, and the CRC-32 of all before. A header is its name's length and name, its type (7: text),
its value's length and value.
"""

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any


def event_frame(kind: str, body: Mapping[str, Any] | bytes) -> bytes:
    """An ordinary event."""
    return _frame(_headers("event", {":event-type": kind}), body)


def exception_frame(kind: str, body: Mapping[str, Any]) -> bytes:
    """An exception in mid-stream."""
    return _frame(_headers("exception", {":exception-type": kind}), body)


def _headers(message_type: str, more: Mapping[str, str]) -> bytes:
    headers = {":message-type": message_type, ":content-type": "application/json"} | dict(more)
    return b"".join(
        struct.pack("!B", len(name))
        + name.encode()
        + struct.pack("!BH", 7, len(value))
        + value.encode()
        for name, value in headers.items()
    )


def _frame(headers: bytes, body: Mapping[str, Any] | bytes) -> bytes:
    payload = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    start = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + payload
    return start + struct.pack("!I", zlib.crc32(start))
