"""Which natural language a text is in, told by its function words."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

OTHER: Final = "other"
"""A language of no list here: its words are neither stopped nor stemmed."""

LEAD: Final = 2
"""Function words by which another language must lead the main one."""

_LAST_LATIN: Final = "\u024f"  # the end of Latin Extended-B
_LETTERS: Final = re.compile(r"[^\W\d_]+")

# The commonest words that are rare in the other five languages, or that tell by their number.
_LISTS: Final[Mapping[str, str]] = {
    "english": """
        the of and to in is that for it was with as on be by this are from at or an what which how
        does who when where why""",
    "spanish": """
        el la los las de del que en y un una por con para se su es al lo como qué cuál cómo quién
        fue son más sus cuándo dónde está ha""",
    "portuguese": """
        o os as de do da dos das que em e um uma por com para se seu é ao no na como qual quem foi
        são mais não onde quando""",
    "french": """
        le la les de des du que qui en et un une par avec pour se son est au aux dans sur ce quel
        comment quelle où pas plus sont""",
    "german": """
        der die das den dem des und in ist ein eine zu mit von für auf im nicht wie was wer wo sich
        auch werden sind wurde bei""",
    "italian": """
        il lo la i gli le di del della che in e un una per con si suo è al come quale chi sono più
        non dove quando nel alla""",
}
FUNCTION_WORDS: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(words.split()) for language, words in _LISTS.items()
}
_SPOKEN_IN: Final[Mapping[str, tuple[str, ...]]] = {
    word: tuple(language for language, words in FUNCTION_WORDS.items() if word in words)
    for word in frozenset().union(*FUNCTION_WORDS.values())
}


def detect(text: str, *, main: str = "english") -> str:
    """Tell a text's language: the main one unless another leads it clearly.

    Args:
        text: Of any length; an identifier's parts count as words of their own.
        main: The language to be expected, one of Snowball's names or `other`.

    Returns:
        One of the six languages listed, `main`, or `other` where most words are in another
        script than the Latin one. A text without words is in the main language.
    """
    words = _LETTERS.findall(text.lower())
    if not words:
        return main
    if 2 * sum(word[0] > _LAST_LATIN for word in words) > len(words):
        return OTHER
    counts = Counter(language for word in words for language in _SPOKEN_IN.get(word, ()))
    if not counts:
        return main
    best = max(FUNCTION_WORDS, key=lambda language: counts[language])
    return best if counts[best] >= counts[main] + LEAD else main


def most_spoken(texts: Iterable[str]) -> str:
    """Tell the main language of many texts: what most are in, English if there are none."""
    counts = Counter(detect(text) for text in texts)
    return max(
        counts,
        key=lambda language: (counts[language], language == "english", language),
        default="english",
    )
