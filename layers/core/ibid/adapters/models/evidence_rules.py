"""Judge by rules whether passages can answer a question: do they hold what it asks about?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ibid.adapters.models.overview import describing_units
from ibid.adapters.models.question_kinds import asks_for_an_overview
from ibid.adapters.models.question_rules import LONGEST_QUERY
from ibid.adapters.models.question_terms import QuestionTerms, question_terms, telling_words
from ibid.domain.analysis import analyse
from ibid.domain.languages import most_spoken
from ibid.domain.passages import Passage

COVERED: Final = 0.5
"""Share of the telling words that the passages together must hold."""
NEAR: Final = 0.45
"""Cosine from which a passage answers whatever its words are."""

_OVERVIEW_QUERY: Final = "`README` overview of the project: what does this project do?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the passages lack.

    Attributes:
        missing: Names of the question, as typed, that no passage holds.
        gap: The missing names or words as code spans, empty if the evidence suffices.
        better_query: Another query that may find them, empty if there is none.
    """

    sufficient: bool
    missing: Sequence[str]
    gap: str
    better_query: str


def judge(question: str, passages: Sequence[Passage]) -> Verdict:
    """Judge a retrieval by the names and telling words that the passages hold.

    Passages in another language than the question's can hold none of its other words: then one
    of its words will do.
    """
    asked = question_terms(question)
    if asks_for_an_overview(question):
        found = bool(describing_units(passages))
        query = "" if found else _OVERVIEW_QUERY
        return Verdict(sufficient=found, missing=(), gap="", better_query=query)
    missing = missing_names(asked, passages)
    held = _held(asked, passages)
    lacking = [term for term in asked.terms if term not in held]
    near = any(passage.cosine is not None and passage.cosine >= NEAR for passage in passages)
    count = len(asked.terms) - len(lacking)
    covered = count >= COVERED * len(asked.terms) or (count > 0 and _foreign(asked, passages))
    if not missing and (covered or near):
        return Verdict(sufficient=True, missing=(), gap="", better_query="")
    return Verdict(
        sufficient=False,
        missing=missing,
        gap=", ".join(f"`{word.replace('`', '')}`" for word in (missing or lacking)[:5]),
        better_query=_better_query(question, missing),
    )


def missing_names(asked: QuestionTerms, passages: Sequence[Passage]) -> list[str]:
    """Find the identifiers and proper names, as typed, that stand in no passage, path or symbol."""
    names = [*asked.identifiers, *asked.proper_names]
    if not names:
        return []
    texts = [f"{each.file_path}\n{each.symbol}\n{each.content}".casefold() for each in passages]
    held = _held(asked, passages)
    return [
        name
        for name in names
        if not any(name.casefold().removesuffix("()") in text for text in texts)
        and not (name in asked.proper_names and _own_word_held(name, asked.language, held))
        and not _last_part_held(name, asked.language, held)
    ]


def _foreign(asked: QuestionTerms, passages: Sequence[Passage]) -> bool:
    return most_spoken(passage.content for passage in passages) != asked.language


def _own_word_held(name: str, language: str, held: frozenset[str]) -> bool:
    """`Blueprints` are found where a `Blueprint` is."""
    words = analyse(name, language=language)
    return not words or words[0] in held


def _last_part_held(name: str, language: str, held: frozenset[str]) -> bool:
    """`app.run()` is found where `run` is: a dotted name is rarely written out in full."""
    last = name.removesuffix("()").replace("::", ".").replace("->", ".").rpartition(".")
    words = analyse(last[2], language=language)
    return bool(last[0]) and bool(words) and words[0] in held


def _held(asked: QuestionTerms, passages: Sequence[Passage]) -> frozenset[str]:
    held: set[str] = set()
    for passage in passages:
        text = f"{passage.file_path} {passage.symbol} {passage.content}"
        held.update(analyse(text, language=asked.language))
    return frozenset(held)


def _better_query(question: str, missing: Sequence[str]) -> str:
    """Ask for what is missing, its parts, and the telling words alone."""
    words = dict.fromkeys(missing)
    words |= dict.fromkeys(word for name in missing for word in analyse(name, language="other"))
    words |= dict.fromkeys(telling_words(question))
    query = " ".join(words)[:LONGEST_QUERY].strip()
    return "" if query.casefold() == " ".join(question.split()).casefold() else query
