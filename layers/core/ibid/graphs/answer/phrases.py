"""The words of a question that point at one certain thing."""

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

POINTER_ELSEWHERE: Final = re.compile(
    r"\b(?P<phrase>(?:est[ae]s?|ess[ae]s?|es[ae]|es[ao]s)\s+(?:função|método|classe|módulo|arquivo|"
    r"variável|parâmetro|erro|linha|teste|opção|función|clase|archivo|fichero|línea|prueba|opción|"
    r"variable|parámetro|error)s?)\b",
    re.IGNORECASE,
)
"""`this function`, in Portuguese and Spanish."""
PRONOUN: Final = re.compile(
    r"\b(?P<phrase>it|they|them|he|she|isso|isto|ele|ela|eles|elas|dele|dela|nele|nela|eso|esto|"
    r"ello|ellos|ellas|(?:this|that|these|those)(?=\s+(?:is|are|was|were|does?|did|works?|means?)\b"
    r"|\W*$))\b",
    re.IGNORECASE,
)
"""A word that points, alone, in English, Portuguese and Spanish."""


def noun_phrases(question: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each English phrase behind `the`, `this` or `these`: that word, and 1 to 4 more.

    The first word is lower-case, the others are as typed, without a possessive's end. A phrase
    ends before the next word of grammar; a verb behind it may still be taken for a part.
    """
    for match in _PHRASE.finditer(question):
        words = []
        for word in match[2].split():
            if word.lower() in _ENDS:
                break
            words.append(_POSSESSIVE.sub("", word))
        if words:
            yield match[1].lower(), words
