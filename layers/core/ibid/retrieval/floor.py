"""The absolute floor: what is too far from the question to be shown, however it ranks.

A candidate is above it if
- its cosine with the question is at least `MIN_COSINE`; or
- it holds an identifier that the question spells out; or
- it holds at least half of the question's rare words, those that no chunk holds included, and at
  least one.

An identifier is a word of three letters or more whose spelling says so: with an underscore or a
digit after a letter, with a capital inside, part of a dotted name, followed by a bracket, or in
back quotes. A word is rare if at most one chunk in a hundred holds it (in small generations: at
most two chunks), and if it is a function word of none of the languages that are told apart here.
"""

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
RARE_SHARE: Final = 0.01
RARE_CHUNKS: Final = 2
MIN_RARE_SHARE: Final = 0.5

_SHORTEST_IDENTIFIER: Final = 3
_NAME: Final = re.compile(r"(?<!\w)\w++(?:(?:\.|::|->|\\)\w++)*+\(?+")
_QUOTED: Final = re.compile(r"`([^`\n]{1,200})`")
_WORD: Final = re.compile(r"\w+")
_OF_PARTS: Final = re.compile(r"\w_\w|[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z]\d")


class Floor:
    """One question's floor over one search's candidates."""

    def __init__(self, question: Question, found: Candidates) -> None:
        self._language = question.main_language
        known = found.document_frequency
        self._identifiers = frozenset(
            word for word in identifiers(question) if known.get(word, 0) > 0
        )
        most = max(RARE_CHUNKS, RARE_SHARE * found.chunk_count)
        common = _common_words(self._language)
        self._rare = frozenset(
            word for word in question.words if known.get(word, 0) <= most and word not in common
        )

    def holds(self, candidate: Candidate) -> bool:
        """Tell whether the candidate is near enough to be shown."""
        if candidate.cosine >= MIN_COSINE:
            return True
        if candidate.bm25 <= 0 or not (self._identifiers or self._rare):
            return False
        words = self._words_of(candidate.chunk)
        if not self._identifiers.isdisjoint(words):
            return True
        held = len(self._rare & words)
        return held > 0 and held >= MIN_RARE_SHARE * len(self._rare)

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


@lru_cache
def _common_words(language: str) -> frozenset[str]:
    """Analyse every function word, so that a question's grammar is not mistaken for its matter."""
    words = frozenset().union(*FUNCTION_WORDS.values(), *STOP_WORDS.values())
    return frozenset(analyse(" ".join(sorted(words)), language=language))
