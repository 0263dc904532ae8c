"""What of a search fits the prompt."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ibid.domain.passages import Passage
from ibid.retrieval.merging import merge
from ibid.retrieval.ranking import Ranked

CUT_MARKER: Final = "[cut: the passage goes on]"
"""The last line of a passage that was cut."""


def merge_within(ranked: Sequence[Ranked], *, max_characters: int, lexical: bool) -> list[Passage]:
    """Merge neighbours, leaving out the worst chunks until all fit.

    Chunks are dropped rather than merged passages, so that a good chunk is not lost for the length
    of its neighbours; a lone chunk is cut after its last line that fits, and says so.

    Args:
        ranked: Best first.
        max_characters: Of all contents together, at least 1.
        lexical: Nothing was embedded.

    Returns:
        Passages, best first; empty only if nothing was given.
    """
    kept = len(ranked)
    passages = merge(ranked, lexical=lexical)
    while sum(len(passage.content) for passage in passages) > max_characters:
        if kept == 1:
            return [_cut(passages[0], max_characters)]
        kept -= 1
        passages = merge(ranked[:kept], lexical=lexical)
    return passages


def _cut(passage: Passage, max_characters: int) -> Passage:
    """Keep the whole lines that fit before the marker, or a part of the first if none does."""
    room = max(0, max_characters - len(CUT_MARKER) - 1)
    whole = passage.content.rfind("\n", 0, room + 1)
    shown = passage.content[: whole if whole > 0 else room]
    return replace(
        passage,
        content=f"{shown}\n{CUT_MARKER}",
        end_line=passage.start_line + shown.count("\n"),
        truncated=True,
    )
