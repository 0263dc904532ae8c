"""Decide what kind of question it is, and what to search for."""

from collections.abc import Mapping
from typing import Any

from langgraph.runtime import Runtime

from ibid.domain.answers import Intent
from ibid.domain.errors import ModelFaulty
from ibid.domain.events import Phase
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.fallback import or_none
from ibid.graphs.answer.requests import classify_request
from ibid.graphs.answer.search_query import usable_query
from ibid.graphs.answer.speech import enter
from ibid.graphs.answer.state import AnswerState, degraded_by


async def classify(state: AnswerState, runtime: Runtime[AnswerDeps]) -> AnswerState:
    """Ask the model for the intent and a search query, unless the project leaves that out.

    Reads `question`, `history`; writes `intent`, `search_query`, and `degraded` if it fell back:
    then it is a question about the code base, in the asker's own words.
    """
    writes, _ = await classified(state, runtime, may_ask=False)
    return writes


async def classified(
    state: AnswerState, runtime: Runtime[AnswerDeps], *, may_ask: bool
) -> tuple[AnswerState, Mapping[str, Any]]:
    """Return what `classify` writes, and the model's whole decision, empty without one."""
    deps = runtime.context
    if not deps.settings.classify_intent:
        return {}, {}
    enter(Phase.CLASSIFYING, runtime)
    await deps.proceed()
    decided = await or_none(
        _decide(state, deps, may_ask=may_ask), helper="classify", timeout_s=deps.helper_timeout_s
    )
    if decided is None:
        fallen: AnswerState = {
            "intent": Intent.CODEBASE_QUESTION.value,
            "search_query": state["question"],
            "degraded": degraded_by(state, "classify"),
        }
        return fallen, {}
    return decided


async def _decide(
    state: AnswerState, deps: AnswerDeps, *, may_ask: bool
) -> tuple[AnswerState, Mapping[str, Any]]:
    """Ask, and take the decision as a whole or not at all.

    Raises:
        ModelFaulty: The intent is none of ours, or the query is empty or too long.
    """
    question = state["question"]
    decision = await deps.model.decide(await classify_request(state, deps, may_ask=may_ask))
    try:
        intent = Intent(str(decision.get("intent")))
    except ValueError:
        raise ModelFaulty("classify gave an intent that does not exist") from None
    query = usable_query(decision.get("search_query"))
    if intent is not Intent.CODEBASE_QUESTION:
        # It is asked to repeat the question, which may be longer than a query ever is.
        query = question if query or decision.get("search_query") == question else None
    if query is None:
        raise ModelFaulty("classify gave an empty search query, or one that is too long")
    return {"intent": intent.value, "search_query": query}, decision
