"""Chunks as the index keeps them, passages as a search returns them, citations as shown."""

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Vector = array[float]  # typecode "f": float32, L2-normalised, as wide as the embedder says
else:
    Vector = array  # can't be subscripted at run time before Python 3.12


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A run of whole lines of one file.

    Attributes:
        file_path: Relative to the source's root, with `/`.
        start_line: First line, from 1.
        end_line: Last line, at least `start_line`.
        language: Lower-case name such as `python`, `markdown`, `text`.
        symbol: Dotted name of what the lines define, several parted by spaces; empty if nothing.
        chunk_index: Position within the file, from 0.
        content: Exactly the lines, joined by line feeds, without the last line's end.
        content_hash: SHA-256 in hex over the header and the content: equal means equal vectors.
        commit_sha: The indexed commit, or None where the source has none.
    """

    file_path: str
    start_line: int
    end_line: int
    language: str
    symbol: str
    chunk_index: int
    content: str
    content_hash: str
    commit_sha: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A retrieved span: one chunk, or neighbours merged with their overlap cut by line.

    Attributes:
        score: 0 to 1, fused and scaled over one search's candidates; compare within it only.
        cosine: The best chunk's cosine with the query, or None where nothing was embedded.
        truncated: The content was cut to the character budget and ends with a marker line.
    """

    file_path: str
    start_line: int
    end_line: int
    language: str
    symbol: str
    content: str
    commit_sha: str | None
    score: float
    cosine: float | None
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A passage as it is shown: no excerpt, a permalink where the host is known.

    Attributes:
        index: From 1, best first; the `n` of a marker `[n]`.
        cited: None before the answer is whole, then whether it holds a valid marker `[index]`.
    """

    index: int
    file_path: str
    start_line: int
    end_line: int
    language: str
    symbol: str | None
    commit_sha: str | None
    score: float
    url: str | None
    cited: bool | None
