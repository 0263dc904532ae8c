"""Find the passages that the answer will stand on, and tell if they leave a choice."""

from langgraph.runtime import Runtime

from ibid.graphs.answer.ask_state import AskState, options_of, to_ask
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.nodes.retrieve import retrieved
from ibid.graphs.answer.state import history_of, passage_row, passages_of
from ibid.graphs.answer.terms import find_term_tie
from ibid.graphs.answer.texts import FixedText, fixed_text
from ibid.graphs.answer.ties import find_tie, without


async def retrieve_or_ask(state: AskState, runtime: Runtime[AnswerDeps]) -> AskState:
    """Do as `retrieve`, without what the asker turned down, and look for a tie.

    Where a reply's words find nothing, what was found before the reply stays.

    Reads what `retrieve` reads, `question`, `history`, `kept`, `dropped`, `settled` and
    `assumptions`; writes what it writes, `doubt`, `phrase`, `options` and `assumptions`.
    """
    writes, found = await retrieved(state, runtime)
    dropped, kept = options_of(state["dropped"]), options_of(state["kept"])
    passages = without(found, dropped=dropped, kept=kept)
    assumptions = state["assumptions"]
    is_of_reply = state["pauses"] > 0 and state["evidence_ok"] is None
    if is_of_reply and not passages and state["generation"] == writes["generation"]:
        passages = list(passages_of(state))
        if passages:
            assumptions = [
                *assumptions,
                fixed_text(FixedText.KEPT_EARLIER, reply_language=state["reply_language"]),
            ]
    question, settled = state["question"], state["settled"]
    tie = find_tie(question, passages, dropped=dropped, settled=settled) or find_term_tie(
        question, history_of(state), passages, settled=settled
    )
    return {
        **writes,
        "passages": [passage_row(passage) for passage in passages],
        "assumptions": assumptions,
        **to_ask(tie),
    }
