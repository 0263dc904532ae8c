"""Judge if the passages suffice, before any token is written."""

from langgraph.runtime import Runtime

from ibid.domain.errors import ModelFaulty
from ibid.domain.events import Phase
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.fallback import or_none
from ibid.graphs.answer.requests import grade_request
from ibid.graphs.answer.search_query import usable_query
from ibid.graphs.answer.speech import enter
from ibid.graphs.answer.state import AnswerState, degraded_by

MAX_GAP_CHARACTERS = 500


async def grade(state: AnswerState, runtime: Runtime[AnswerDeps]) -> AnswerState:
    """Ask the model for a verdict on the last retrieval, unless the project leaves that out.

    Reads `question`, `passages`; writes `evidence_ok`, `gap`, a better `search_query` if the
    verdict is bad and has one, and `degraded` if it fell back: then the passages suffice.
    """
    deps = runtime.context
    if not deps.settings.grade_evidence:
        return {}
    enter(Phase.GRADING, runtime)
    await deps.proceed()
    decided = await or_none(_decide(state, deps), helper="grade", timeout_s=deps.helper_timeout_s)
    if decided is None:
        return {"evidence_ok": True, "gap": "", "degraded": degraded_by(state, "grade")}
    return decided


async def _decide(state: AnswerState, deps: AnswerDeps) -> AnswerState:
    """Ask for the verdict.

    Raises:
        ModelFaulty: There is no verdict in the reply.
    """
    decision = await deps.model.decide(await grade_request(state, deps))
    sufficient = decision.get("sufficient")
    if not isinstance(sufficient, bool):
        raise ModelFaulty("grade gave no verdict")
    if sufficient:
        return {"evidence_ok": True, "gap": ""}
    gap = decision.get("gap")
    return {
        "evidence_ok": False,
        "gap": gap[:MAX_GAP_CHARACTERS] if isinstance(gap, str) else "",
        "search_query": usable_query(decision.get("better_query")) or state["search_query"],
    }
