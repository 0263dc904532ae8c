"""Turn away what is not about the project."""

from langgraph.runtime import Runtime

from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.speech import say, show_sources
from ibid.graphs.answer.state import AnswerState
from ibid.graphs.answer.texts import FixedText, fixed_text


async def refuse(state: AnswerState, runtime: Runtime[AnswerDeps]) -> AnswerState:
    """Stream a fixed text; no model is called.

    Reads `reply_language`; writes `answer`.
    """
    show_sources((), runtime)
    text = fixed_text(FixedText.REFUSE, reply_language=state["reply_language"])
    return {"answer": say(text, runtime)}
