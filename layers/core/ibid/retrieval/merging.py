"""Chunks of one file that follow each other become one passage, no line twice."""

from collections import defaultdict
from collections.abc import Sequence

from ibid.domain.passages import Chunk, Passage
from ibid.retrieval.ranking import Ranked


def merge(ranked: Sequence[Ranked], *, lexical: bool) -> list[Passage]:
    """Join neighbours, by chunk index, whose lines touch or overlap.

    Args:
        ranked: Each chunk at most once, in any order.
        lexical: Nothing was embedded, so the passages carry no cosine.

    Returns:
        Passages, each exactly its lines of the file, with its best chunk's score; best first, ties
        by path, then line.
    """
    by_file: defaultdict[str, list[Ranked]] = defaultdict(list)
    for each in ranked:
        by_file[each.candidate.chunk.file_path].append(each)
    passages = []
    for of_file in by_file.values():
        of_file.sort(key=lambda each: each.candidate.chunk.chunk_index)
        run = of_file[:1]
        for each in of_file[1:]:
            if _follows(each.candidate.chunk, run):
                run.append(each)
            else:
                passages.append(_passage(run, lexical=lexical))
                run = [each]
        passages.append(_passage(run, lexical=lexical))
    passages.sort(key=lambda passage: (-passage.score, passage.file_path, passage.start_line))
    return passages


def _follows(chunk: Chunk, run: Sequence[Ranked]) -> bool:
    last = run[-1].candidate.chunk
    return (
        chunk.chunk_index == last.chunk_index + 1
        and chunk.start_line >= last.start_line
        and chunk.start_line <= max(each.candidate.chunk.end_line for each in run) + 1
        and _has_its_lines(chunk)
        and _has_its_lines(last)
    )


def _has_its_lines(chunk: Chunk) -> bool:
    """Tell whether the lines can be cut by number: an index must not be trusted to the letter."""
    return chunk.content.count("\n") == chunk.end_line - chunk.start_line


def _passage(run: Sequence[Ranked], *, lexical: bool) -> Passage:
    first = run[0].candidate.chunk
    lines: list[str] = []
    symbols: dict[str, None] = {}
    for each in run:
        chunk = each.candidate.chunk
        already = first.start_line + len(lines) - chunk.start_line if lines else 0
        lines += chunk.content.split("\n")[already:]
        symbols |= dict.fromkeys(chunk.symbol.split())
    return Passage(
        file_path=first.file_path,
        start_line=first.start_line,
        end_line=max(each.candidate.chunk.end_line for each in run),
        language=first.language,
        symbol=" ".join(symbols),
        content="\n".join(lines),
        commit_sha=first.commit_sha,
        score=max(each.score for each in run),
        cosine=None if lexical else max(each.candidate.cosine for each in run),
    )
