"""The multipart form of an upload, read as it comes: the archive is never held whole."""

from collections.abc import AsyncIterator, Callable

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from ibid.domain.errors import ValidationFailed

MAX_FIELDS = 20
MAX_FIELD_BYTES = 4_096


async def archive_of(
    body: AsyncIterator[bytes],
    *,
    content_type: str,
    size: int,
    admit: Callable[[dict[str, str]], None],
) -> AsyncIterator[bytes]:
    """Yield the pieces of the form's one file.

    Args:
        body: The request's, piece by piece.
        content_type: The request's header, which holds the boundary.
        size: Bytes that the file must have.
        admit: Called with the fields that stand before the file; raises to refuse them.

    Raises:
        ValidationFailed: It is no such form, or the file has another size.
    """
    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise refused("body", "is no multipart form")
    form = _Form(admit)
    received = 0
    try:
        parser = form.parser(options[b"boundary"])
        async for piece in body:
            parser.write(piece)
            for content in form.take():
                received += len(content)
                yield content
        parser.finalize()
    except FormParserError:
        raise refused("body", "is no multipart form") from None
    if not form.has_ended:
        raise refused("body", "is not a whole multipart form")
    if not form.has_file:
        raise refused("file", "is missing")
    if received != size:
        raise refused("file", "has another size than was announced")


def refused(field: str, why: str) -> ValidationFailed:
    """Return the refusal of an upload, by what is wrong with which field."""
    return ValidationFailed("The upload can't be taken.", {field: why})


class _Form:
    """What the parser has met so far."""

    def __init__(self, admit: Callable[[dict[str, str]], None]) -> None:
        self.has_file = False
        self.has_ended = False
        self._admit = admit
        self._fields: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self._header_name = b""
        self._header_value = b""
        self._disposition = b""
        self._field: str | None = None
        self._value = b""

    def parser(self, boundary: bytes) -> MultipartParser:
        """Make the parser that tells this form what it meets."""
        return MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin_part,
                "on_header_field": self._add_header_name,
                "on_header_value": self._add_header_value,
                "on_header_end": self._end_header,
                "on_headers_finished": self._end_headers,
                "on_part_data": self._add_data,
                "on_part_end": self._end_part,
                "on_end": self._end,
            },
        )

    def take(self) -> list[bytes]:
        """Return the file's bytes since the last call."""
        pieces, self._pieces = self._pieces, []
        return pieces

    def _begin_part(self) -> None:
        self._disposition, self._value = b"", b""

    def _add_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = self._header_value
        self._header_name, self._header_value = b"", b""

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._disposition)
        name = options.get(b"name", b"").decode("utf-8", "replace")
        if b"filename" not in options and name != "file":
            if len(self._fields) == MAX_FIELDS:
                raise refused("body", "has too many fields")
            self._field = name
            return
        if self.has_file:
            raise refused("file", "must be one")
        self._admit(self._fields)
        self.has_file, self._field = True, None

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._field is None:
            self._pieces.append(data[start:end])
            return
        self._value += data[start:end]
        if len(self._value) > MAX_FIELD_BYTES:
            raise refused("body", "has a field that is too long")

    def _end_part(self) -> None:
        if self._field is not None:
            self._fields[self._field] = self._value.decode("utf-8", "replace")

    def _end(self) -> None:
        self.has_ended = True
