"""Decide what kind of question it is, and if it is clear enough to be searched for."""

from collections.abc import Mapping
from typing import Any

from langgraph.runtime import Runtime

from ibid.domain.answers import Intent
from ibid.graphs.answer.ask_state import (
    MAX_OPTIONS,
    Ambiguity,
    AskState,
    Doubt,
    Option,
    to_ask,
)
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.excerpts import one_line
from ibid.graphs.answer.nodes.classify import classified
from ibid.graphs.answer.references import find_dangling
from ibid.graphs.answer.state import history_of
from ibid.graphs.answer.ties import LONGEST_OPTION

_FEWEST = 2


async def classify_or_ask(state: AskState, runtime: Runtime[AnswerDeps]) -> AskState:
    """Do as `classify`, and tell by rules and by the model's judgement if the intent is unsure.

    Reads what `classify` reads; writes that, `doubt`, `phrase` and `options`. A model that gives
    no judgement leaves it to the rules.
    """
    writes, decision = await classified(state, runtime, may_ask=True)
    known: AskState = {**state, **writes}
    if Intent(known["intent"]) is not Intent.CODEBASE_QUESTION:
        return {**writes, **to_ask(None)}
    ambiguity = find_dangling(state["question"], history_of(state)) or judged(decision)
    return {**writes, **to_ask(ambiguity)}


def judged(decision: Mapping[str, Any]) -> Ambiguity | None:
    """Return what a model finds unclear; None if it is sure, or says nothing of the kind."""
    if decision.get("needs_clarification") is not True:
        return None
    offered = decision.get("clarification_options")
    texts: dict[str, Option] = {}
    for text in offered if isinstance(offered, list) else ():
        shown = one_line(text)[:LONGEST_OPTION].strip() if isinstance(text, str) else ""
        if shown:
            texts.setdefault(shown.casefold(), Option(text=shown))
    options = list(texts.values())[:MAX_OPTIONS]
    return Ambiguity(doubt=Doubt.INTENT, options=options if len(options) >= _FEWEST else ())
