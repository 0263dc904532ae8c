"""Write the answer from the passages, or say that there are none."""

from langgraph.runtime import Runtime

from ibid.domain.events import Phase
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.requests import answer_request
from ibid.graphs.answer.speech import enter, say, say_reply
from ibid.graphs.answer.state import AnswerState, passage_row
from ibid.graphs.answer.texts import FixedText, fixed_text


async def generate(state: AnswerState, runtime: Runtime[AnswerDeps]) -> AnswerState:
    """Stream the answer; without passages a fixed text, and no model is called.

    Reads `question`, `passages`, `gap`, `history`, `style`, `reply_language`; writes `answer`, and
    `passages` less those that did not fit the prompt, so that a number means what the model saw.
    """
    if not state["passages"]:
        text = fixed_text(FixedText.NO_CONTEXT, reply_language=state["reply_language"])
        return {"answer": say(text, runtime)}
    enter(Phase.GENERATING, runtime)
    request = await answer_request(state, runtime.context)
    await runtime.context.proceed()
    answer = await say_reply(request, runtime)
    return {
        "answer": answer,
        "passages": [passage_row(passage) for passage in request.passages],
    }
