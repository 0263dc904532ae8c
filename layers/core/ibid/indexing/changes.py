"""What became of each file since the generation before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ibid.domain.errors import GenerationDamaged, GenerationGone
from ibid.ports.index import PassageIndex

_PAGE = 1_000

FileMark = tuple[tuple[int, str], ...]
"""Start line and content hash of each of a file's chunks: equal means the same chunks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Files of two generations, counted."""

    new: int
    modified: int
    deleted: int
    unchanged: int


def compare(before: Mapping[str, FileMark], now: Mapping[str, FileMark]) -> Changes:
    """Count what became of the files."""
    kept = before.keys() & now.keys()
    unchanged = sum(before[path] == now[path] for path in kept)
    return Changes(
        new=len(now.keys() - before.keys()),
        modified=len(kept) - unchanged,
        deleted=len(before.keys() - now.keys()),
        unchanged=unchanged,
    )


async def marks_of_generation(
    index: PassageIndex, *, tenant: str, project_id: str, generation: int | None
) -> Mapping[str, FileMark]:
    """Read a generation's files; none if there is no such generation, or it is gone or damaged."""
    marks: dict[str, list[tuple[int, str]]] = {}
    cursor: str | None = None
    while generation is not None:
        try:
            page = await index.scroll(
                tenant=tenant,
                project_id=project_id,
                generation=generation,
                path_prefix="",
                cursor=cursor,
                limit=_PAGE,
            )
        except (GenerationGone, GenerationDamaged):
            return {}
        for chunk in page.items:
            marks.setdefault(chunk.file_path, []).append((chunk.start_line, chunk.content_hash))
        cursor = page.next_cursor
        if cursor is None:
            break
    return {path: tuple(of_file) for path, of_file in marks.items()}


def hashes_of(marks: Mapping[str, FileMark]) -> Sequence[str]:
    """List the content hashes of all chunks, by file."""
    return [content_hash for mark in marks.values() for _, content_hash in mark]
