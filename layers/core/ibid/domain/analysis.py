"""The words by which a text is found, prose or code alike.

A token is a whole identifier, a number, or a run of Chinese, Japanese or Korean. An identifier
gives itself, lower-cased, and its camel, snake and digit parts; stop words give nothing; each word
is stemmed, then loses its accents; a run of CJK gives its overlapping pairs of characters.
"""

import re
import threading
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import Stemmer  # type: ignore[import-not-found]  # a C module without stubs

from ibid.domain.stop_words import STOP_WORDS

LONGEST_WORD: Final = 128
"""Characters; what is longer is data rather than a word, and is cut to one word without parts."""

_MEMO_WORDS: Final = 200_000  # some 40 MB a language at worst; code repeats itself, so few miss

_CJK: Final = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
# Combining marks that Python's \w leaves out, though they stand within words
_MARKS: Final = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065f\u0670\u0900-\u0963\u0971-\u0fff"
    "\u1000-\u109f\u1780-\u17d3"
)
_TOKEN: Final = re.compile(
    rf"[{_CJK}]+|[^\W\d{_CJK}][^\W{_CJK}]*(?:[{_MARKS}]+[^\W{_CJK}]*)*|\d+(?:[.,]\d+)*"
)
_MADE_OF_PARTS: Final = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]|_|[A-Za-z]\d|\d[A-Za-z]")
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_STARTS_CJK: Final = re.compile(rf"[{_CJK}]")


class _Analyser:
    """One language's rules, with the terms of every token met before."""

    def __init__(self, language: str) -> None:
        self._stop = STOP_WORDS.get(language, frozenset())
        self._stem = (
            Stemmer.Stemmer(language, 0).stemWord if language in Stemmer.algorithms() else str
        )
        self._known: dict[str, tuple[str, ...]] = {}

    def terms(self, text: str) -> list[str]:
        found: list[str] = []
        known = self._known
        for token in _TOKEN.findall(text):
            terms = known.get(token)
            if terms is None:
                terms = self._of_token(token)
                if len(token) <= LONGEST_WORD:
                    if len(known) >= _MEMO_WORDS:
                        known.clear()
                    known[token] = terms
            found += terms
        return found

    def _of_token(self, token: str) -> tuple[str, ...]:
        if _STARTS_CJK.match(token):
            return tuple(token[at : at + 2] for at in range(len(token) - 1)) or (token,)
        if len(token) > LONGEST_WORD:
            return (_without_accents(token[:LONGEST_WORD].lower()),)
        word = token if token.isascii() else unicodedata.normalize("NFC", token)
        whole = word.lower()
        if whole in self._stop or not word.strip("_"):
            return ()
        words = [whole]
        shape = word if word.isascii() else _shape(word)
        if _MADE_OF_PARTS.search(shape):
            parts = (word[part.start() : part.end()].lower() for part in _PART.finditer(shape))
            words += [part for part in parts if part not in self._stop]
        return tuple(_without_accents(self._stem(word)) for word in words)


def _shape(word: str) -> str:
    """Spell a word's letters by kind in ASCII, so that one rule parts words of every script."""
    return "".join(
        "A" if letter.isupper() else "0" if letter.isdecimal() else "_" if letter == "_" else "a"
        for letter in word
    )


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    plain = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


class _Analysers(threading.local):
    """Each thread's analysers by language: Snowball's stemmers are not to be shared."""

    def __init__(self) -> None:
        self.by_language: dict[str, _Analyser] = {}


_analysers: Final = _Analysers()


def analyse(text: str, *, language: str) -> list[str]:
    """Analyse a text into the words it is found by, in its order, repeats kept.

    Args:
        text: Prose or code; takes time linear in its length, whatever it holds.
        language: Snowball's name; any other, such as `other`, neither stops nor stems.

    Returns:
        Lower-case words without spaces; an identifier of parts is followed by them.
    """
    analyser = _analysers.by_language.get(language)
    if analyser is None:
        known = language if language in STOP_WORDS or language in Stemmer.algorithms() else ""
        analyser = _analysers.by_language.setdefault(known, _Analyser(known))
    return analyser.terms(text)


def pairs(words: Sequence[str]) -> list[str]:
    """Join each two adjacent words by a space: one fewer than the words, none of fewer than two."""
    return [f"{first} {second}" for first, second in pairwise(words)]
