"""Ask the asker which reading they mean; entered only where there are several."""

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from ibid.graphs.answer.ask_state import AskState
from ibid.graphs.answer.clarifying import clarification_row, understand
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.speech import say, show_sources


async def clarify(state: AskState, runtime: Runtime[AnswerDeps]) -> AskState:
    """Wait for the reply, then narrow the passages, search again, ask again, or let it be.

    Reads `doubt`, `phrase`, `options`, `question`, `search_query`, `passages` and what the replies
    left so far; writes what the reply changes of them. A blank reply never gets here: it is 422.
    """
    reply = interrupt(clarification_row(state))
    writes = understand(state, str(reply), repinned=runtime.context.repinned)
    if writes.get("plain"):
        show_sources((), runtime)
        say(writes["answer"], runtime)
    return writes
