"""Answer from the conversation so far, without a search."""

from langgraph.runtime import Runtime

from ibid.domain.events import Phase
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.requests import history_request
from ibid.graphs.answer.speech import enter, say_reply, show_sources
from ibid.graphs.answer.state import AnswerState


async def answer_from_history(state: AnswerState, runtime: Runtime[AnswerDeps]) -> AnswerState:
    """Stream an answer that stands on the earlier turns; there may be none.

    Reads `question`, `history`, `style`, `reply_language`; writes `answer`.
    """
    enter(Phase.GENERATING, runtime)
    show_sources((), runtime)
    request = await history_request(state, runtime.context)
    await runtime.context.proceed()
    return {"answer": await say_reply(request, runtime)}
