"""A question as the index is asked it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ibid.domain.analysis import analyse, pairs
from ibid.domain.languages import detect

PAIR_WEIGHT: Final = 0.15
"""Weight of two adjacent words beside one word's 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question's words and language.

    Attributes:
        text: As it was asked.
        main_language: The generation's: question and chunks must be analysed alike, so a question
            in another language is analysed in this one as well (measured: better than in its own).
        language: The question's own.
        words: Analysed, in order, repeats kept; empty if it holds stop words only.
    """

    text: str
    main_language: str
    language: str
    words: Sequence[str]

    def terms(self) -> Mapping[str, float]:
        """Weigh every word and every adjacent pair by how often it stands in the question."""
        weights: Counter[str] = Counter(self.words)
        return {
            **weights,
            **{pair: PAIR_WEIGHT * times for pair, times in Counter(pairs(self.words)).items()},
        }


def read_question(text: str, *, main_language: str) -> Question:
    """Analyse a question as the chunks of a generation of this main language were."""
    return Question(
        text=text,
        main_language=main_language,
        language=detect(text, main=main_language),
        words=analyse(text, language=main_language),
    )
