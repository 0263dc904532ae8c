"""When a question points at something that nobody named: rules of the router that is unsure.

- `this` or `these` with a noun (`does this animal have antlers?`), where no earlier turn has any
  word of that phrase. After an earlier turn, words that may stand for whatever it was about
  (`this function`, `this approach`) point at it.
- A pronoun that is all a first question says (`how does it work?`).

What is there without being named is no riddle: this project, this page, this time.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from ibid.domain.analysis import analyse
from ibid.domain.answers import HistoryTurn
from ibid.graphs.answer.ask_state import Ambiguity, Doubt
from ibid.graphs.answer.naming import is_usual, read_names
from ibid.graphs.answer.phrases import POINTER_ELSEWHERE, PRONOUN, noun_phrases

_LANGUAGE: Final = "english"
_IS_THERE: Final = frozenset(
    analyse(
        """
        project repo repository code codebase base library package app application tool system
        framework service server product program software documentation docs site page release
        version time year week month day morning moment point way case kind sort type manner reason
        thing stuff example context respect regard matter issue problem question answer topic area
        information conversation chat same much many being
        """,
        language=_LANGUAGE,
    )
)
_STANDS_FOR: Final = frozenset(
    analyse(
        """
        function method class module file line object instance property attribute parameter argument
        variable value field key option setting flag constant exception error test decorator loop
        snippet block part piece step call check concept idea mechanism approach pattern feature
        behaviour behavior logic flow process algorithm design structure component interface
        command request response event message one result output input
        """,
        language=_LANGUAGE,
    )
)
_SHOWN: Final = 2  # words of a phrase, which may have a verb in it
_POINTERS: Final = frozenset({"this", "these"})


def find_dangling(question: str, history: Sequence[HistoryTurn]) -> Ambiguity | None:
    """Find what a question points at in vain; None if it stands by itself."""
    named = read_names(question)
    if named.spelt:
        return None
    phrase = next(_unknown(question, history), None)
    if phrase is None and not history:
        found = POINTER_ELSEWHERE.search(question)
        if found is None and not named.words:
            found = PRONOUN.search(question)
        phrase = None if found is None else found["phrase"]
    return None if phrase is None else Ambiguity(doubt=Doubt.REFERENCE, phrase=phrase)


def _unknown(question: str, history: Sequence[HistoryTurn]) -> Iterator[str]:
    """Yield the phrases with `this` or `these` of which no word was said before."""
    said = {
        word
        for turn in history
        for word in analyse(f"{turn.question} {turn.answer}", language=_LANGUAGE)
    }
    points_back = _STANDS_FOR if history else frozenset[str]()
    for pointer, words in noun_phrases(question):
        terms = {term for word in words for term in analyse(word, language=_LANGUAGE)}
        if (
            pointer in _POINTERS
            and terms
            and not words[0].endswith("ed")  # "is this intended for …"
            and terms.isdisjoint(_IS_THERE | points_back | said)
            and (not history or not all(is_usual(word) for word in words))
        ):
            is_known = not _STANDS_FOR.isdisjoint(analyse(words[0], language=_LANGUAGE))
            shown = words[: 1 if is_known else _SHOWN]
            more = " …" if len(words) > _SHOWN and not is_known else ""
            yield f"{pointer} {' '.join(shown)}{more}"
