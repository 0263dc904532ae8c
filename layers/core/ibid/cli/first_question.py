"""The question that a newcomer is given to paste."""

from collections.abc import Sequence

from ibid.domain.errors import GenerationGone
from ibid.domain.passages import Chunk
from ibid.domain.projects import Project
from ibid.ports.index import PassageIndex
from ibid.retrieval.path_prior import PathPrior

OVERVIEW = "What does this project do?"
LOOKED_AT = 1_000


async def first_question(index: PassageIndex, project: Project) -> str:
    """Ask for an overview, or while there are words only, for the longest definition.

    Any project can answer either; `project` has an active generation.
    """
    if project.embedding_signature is not None or project.active_generation is None:
        return OVERVIEW
    try:
        page = await index.scroll(
            tenant=project.tenant,
            project_id=project.id,
            generation=project.active_generation,
            path_prefix="",
            cursor=None,
            limit=LOOKED_AT,
        )
    except GenerationGone:  # the one with vectors has come meanwhile
        return OVERVIEW
    name = _longest_definition(page.items)
    return OVERVIEW if name is None else f"Where is {name} defined?"


def _longest_definition(chunks: Sequence[Chunk]) -> str | None:
    """Name the longest chunk that defines one public thing, in the source rather than a test."""
    prior = PathPrior(OVERVIEW)
    defining = [
        chunk
        for chunk in chunks
        if chunk.symbol.isidentifier()
        and not chunk.symbol.startswith("_")
        and chunk.language != "markdown"
        and prior.weight(chunk.file_path) == 1.0
    ]
    longest = max(defining, key=lambda chunk: len(chunk.content), default=None)
    return None if longest is None else longest.symbol
