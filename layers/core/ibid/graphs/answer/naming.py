"""What a question names: the one thing it is about, and the words that say more of it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ibid.domain.analysis import analyse
from ibid.domain.languages import FUNCTION_WORDS
from ibid.domain.question_words import QUESTION_WORDS
from ibid.domain.stop_words import STOP_WORDS

LANGUAGE: Final = "other"
"""Neither stops nor stems: a name is compared as it is spelt."""

_LONGEST: Final = 4_000
_SPAN: Final = re.compile(r"`([^`\n]{1,200})`")
_TOKEN: Final = re.compile(r"[^\W][\w$]*(?:(?:[./#-]|::|->)[\w$]+)*(?:\(\))?")
_JOINT: Final = re.compile(r"[./#]|::|->")
_CODE: Final = re.compile(r"_|[a-z][A-Z]|[A-Za-z]\d|\(\)$|\w[./]\w|::|->")
_NO_CODE: Final = frozenset({"e.g", "i.e", "p.ej", "a.k.a", "and/or", "y/o", "e/ou"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What a question names.

    Attributes:
        spelt: What is spelt as code, as typed, distinct, in order.
        focus: The only word that tells something, where nothing is spelt as code; else empty.
        words: Every word of the question that tells something, in lower case, names and their
            parts included.
    """

    spelt: Sequence[str]
    focus: str
    words: frozenset[str]

    @property
    def names(self) -> Sequence[str]:
        """What may be a name, in order."""
        return self.spelt or ([self.focus] if self.focus else [])


def read_names(question: str) -> Named:
    """Find what a question names."""
    text = question[:_LONGEST]
    spelt: dict[str, None] = {}
    for match in _SPAN.finditer(text):
        spelt.setdefault(match[1].strip().removesuffix("()"))
    rest = _SPAN.sub(" ", text)
    tokens = list(dict.fromkeys(_TOKEN.findall(rest)))
    for token in tokens:
        if _CODE.search(token) and token.lower() not in _NO_CODE:
            spelt.setdefault(token.removesuffix("()"))
    names = [name for name in spelt if name]
    telling = [token for token in tokens if not is_usual(token)]
    words = {word for token in (*names, *telling) for word in words_of(token)}
    focus = telling[0] if not names and len(telling) == 1 else ""
    return Named(spelt=names, focus=focus, words=frozenset(words))


def own_name(name: str) -> str:
    """Return the last part of a dotted name or of a path."""
    return _JOINT.split(name)[-1]


def words_of(text: str) -> frozenset[str]:
    """Return a text's words, identifiers whole and in parts, less those of every question."""
    return frozenset(analyse(text, language=LANGUAGE)) - usual_words()


def is_usual(word: str) -> bool:
    """Whether it is a word of which questions are made."""
    return not words_of(word)


@lru_cache(maxsize=1)
def usual_words() -> frozenset[str]:
    """Return the words of which questions are made, as they are analysed here."""
    words = frozenset().union(*FUNCTION_WORDS.values(), *STOP_WORDS.values())
    return frozenset(analyse(f"{QUESTION_WORDS} {' '.join(sorted(words))}", language=LANGUAGE))
