"""The absolute floor: what is too far from the question to be shown, however it ranks.

A candidate is above it if
- its cosine with the question is at least `MIN_COSINE`; or
- it holds an identifier that the question spells out; or
- the question's words that it holds are rare enough: together they weigh `MIN_RARE_WORDS` times as
  much as a word that one chunk alone holds, or `MIN_SHARE` of all the question's words.

An identifier is a word of three letters or more whose spelling says so: with an underscore or a
digit after a letter, with a capital inside, part of a dotted name, followed by a bracket, or in
back quotes. A word weighs its inverse document frequency (Lucene's); one that no chunk holds counts
as if one did, and function words of the languages that are told apart here weigh nothing.

Of a question in another language than the index's, words that no chunk holds count for nothing:
they are how one says it there. What remains may be chance (`capital` is a word in several
languages), so it must be two words, a name (a capital inside the sentence) or a word that
`MIN_TOPIC` of the chunks hold: one that the corpus is about.

Measured without vectors, on questions about the corpus and on small talk (clinc150's out of scope):
above the floor are 96 and 7 % for flask, 98 and 13 % for requests, 94 and 13 % for xquad-en, 93 and
0 % for xquad-es. In Spanish and Portuguese over English code (our own questions, 30 of each for
flask and requests, and 20 of each of small talk): above the floor are 83 and 3 %, before the rule
for foreign questions 17 and 0 %.
"""

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from ibid.domain.analysis import analyse
from ibid.domain.chunks_header import bm25_header
from ibid.domain.languages import FUNCTION_WORDS
from ibid.domain.passages import Chunk
from ibid.domain.stop_words import STOP_WORDS
from ibid.ports.index import Candidate, Candidates
from ibid.retrieval.question import Question

MIN_COSINE: Final = 0.25
MIN_RARE_WORDS: Final = 2.0
MIN_SHARE: Final = 0.6
MIN_TOPIC: Final = 0.02

_BY_CHANCE: Final = 2  # words, or chunks of one: fewer tell nothing
_SHORTEST_IDENTIFIER: Final = 3
_NAME: Final = re.compile(r"(?<!\w)\w++(?:(?:\.|::|->|\\)\w++)*+\(?+")
_QUOTED: Final = re.compile(r"`([^`\n]{1,200})`")
_WORD: Final = re.compile(r"\w+")
_CAPITALISED: Final = re.compile(r"(?<=[^\W_][ ,(])\(?([A-Z][A-Za-z]++)")
_OF_PARTS: Final = re.compile(r"\w_\w|[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z]\d")


class Floor:
    """One question's floor over one search's candidates."""

    def __init__(self, question: Question, found: Candidates) -> None:
        self._language = question.main_language
        known = found.document_frequency
        self._identifiers = frozenset(
            word for word in identifiers(question) if known.get(word, 0) > 0
        )
        words = set(question.words) - _common_words(self._language)
        self._foreign = is_foreign(question)
        if self._foreign:
            words = {word for word in words if known.get(word, 0) > 0}
        self._weights = {word: _weight(known.get(word, 0), found.chunk_count) for word in words}
        least = max(_BY_CHANCE, MIN_TOPIC * found.chunk_count)
        self._telling = names(question) | {word for word in words if known.get(word, 0) >= least}
        self._enough = min(
            MIN_RARE_WORDS * _weight(1, found.chunk_count),
            MIN_SHARE * math.fsum(self._weights.values()),
        )

    def holds(self, candidate: Candidate) -> bool:
        """Tell whether the candidate is near enough to be shown."""
        if candidate.cosine >= MIN_COSINE:
            return True
        if candidate.bm25 <= 0 or not (self._identifiers or self._weights):
            return False
        words = self._words_of(candidate.chunk)
        if not self._identifiers.isdisjoint(words):
            return True
        held = self._weights.keys() & words
        if self._foreign and len(held) < _BY_CHANCE and held.isdisjoint(self._telling):
            return False
        weight = math.fsum(self._weights[word] for word in held)
        return weight > 0 and weight >= self._enough

    def _words_of(self, chunk: Chunk) -> set[str]:
        head = bm25_header(chunk.file_path, chunk.symbol)
        return {
            *analyse(head, language=self._language),
            *analyse(chunk.content, language=self._language),
        }


def identifiers(question: Question) -> Sequence[str]:
    """List the whole identifiers that a question spells out, analysed as the index has them."""
    quoted = {word for text in _QUOTED.findall(question.text) for word in _WORD.findall(text)}
    spelt: dict[str, None] = {}
    for name in _NAME.findall(question.text):
        words = _WORD.findall(name)
        as_code = len(words) > 1 or name.endswith("(")
        spelt |= dict.fromkeys(
            word for word in words if as_code or word in quoted or _OF_PARTS.search(word)
        )
    analysed = (
        analyse(word, language=question.main_language)[:1]
        for word in spelt
        if len(word) >= _SHORTEST_IDENTIFIER
    )
    return list(dict.fromkeys(word for words in analysed for word in words))


def is_foreign(question: Question) -> bool:
    """Tell whether a question is in another language than the index's.

    One too short to be sure is, if it has function words of others and none of the main one.
    """
    if question.language != question.main_language:
        return True
    words = set(_WORD.findall(question.text.lower()))
    own = FUNCTION_WORDS.get(question.main_language, frozenset())
    others = frozenset().union(*FUNCTION_WORDS.values())
    return words.isdisjoint(own) and not words.isdisjoint(others)


def names(question: Question) -> frozenset[str]:
    """Find the words with a capital inside a sentence, analysed as the index has them."""
    spelt = " ".join(_CAPITALISED.findall(question.text))
    return frozenset(analyse(spelt, language=question.main_language))


def _weight(document_frequency: int, chunk_count: int) -> float:
    held_by = max(1, document_frequency)
    return math.log(1 + max(0.0, chunk_count - held_by + 0.5) / (held_by + 0.5))


@lru_cache
def _common_words(language: str) -> frozenset[str]:
    """Analyse every function word, so that a question's grammar is not mistaken for its matter."""
    words = frozenset().union(*FUNCTION_WORDS.values(), *STOP_WORDS.values())
    return frozenset(analyse(" ".join(sorted(words)), language=language))
