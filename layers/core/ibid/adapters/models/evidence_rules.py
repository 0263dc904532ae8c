"""Judge by rules whether passages can answer a question: do they hold what it asks about?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ibid.adapters.models.question_rules import LONGEST_QUERY
from ibid.adapters.models.question_terms import QuestionTerms, question_terms, telling_words
from ibid.domain.analysis import analyse
from ibid.domain.passages import Passage

COVERED: Final = 0.5
"""Share of the telling words that the passages together must hold."""
NEAR: Final = 0.45
"""Cosine from which a passage answers whatever its words are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the passages lack.

    Attributes:
        missing: Identifiers of the question, as typed, that no passage holds.
        gap: The missing identifiers or words as code spans, empty if the evidence suffices.
        better_query: Another query that may find them, empty if there is none.
    """

    sufficient: bool
    missing: Sequence[str]
    gap: str
    better_query: str


def judge(question: str, passages: Sequence[Passage]) -> Verdict:
    """Judge a retrieval by the identifiers and telling words that the passages hold."""
    asked = question_terms(question)
    missing = missing_identifiers(asked, passages)
    held = _held(asked, passages)
    lacking = [term for term in asked.terms if term not in held]
    near = any(passage.cosine is not None and passage.cosine >= NEAR for passage in passages)
    covered = len(asked.terms) - len(lacking) >= COVERED * len(asked.terms)
    if not missing and (covered or near):
        return Verdict(sufficient=True, missing=(), gap="", better_query="")
    return Verdict(
        sufficient=False,
        missing=missing,
        gap=", ".join(f"`{word.replace('`', '')}`" for word in (missing or lacking)[:5]),
        better_query=_better_query(question, missing),
    )


def missing_identifiers(asked: QuestionTerms, passages: Sequence[Passage]) -> list[str]:
    """Find the identifiers, as typed, whose words stand in no passage, path or symbol."""
    if not asked.identifiers:
        return []
    texts = [f"{each.file_path}\n{each.symbol}\n{each.content}".casefold() for each in passages]
    held = _held(asked, passages)
    return [
        name
        for name in asked.identifiers
        if not any(name.casefold().removesuffix("()") in text for text in texts)
        and not _last_part_held(name, asked.language, held)
    ]


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
