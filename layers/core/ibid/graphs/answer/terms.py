"""When two terms tie on one phrase: the question says less than what was retrieved tells apart.

- In prose, `the county` ties where the passages of two files speak of an `Orange County` and a
  `Sierra County`, and neither is named in the question or an earlier turn. English only.
- In code, `the loader`, where that is all that a question tells, ties where the passages define a
  `JsonLoader` and a `yaml_loader`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ibid.domain.analysis import analyse
from ibid.domain.answers import HistoryTurn
from ibid.domain.passages import Passage
from ibid.graphs.answer.ask_state import MAX_OPTIONS, Ambiguity, Doubt, Option
from ibid.graphs.answer.excerpts import one_line
from ibid.graphs.answer.naming import own_name, read_names
from ibid.graphs.answer.phrases import noun_phrases
from ibid.retrieval.path_prior import PathPrior

_PROSE: Final = frozenset({"markdown", "text", "rst"})
# Behind a small word: the capitals of a heading, or of a sentence's first word, name nothing
_RUN: Final = re.compile(
    r"(?<=[a-z,;(] )[A-Z][\w&-]*(?:['\u2019]s)?(?:[ \t]+(?:of[ \t]+)?[A-Z][\w&-]*){1,8}"
)
_LONGEST_TERM: Final = 4  # words
_SHORTEST_HEAD: Final = 3  # letters
_LANGUAGE: Final = "english"
_NO_PART: Final = frozenset(
    re.findall(
        r"\w+",
        """
        the this a an in our your my its each for if at these some all any no what how why when
        where who is are do does can we you i it on to from by as and or but of
        """,
    )
)
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_FEWEST: Final = 2


def find_term_tie(
    question: str,
    history: Sequence[HistoryTurn],
    passages: Sequence[Passage],
    *,
    settled: Sequence[str] = (),
) -> Ambiguity | None:
    """Find the first phrase of a question that two terms of the passages tie on.

    Args:
        question: The asker's words.
        history: What was said before.
        passages: What was retrieved, best first.
        settled: Phrases, in lower case, that were asked about.

    Returns:
        The terms in the order of their best passages, at most `MAX_OPTIONS`; None if none tie.
    """
    named = read_names(question)
    if named.focus and named.focus.lower() not in settled:
        options = list(_defined(named.focus, question, passages))
        if len(options) >= _FEWEST:
            return Ambiguity(doubt=Doubt.TERM, phrase=named.focus, options=options[:MAX_OPTIONS])
    if named.spelt:
        return None
    said = " ".join([question, *(f"{turn.question} {turn.answer}" for turn in history)])
    known = frozenset(analyse(said, language=_LANGUAGE))
    for _, words in noun_phrases(question):
        for end in range(1, len(words) + 1):
            phrase = " ".join(words[:end])
            if len(words[end - 1]) >= _SHORTEST_HEAD and phrase.lower() not in settled:
                options = _spoken_of(words[end - 1], passages, known)
                if options:
                    return Ambiguity(doubt=Doubt.TERM, phrase=phrase, options=options)
    return None


def _defined(focus: str, question: str, passages: Sequence[Passage]) -> Iterator[Option]:
    """Yield what the source defines under a longer name that ends with the word."""
    prior = PathPrior(question)
    found: dict[str, Option] = {}
    for passage in passages:
        for symbol in passage.symbol.split():
            parts = [part.lower() for part in _PART.findall(own_name(symbol))]
            if parts == [focus.lower()]:
                return  # it defines the word itself
            if (
                len(parts) > 1
                and parts[-1] == focus.lower()
                and prior.weight(passage.file_path) >= 1
            ):
                text = one_line(f"{passage.file_path}: {symbol}")
                found.setdefault(symbol, Option(text=text, path=passage.file_path, symbol=symbol))
    yield from found.values()


def _spoken_of(head: str, passages: Sequence[Passage], known: frozenset[str]) -> list[Option]:
    """Return the terms that end with a word, if passages of two files have different ones."""
    found: dict[str, str] = {}
    for passage in passages:
        if passage.language in _PROSE:
            for term in _terms(passage.content, head):
                modifiers = frozenset(analyse(term.rpartition(" ")[0], language=_LANGUAGE))
                if modifiers and modifiers.isdisjoint(known):
                    found.setdefault(term, passage.file_path)
    if len(found) < _FEWEST or len(set(found.values())) < _FEWEST:
        return []
    return [Option(text=term) for term in list(found)[:MAX_OPTIONS]]


def _terms(text: str, head: str) -> Iterator[str]:
    stem = analyse(head, language=_LANGUAGE)[:1]
    for match in _RUN.finditer(text):
        words = match[0].replace("\u2019s", "").replace("'s", "").split()[-_LONGEST_TERM:]
        while words and words[0].lower() in _NO_PART:
            del words[0]
        if stem and len(words) > 1 and analyse(words[-1], language=_LANGUAGE)[:1] == stem:
            yield " ".join(words)
