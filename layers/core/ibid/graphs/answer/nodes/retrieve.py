"""Find the passages that the answer will stand on."""

from collections.abc import Sequence

from langgraph.runtime import Runtime

from ibid.domain.errors import GenerationGone
from ibid.domain.events import Phase
from ibid.domain.passages import Passage
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.speech import enter, show_sources
from ibid.graphs.answer.state import AnswerState, passage_row


async def retrieve(state: AnswerState, runtime: Runtime[AnswerDeps]) -> AnswerState:
    """Search the turn's generation, or once more the active one if that is gone.

    Reads `search_query`, `tenant`, `project_id`, `generation`, `path_prefix`, `attempts`; writes
    `passages`, best first, `attempts`, and `generation`. Shows the sources of the first search.
    """
    writes, passages = await retrieved(state, runtime)
    return {**writes, "passages": [passage_row(passage) for passage in passages]}


async def retrieved(
    state: AnswerState, runtime: Runtime[AnswerDeps]
) -> tuple[AnswerState, Sequence[Passage]]:
    """Return what `retrieve` writes besides the passages, and the passages."""
    deps = runtime.context
    enter(Phase.RETRIEVING, runtime)
    generation = state["generation"] if deps.repinned is None else deps.repinned
    try:
        passages = await _search(state, deps, generation=generation)
    except GenerationGone:
        generation = await deps.active_generation()
        passages = await _search(state, deps, generation=generation)
    if state["attempts"] == 0:
        show_sources(passages, runtime)
    return {"attempts": state["attempts"] + 1, "generation": generation}, passages


async def _search(state: AnswerState, deps: AnswerDeps, *, generation: int) -> Sequence[Passage]:
    return await deps.search.search(
        state["search_query"],
        tenant=state["tenant"],
        project_id=state["project_id"],
        generation=generation,
        path_prefix=state["path_prefix"],
        limit=deps.passage_limit,
        max_characters=deps.max_passage_characters,
        timeout_s=deps.search_timeout_s,
    )
