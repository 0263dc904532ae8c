"""Uploaded archives: `.zip`, `.tar`, `.tar.gz` and `.tgz`, unpacked without trusting them.

An archive with one entry that looks like an attack is refused whole, and the entry named: links,
devices, paths that leave the folder, two files in one place, encryption, bombs.
"""

import gzip
import io
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO, Self, cast

from ibid.domain.errors import SourceRejected
from ibid.indexing.extracted import MAX_ENTRIES, MAX_TOTAL_BYTES, TreeWriter

ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz")
MAX_HEADER_BYTES = 1 << 20
_ENCRYPTED = 0x1
_HOST_METADATA = "__MACOSX/"


def unpack(
    archive: Path,
    file_name: str,
    into: Path,
    *,
    max_total_bytes: int = MAX_TOTAL_BYTES,
    max_entries: int = MAX_ENTRIES,
) -> TreeWriter:
    """Unpack an archive into an empty folder.

    Args:
        archive: The file.
        file_name: As it was uploaded; its ending says what it is.
        into: Where to.
        max_total_bytes: Of all files once unpacked.
        max_entries: Of everything in it.

    Returns:
        What wrote it; its `top` is the folder to index.

    Raises:
        SourceRejected: It is none of the kinds, damaged, too large, or an attack.
    """
    lower = file_name.lower()
    if not lower.endswith(ENDINGS):
        raise SourceRejected(f"{file_name[:200]!a} is none of {', '.join(ENDINGS)}")
    writer = TreeWriter(
        into,
        what="archive",
        max_total_bytes=max_total_bytes,
        max_entries=max_entries,
        packed_bytes=archive.stat().st_size,
    )
    try:
        with archive.open("rb") as opened:
            if lower.endswith(".zip"):
                _unzip(opened, writer)
            elif lower.endswith(".tar"):
                _untar(opened, writer)
            else:
                with gzip.open(opened) as plain:
                    _untar(cast("BinaryIO", plain), writer)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise SourceRejected("The archive is damaged, or not what its name says") from error
    except (NotImplementedError, RuntimeError, ValueError) as error:
        raise SourceRejected("The archive is packed in a way that is not supported") from error
    return writer


def _unzip(opened: BinaryIO, writer: TreeWriter) -> None:
    with zipfile.ZipFile(opened) as archive:
        for entry in archive.infolist():
            writer.count_entry()
            writer.parts_of(entry.filename)
            mode = entry.external_attr >> 16
            if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR}:
                raise writer.rejected("a link or a special file", entry.filename)
            if entry.flag_bits & _ENCRYPTED:
                raise writer.rejected("an encrypted entry", entry.filename)
            if entry.is_dir() or entry.filename.startswith(_HOST_METADATA):
                continue
            with archive.open(entry) as content:
                counted = _Counted(cast("BinaryIO", content), writer)
                writer.write(entry.filename, cast("BinaryIO", counted))


def _untar(opened: BinaryIO, writer: TreeWriter) -> None:
    stream = cast("BinaryIO", _Counted(opened, writer))
    with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Entry, errorlevel=1) as archive:
        for entry in archive:
            writer.count_entry()
            writer.parts_of(entry.name)
            if entry.isdir():
                continue
            if not entry.isreg() or entry.issparse():
                raise writer.rejected("a link or a special file", entry.name)
            content = archive.extractfile(entry)
            if content is not None:
                writer.write(entry.name, cast("BinaryIO", content))


class _Entry(tarfile.TarInfo):
    """A header that is refused before what it announces is read into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Read one header block.

        Raises:
            SourceRejected: It announces a name or extended header of over 1 MB.
        """
        entry = super().frombuf(buf, encoding, errors)
        if not entry.isreg() and entry.size > MAX_HEADER_BYTES:
            raise SourceRejected("The archive has a header of more than 1 MB")
        return entry


class _Counted(io.RawIOBase):
    """Counts what is unpacked, be it files or a tar's headers and what fills its gaps."""

    def __init__(self, inner: BinaryIO, writer: TreeWriter) -> None:
        self._inner = inner
        self._writer = writer

    def read(self, size: int = -1) -> bytes:
        piece = self._inner.read(size)
        self._writer.count_bytes(len(piece))
        return piece
