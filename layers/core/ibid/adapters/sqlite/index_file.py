"""One file a generation: an SQLite database, then arrays that are read where they lie.

SQLite takes its size from its own header and ignores what follows, so the arrays need no second
file: a generation is renamed, digested, uploaded and deleted as one. The form, little-endian:

    database | arrays, each aligned | directory (JSON) | footer

The directory gives each array's type, shape and offset; the footer gives the directory's place and
the CRC-32 of all before itself, so a torn or damaged file is known before anything is read from it.
"""

import json
import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_FOOTER: Final = struct.Struct("<QII8s")  # directory's offset, its length, CRC-32, magic
_MAGIC: Final = b"ibid-gen"
_SQLITE_MAGIC: Final = b"SQLite format 3\x00"
_SQLITE_HEADER_BYTES: Final = 100
_ALIGNMENT: Final = 4096
_PIECE_BYTES: Final = 1 << 20


class FaultyFile(Exception):
    """A generation's file is not whole."""


@dataclass(frozen=True, slots=True)
class ArraySource:
    """An array on its way into the file.

    Attributes:
        shape: What `pieces` give together.
        pieces: Read once, in order.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    pieces: Iterable[Array]


def schema_version(path: Path) -> int:
    """Read SQLite's `user_version` from the header, trusting nothing else of the file.

    Raises:
        FaultyFile: It does not begin as a database does.
    """
    with path.open("rb") as file:
        return int.from_bytes(_sqlite_header(file)[60:64], "big")


def database_bytes(path: Path) -> int:
    """Tell where the database ends and the arrays begin.

    Raises:
        FaultyFile: It does not begin as a database does.
    """
    with path.open("rb") as file:
        header = _sqlite_header(file)
    page_bytes = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    return (65536 if page_bytes == 1 else page_bytes) * pages


def _sqlite_header(file: BinaryIO) -> bytes:
    header = file.read(_SQLITE_HEADER_BYTES)
    if len(header) < _SQLITE_HEADER_BYTES or not header.startswith(_SQLITE_MAGIC):
        raise FaultyFile("it does not begin as a database")
    return header


def append_arrays(path: Path, arrays: Iterable[ArraySource]) -> None:
    """Add the arrays to a closed database, and make the file durable."""
    directory: dict[str, dict[str, object]] = {}
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        for array in arrays:
            file.write(bytes(-file.tell() % _ALIGNMENT))
            directory[array.name] = {
                "dtype": array.dtype,
                "shape": array.shape,
                "offset": file.tell(),
            }
            for piece in array.pieces:
                file.write(np.ascontiguousarray(piece, dtype=array.dtype).data)
        listing = json.dumps(directory).encode()
        at = file.tell()
        file.write(listing)
        file.flush()
        crc = _crc(file, at + len(listing))
        file.seek(0, os.SEEK_END)
        file.write(_FOOTER.pack(at, len(listing), crc, _MAGIC))
        file.flush()
        os.fsync(file.fileno())


def map_arrays(path: Path) -> Mapping[str, Array]:
    """Check the whole file, then map its arrays: read-only, shared by all processes, uncopied.

    The mapping outlives the file's deletion, and ends with the last array.

    Raises:
        FaultyFile: A byte differs from what was written.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size < _FOOTER.size:
            raise FaultyFile("it is cut short")
        file.seek(size - _FOOTER.size)
        at, length, crc, magic = _FOOTER.unpack(file.read(_FOOTER.size))
        if magic != _MAGIC or at + length != size - _FOOTER.size:
            raise FaultyFile("it is cut short")
        if _crc(file, at + length) != crc:
            raise FaultyFile("its checksum differs")
        mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    return {
        name: np.ndarray(
            tuple(entry["shape"]), np.dtype(entry["dtype"]), mapped, offset=entry["offset"]
        )
        for name, entry in json.loads(mapped[at : at + length]).items()
    }


def copied(arrays: Mapping[str, Array]) -> Iterator[ArraySource]:
    """Give mapped arrays as sources, to put them behind another database."""
    for name, array in arrays.items():
        yield ArraySource(name, array.dtype.str, array.shape, [array])


def make_durable(folder: Path) -> None:
    """Sync a folder, so that a rename or a new name in it survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _crc(file: BinaryIO, end: int) -> int:
    file.seek(0)
    crc = 0
    while end and (piece := file.read(min(end, _PIECE_BYTES))):
        crc = zlib.crc32(piece, crc)
        end -= len(piece)
    return crc
