"""What a question asks about: its telling words, its identifiers, its parts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ibid.domain.analysis import analyse
from ibid.domain.languages import detect
from ibid.domain.question_words import QUESTION_WORDS

_CODE_SPAN: Final = re.compile(r"`([^`\n]{1,200})`")
# snake_case, camelCase, dotted.names, paths/and.files, CONSTANTS, f(), names with digits
_CODE_SHAPE: Final = re.compile(
    r"[A-Za-z_$][\w$]*(?:(?:[./]|::|->|-)[\w$]+)*(?:\(\))?|--?[a-z][\w-]+"
)
_LOOKS_LIKE_CODE: Final = re.compile(
    r"_|[a-z][A-Z]|[A-Za-z]\d|\(\)$|[A-Za-z_]\.[A-Za-z_]|::|->|/.*\.|^--?[a-z]|^[A-Z]{3,}$"
)
_ACRONYM: Final = re.compile(r"(?<![\w.])[A-Z](?:[A-Z0-9]+|\d+)(?![\w.])")
# A capital inside a sentence: right after a word, or a word and a comma or a bracket
_CAPITALISED: Final = re.compile(r"(?<=[^\W_][ ,(\"\u201c])[ (\"\u201c]?(?P<name>[A-Z][\w-]*\w)")
_WORD: Final = re.compile(r"[^\W\d_]+")
_TITLE_SHARE: Final = 0.6
_FEW_CAPITALS: Final = 2
_JOINT: Final = re.compile(r"\.|::|->")
_NO_CODE: Final = frozenset({"e.g", "i.e", "p.ej", "a.k.a"})
_CONJUNCTION: Final = re.compile(
    r"[?;!]\s+|,\s+(?:and|e|y)\s+|\s+(?:and|e|y)\s+(?=(?:where|how|what|why|when|who|which|"
    r"onde|como|qual|quando|quem|d[oó]nde|c[oó]mo|cu[aá]l|qu[eé])\b)",
    re.IGNORECASE,
)
_LONGEST: Final = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionTerms:
    """A question, analysed.

    Attributes:
        language: As the analyser knows it; excerpts are analysed in the same one.
        terms: Telling words as the analyser gives them, distinct, in order.
        identifiers: What looks like code, as typed, distinct, in order.
        proper_names: Names that do not: a capital inside a sentence, an acronym; as typed.
        names: The term of each one's own name: `run` of `Flask.run()` and `src/run.py`.
        parts: The terms of each question within the question, in order; never empty.
    """

    language: str
    terms: Sequence[str]
    identifiers: Sequence[str]
    proper_names: Sequence[str]
    names: frozenset[str]
    parts: Sequence[frozenset[str]]


def question_terms(question: str) -> QuestionTerms:
    """Analyse a question; one of nothing but question words keeps those as its terms."""
    text = question[:_LONGEST]
    language = detect(text)
    words = list(dict.fromkeys(analyse(text, language=language)))
    spelt = identifiers(text)
    proper = [name for name in proper_names(text) if not any(name in code for code in spelt)]
    named = [*spelt, *proper]
    code = {term for name in named for term in analyse(name, language=language)}
    scaffolding = _scaffolding(language)
    telling = [word for word in words if word not in scaffolding or word in code]
    parts = [
        frozenset(analyse(part, language=language)) & frozenset(telling)
        for part in _CONJUNCTION.split(text)
    ]
    return QuestionTerms(
        language=language,
        terms=telling or words,
        identifiers=spelt,
        proper_names=proper,
        names=frozenset(
            term for name in named for term in analyse(own_name(name), language=language)[:1]
        ),
        parts=[part for part in parts if part] or [frozenset(words)],
    )


def identifiers(text: str) -> list[str]:
    """Find what looks like code in a text, as typed, distinct, in order."""
    found: dict[str, None] = {}
    for match in _CODE_SPAN.finditer(text):
        found.setdefault(match[1].strip())
    for match in _CODE_SHAPE.finditer(_CODE_SPAN.sub(" ", text)):
        if _LOOKS_LIKE_CODE.search(match[0]) and match[0].lower() not in _NO_CODE:
            found.setdefault(match[0])
    return [name for name in found if name]


def proper_names(text: str) -> list[str]:
    """Find the names that a text spells with capitals, as typed, distinct, in order.

    Returns:
        None of a title, where every word has a capital, or of German, where every noun has.
    """
    words = _WORD.findall(text)
    capitals = sum(word[0].isupper() for word in words)
    if capitals > max(_FEW_CAPITALS, _TITLE_SHARE * len(words)) or detect(text) == "german":
        return []
    plain = _CODE_SPAN.sub(" ", text)
    found = [(match.start("name"), match["name"]) for match in _CAPITALISED.finditer(plain)]
    found += [(match.start(), match[0]) for match in _ACRONYM.finditer(plain)]
    return list(dict.fromkeys(name for _, name in sorted(found)))


def own_name(identifier: str) -> str:
    """Return what an identifier names, without what it is part of: a path's stem, a last part."""
    if "/" in identifier:
        return identifier.rpartition("/")[2].partition(".")[0]
    return _JOINT.split(identifier.removesuffix("()"))[-1]


def telling_words(question: str) -> list[str]:
    """Find the words that carry the question's terms, as typed, distinct, in order."""
    asked = question_terms(question)
    known = set(asked.terms)
    return [
        word
        for word in dict.fromkeys(re.findall(r"[^\W_][\w-]*", question[:_LONGEST]))
        if known.intersection(analyse(word, language=asked.language))
    ]


@lru_cache(maxsize=16)
def _scaffolding(language: str) -> frozenset[str]:
    return frozenset(analyse(QUESTION_WORDS, language=language))
