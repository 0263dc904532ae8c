"""From a file's text to chunks: runs of its own lines, each with what it defines."""

from collections.abc import Sequence
from dataclasses import dataclass

from ibid.domain.chunks_header import content_hash, header
from ibid.domain.passages import Chunk
from ibid.indexing.code import ParseFailed, code_spans
from ibid.indexing.grammars import GrammarMissing, grammar_name
from ibid.indexing.languages import language_of
from ibid.indexing.markdown import markdown_spans
from ibid.indexing.notebooks import NotANotebook, notebook_spans
from ibid.indexing.spans import WINDOW_LINES, Span, fit
from ibid.indexing.text import split_lines

__all__ = ["CHUNKER_VERSION", "Chunked", "chunk_file", "chunk_text", "language_of"]

CHUNKER_VERSION = "1"
"""Part of every generation's digest: raise it when the same text would give other chunks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunked:
    """A file's chunks.

    Attributes:
        chunks: By `chunk_index`, rising; empty if no line has more than white space.
        fallback: Why it was cut into plain windows though its language can be parsed
            (`parse_failed`, `grammar_missing`, `not_a_notebook`); None if it was not.
    """

    chunks: Sequence[Chunk]
    fallback: str | None = None


def chunk_text(path: str, text: str, *, commit_sha: str | None) -> list[Chunk]:
    """Cut one file's text; see `chunk_file`."""
    return list(chunk_file(path, text, commit_sha=commit_sha).chunks)


def chunk_file(path: str, text: str, *, commit_sha: str | None) -> Chunked:
    """Cut one file's text by its syntax, its headings or its cells, else into windows.

    Args:
        path: Relative, with `/`; its name or the first line tells the language.
        text: Decoded, with whatever line ends it has.
        commit_sha: What the chunks are marked with.
    """
    lines = split_lines(text)
    language = language_of(path, lines[0] if lines else "")
    spans, fallback = _spans(path, language, lines)
    chunks = []
    for index, span in enumerate(spans):
        content = "\n".join(lines[span.start : span.end])
        chunks.append(
            Chunk(
                file_path=path,
                start_line=span.start + 1,
                end_line=span.end,
                language=span.language or language,
                symbol=span.symbol,
                chunk_index=index,
                content=content,
                content_hash=content_hash(header(path, span.symbol), content),
                commit_sha=commit_sha,
            )
        )
    return Chunked(chunks=chunks, fallback=fallback)


def _spans(path: str, language: str, lines: Sequence[str]) -> tuple[list[Span], str | None]:
    fallback = None
    try:
        if language == "markdown":
            return fit(lines, markdown_spans(lines)), None
        if language == "jupyter":
            return fit(lines, notebook_spans(lines)), None
        if grammar := grammar_name(language, path):
            return fit(lines, code_spans(lines, grammar)), None
    except (ParseFailed, GrammarMissing, NotANotebook) as error:
        fallback = error.code.lower()
    return fit(lines, [Span(0, len(lines))], whole=WINDOW_LINES), fallback
