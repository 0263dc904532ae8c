"""When a question points at something that nobody named: rules of the router that is unsure.

A question points at nothing if no earlier turn is there to point at, and all it says is a pronoun
(`how does it work?`) or `this` or `that` of a common noun (`what does this function return?`).
What is there without being named is no riddle: this project, this repository, this code base.
"""

import re
from collections.abc import Sequence
from typing import Final

from ibid.domain.answers import HistoryTurn
from ibid.graphs.answer.ask_state import Ambiguity, Doubt
from ibid.graphs.answer.naming import read_names

_POINTS: Final = re.compile(
    r"\b(?P<phrase>(?:this|that|these|those|the same|este|esta|esse|essa|estes|estas|esses|essas|"
    r"aquele|aquela|ese|esa|esos|esas|aquel|aquella)\s+"
    r"(?P<noun>function|method|class|module|file|variable|parameter|argument|error|exception|"
    r"line|test|option|setting|field|value|type|constant|decorator|loop|snippet|part|one|"
    r"função|método|classe|módulo|arquivo|variável|parâmetro|erro|linha|teste|opção|"
    r"función|clase|archivo|fichero|línea|prueba|opción)s?)\b",
    re.IGNORECASE,
)
_PRONOUN: Final = re.compile(
    r"\b(?P<phrase>it|they|them|this|that|these|those|he|she|isso|isto|ele|ela|eles|elas|dele|"
    r"dela|nele|nela|eso|esto|ello|ellos|ellas)\b",
    re.IGNORECASE,
)


def find_dangling(question: str, history: Sequence[HistoryTurn]) -> Ambiguity | None:
    """Find what a question points at without any turn before it; None if it stands alone."""
    if history:
        return None
    named = read_names(question)
    if named.names:
        return None
    found = _POINTS.search(question)
    if found is None and not named.words:
        found = _PRONOUN.search(question)
    if found is None:
        return None
    return Ambiguity(doubt=Doubt.REFERENCE, phrase=found["phrase"])
