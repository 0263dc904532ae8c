"""What is asked back, and what a reply changes: pure functions of the state.

A reply that names one option narrows the passages to it; one that names several is asked about
once more; one that means all of them, or nothing that is understood, settles the matter, and the
turn says what it took for granted. Other words are searched for together with the question. Where
there are no options, what says nothing is asked about once more. Who means none of what was
offered is asked for a full name, and the turn ends.
"""

from collections.abc import Sequence
from typing import Final

from ibid.graphs.answer.ask_state import (
    AskState,
    ClarificationRow,
    Doubt,
    Option,
    option_rows,
    options_of,
)
from ibid.graphs.answer.references import find_dangling
from ibid.graphs.answer.replies import Meaning, Reply, most_said, read_reply
from ibid.graphs.answer.search_query import usable_query
from ibid.graphs.answer.state import passage_row, passages_of
from ibid.graphs.answer.texts import FixedText, fixed_text
from ibid.graphs.answer.ties import holds, without

MAX_PAUSES: Final = 3
"""Replies that a turn asks for; after them it takes the best reading."""

_QUESTIONS: Final = {
    Doubt.SYMBOL: FixedText.WHICH_SYMBOL,
    Doubt.DOCUMENT: FixedText.WHICH_DOCUMENT,
    Doubt.TERM: FixedText.WHICH_TERM,
    Doubt.REFERENCE: FixedText.WHICH_REFERENCE,
    Doubt.INTENT: FixedText.WHICH_INTENT,
}


def clarification_row(state: AskState) -> ClarificationRow:
    """Return what the asker is asked, in the reply language."""
    return {
        "question": fixed_text(
            _QUESTIONS[Doubt(state["doubt"])],
            reply_language=state["reply_language"],
            phrase=state["phrase"],
        ),
        "options": [option["text"] for option in state["options"]],
    }


def understand(state: AskState, reply: str, *, repinned: int | None) -> AskState:
    """Return what a reply changes.

    Args:
        state: As it was when the question was asked.
        reply: As typed, not blank.
        repinned: The generation of the run that got the reply: passages of another one are not
            kept, they are searched for again.
    """
    options = options_of(state["options"])
    pauses = state["pauses"] + 1
    done: AskState = {"pauses": pauses, "doubt": "", "phrase": "", "options": [], "narrowed": False}
    again: AskState = {"pauses": pauses, "narrowed": False}
    may_ask = pauses < MAX_PAUSES
    understood = _read(state, reply, options)
    chosen = understood.chosen
    match understood.meaning:
        case Meaning.CHOSEN if len(chosen) == 1:
            return {**done, **_kept(state, chosen, None, repinned=repinned)}
        case Meaning.CHOSEN if may_ask and len(chosen) < len(options):
            return {**again, **_fewer(state, chosen)}
        case Meaning.CHOSEN:
            return {**done, **_kept(state, chosen, FixedText.TOOK_ALL, repinned=repinned)}
        case Meaning.ALL if options:
            return {**done, **_kept(state, options, FixedText.TOOK_ALL, repinned=repinned)}
        case Meaning.UNCLEAR if options:
            return {**done, **_kept(state, options[:1], FixedText.TOOK_BEST, repinned=repinned)}
        case Meaning.UNCLEAR | Meaning.ALL if may_ask:
            return again
        case Meaning.WORDS:
            return {**done, **_searched(state, reply, assume=bool(options))}
        case _:
            return {**done, **_ended(state)}


def _read(state: AskState, reply: str, options: Sequence[Option]) -> Reply:
    """Understand a reply, by what the passages say of the options where nothing else tells."""
    understood = read_reply(reply, options, question=state["question"])
    if not options and find_dangling(reply, ()) is not None:
        return Reply(meaning=Meaning.UNCLEAR)  # it points at nothing, as the question did
    if understood.meaning is not Meaning.WORDS:
        return understood
    passages = passages_of(state)
    texts = [
        " ".join(passage.content for passage in passages if holds(passage, option))
        for option in options
    ]
    chosen = most_said(reply, options, texts, question=state["question"])
    return Reply(meaning=Meaning.CHOSEN, chosen=chosen) if len(chosen) == 1 else understood


def _ended(state: AskState) -> AskState:
    """End the turn with a plain question: there is nothing left to go on with."""
    text = fixed_text(FixedText.ASK_AGAIN, reply_language=state["reply_language"])
    return {"answer": text, "plain": {"question": text, "options": []}, "passages": []}


def _fewer(state: AskState, chosen: Sequence[Option]) -> AskState:
    """Leave fewer options, to be asked about once more."""
    out = [option for option in options_of(state["options"]) if option not in chosen]
    return {
        "doubt": state["doubt"],
        "phrase": state["phrase"],
        "options": option_rows(chosen),
        "dropped": [*state["dropped"], *option_rows(out)],
    }


def _kept(
    state: AskState,
    chosen: Sequence[Option],
    assumption: FixedText | None,
    *,
    repinned: int | None,
) -> AskState:
    """Go on with what was chosen, or taken to be meant."""
    out = [option for option in options_of(state["options"]) if option not in chosen]
    dropped = [*state["dropped"], *option_rows(out)]
    kept = [*state["kept"], *option_rows(chosen)]
    said = ", ".join(option.text for option in chosen)
    left = without(passages_of(state), dropped=options_of(dropped), kept=options_of(kept))
    is_of_passages = all(option.path for option in chosen)
    is_current = repinned is None or repinned == state["generation"]
    return {
        "kept": kept,
        "dropped": dropped,
        "settled": [*state["settled"], state["phrase"].lower()],
        "passages": [passage_row(passage) for passage in left],
        "narrowed": is_of_passages and is_current,
        "assumptions": _assumed(state, assumption, option=said),
        **_more(state, said if assumption is not FixedText.TOOK_ALL else ""),
    }


def _searched(state: AskState, reply: str, *, assume: bool) -> AskState:
    """Search for the question together with the reply's words."""
    return {
        "settled": [*state["settled"], state["phrase"].lower()],
        "assumptions": _assumed(state, FixedText.TOOK_WORDS if assume else None, option=""),
        **_more(state, " ".join(reply.split())),
    }


def _more(state: AskState, said: str) -> AskState:
    """Add to question and query what is known now."""
    if not said:
        return {}
    query = usable_query(f"{state['search_query']} {said}") or state["search_query"]
    return {"question": f"{state['question']} ({said})", "search_query": query}


def _assumed(state: AskState, text: FixedText | None, *, option: str) -> list[str]:
    if text is None:
        return state["assumptions"]
    said = fixed_text(text, reply_language=state["reply_language"], option=option)
    return [*state["assumptions"], said]
