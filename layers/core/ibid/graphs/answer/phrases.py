"""The noun phrases of an English question that point at one certain thing."""

import re
from collections.abc import Iterator
from typing import Final

_PHRASE: Final = re.compile(
    r"\b(the|this|these)\s+((?:[A-Za-z][\w-]*(?:['\u2019]s)?\s*){1,4})", re.IGNORECASE
)
_POSSESSIVE: Final = re.compile(r"['\u2019]s$")
_ENDS: Final = frozenset(
    re.findall(
        r"\w+",
        """
        is are was were be been do does did has have had can could should would will may might must
        of in on at to for from with by and or if when where who whom which that as than then about
        into over under after before between because so but not it its they them there here work
        works
        """,
    )
)


def noun_phrases(question: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each phrase behind `the`, `this` or `these`: that word, lower-case, and 1 to 4 more.

    A phrase ends before the next word of grammar; a verb behind it may still be taken for a part.
    """
    for match in _PHRASE.finditer(question):
        words = []
        for word in match[2].split():
            if word.lower() in _ENDS:
                break
            words.append(_POSSESSIVE.sub("", word))
        if words:
            yield match[1].lower(), words
