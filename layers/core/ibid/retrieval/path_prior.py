"""What a path says before anything is read: source answers most questions about code."""

import re
from functools import lru_cache
from typing import Final

WEIGHT_BESIDE_SOURCE: Final = 0.8
"""Weight of a test, example, document, change log or configuration that was not asked for."""

# Each kind: the paths that are of it, the questions that ask for it (English, Spanish, Portuguese).
_KINDS: Final = tuple(
    (re.compile(of_path, re.IGNORECASE), re.compile(asked_for, re.IGNORECASE))
    for of_path, asked_for in (
        (
            (
                r"(^|/)(tests?|testing|__tests__|specs?|fixtures?)/|(^|/)(test_|conftest\.py$)"
                r"|[_.](test|spec)\.|tests?\.(java|kt|cs)$"
            ),
            r"\btests?\b|\btest_|\bfixtures?\b|\bpruebas?\b|\btestes?\b",
        ),
        (
            r"(^|/)(examples?|samples?|demos?|tutorials?)/",
            r"\bexamples?\b|\btutorial|\bsample code\b|\bejemplos?\b|\bexemplos?\b",
        ),
        (
            (
                r"(^|/)docs?/|(^|/)(authors|readme|licen[cs]e|contributing)\b[^/]*$"
                r"|\.(rst|md|mdx|txt|adoc)$"
            ),
            r"\bdocs?\b|\bdocument(s|ation|ed)?\b|\breadme\b|\btutorial|\bdocumenta[cç]",
        ),
        (
            r"(^|/)(changes|changelog|history|news|releases?)(\.[a-z]+)?$",
            r"\bchange ?logs?\b|\brelease notes?\b",
        ),
        (
            r"\.(toml|ini|cfg|ya?ml|json|properties)$",
            r"\bconfig(uration)? files?\b|\b(pyproject|package\.json|tox\.ini|setup\.cfg)\b",
        ),
    )
)


class PathPrior:
    """One question's weights of paths."""

    def __init__(self, question: str) -> None:
        self._asked = frozenset(
            kind for kind, (_, asked_for) in enumerate(_KINDS) if asked_for.search(question)
        )

    def weight(self, path: str) -> float:
        """Weigh a path: less than 1 if it is beside the source and of no kind asked for.

        A path of several kinds (a document within the tests) is in full if one was asked for.
        """
        kinds = _kinds_of(path)
        return WEIGHT_BESIDE_SOURCE if kinds and kinds.isdisjoint(self._asked) else 1.0


@lru_cache(maxsize=50_000)
def _kinds_of(path: str) -> frozenset[int]:
    return frozenset(kind for kind, (of_path, _) in enumerate(_KINDS) if of_path.search(path))
