"""What might be asked instead, where nothing was found."""

from typing import Final

from ibid.graphs.answer.ask_state import AskState
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.excerpts import one_line
from ibid.graphs.answer.fallback import or_none
from ibid.graphs.answer.texts import FixedText, fixed_text

MOST_FILES: Final = 3


async def suggestions(state: AskState, deps: AnswerDeps) -> tuple[str, ...]:
    """Suggest questions that have an answer: on the nearest files, then on the whole project.

    A search that fails costs its suggestions only.

    Returns:
        In the reply language, each once; empty if something was found, or nothing searched for.
    """
    found_nothing = state["attempts"] > 0 and not state["passages"] and state["plain"] is None
    if deps.nearest_files is None or not found_nothing:
        return ()
    paths = await or_none(
        deps.nearest_files(
            state["search_query"],
            tenant=state["tenant"],
            project_id=state["project_id"],
            generation=state["generation"],
            limit=MOST_FILES,
        ),
        helper="suggestions",
        timeout_s=deps.search_timeout_s,
    )
    language = state["reply_language"]
    files = [
        fixed_text(FixedText.ABOUT_FILE, reply_language=language, path=one_line(path))
        for path in paths or ()
    ]
    project = fixed_text(FixedText.ABOUT_PROJECT, reply_language=language)
    return tuple(dict.fromkeys([*files, project]))
