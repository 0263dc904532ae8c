"""What a path says before anything is read: source answers most questions about code."""

import re
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
        self._kinds = [(of_path, asked.search(question) is not None) for of_path, asked in _KINDS]

    def weight(self, path: str) -> float:
        """Weigh a path: less than 1 if it is beside the source and of no kind asked for.

        A path of several kinds (a document within the tests) is in full if one was asked for.
        """
        asked = [is_asked for of_path, is_asked in self._kinds if of_path.search(path)]
        return 1.0 if not asked or any(asked) else WEIGHT_BESIDE_SOURCE
