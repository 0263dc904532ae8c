"""Tell by its words what kind of answer a question wants: a place, uses, steps, an overview."""

import re
from typing import Final

from ibid.adapters.models.plain import plain_words

_PLACE: Final = re.compile(r"\b(?:where|onde|d[oó]nde)\b", re.IGNORECASE)
_CODE: Final = re.compile(
    r"\b(?:where|onde|d[oó]nde|which file|implement|define|defined|defini\w+)", re.IGNORECASE
)
_USES: Final = re.compile(
    r"\b(?:us(?:e|ed|es|age)|call|invo[ck]|import|refer|test|rais|handl|usad|cham|llam)",
    re.IGNORECASE,
)
_WHY: Final = re.compile(r"\b(?:why|what is|purpose|por ?qu[eé]|o que é|qué es)\b", re.IGNORECASE)
_HOW_TO: Final = re.compile(
    r"\bhow (?:(?:do|can|could|should|would|might|must) (?:i|we|you|one|people|users?)|to)\b"
    r"|\b(?:is there (?:a|any)|what is the (?:best |right )?) ?way to\b"
    r"|\bwhat happens (?:when|if)\b"
    r"|\bcomo (?:(?:eu |nos |se )?(?:posso|pode|podemos|puedo|puede|devo|debo|faco|"
    r"fazemos|hago|hacemos|uso|usamos|fazer|hacer|usar|\w{3,}[aei]r)\b)"
    r"|\b(?:o )?que (?:acontece|pasa|sucede|ocurre) (?:quando|cuando|se|si)\b"
)
_PROJECT: Final = (
    r"(?:(?:this|the|este|esse|esta|o|el|la|a) )?"
    r"(?:project|repo|repository|codebase|code base|package|library|tool|app|application|"
    r"projeto|repositorio|pacote|biblioteca|ferramenta|proyecto|paquete|libreria|herramienta)"
)
_OVERVIEW: Final = re.compile(
    rf"(?:so |please )?(?:what (?:does|do) {_PROJECT} do|what(?: i)?s {_PROJECT}(?: (?:about|for|"
    rf"all about|used for|good for))?|what(?: i)?s the (?:purpose|point|goal|aim) of {_PROJECT}|"
    rf"(?:can you |could you )?(?:describe|explain|summari[sz]e|introduce) {_PROJECT}|"
    rf"(?:give me |i want )?an? (?:overview|summary|introduction) (?:of|to) {_PROJECT}|"
    rf"tell me (?:more )?about {_PROJECT}|what is this|"
    rf"(?:o )?que (?:faz|ha(?:ce|ra)|es?) {_PROJECT}|"
    rf"(?:para que|pra que) (?:serve|sirve) {_PROJECT}|"
    rf"(?:do|sobre o|de) que (?:se )?trata {_PROJECT}|"
    rf"(?:qual e|cual es) (?:o|el) (?:objetivo|proposito|fim) (?:do|del|deste|de este) "
    rf"(?:projeto|proyecto|repositorio)|(?:descreva|describe|explique|explica|resuma|resume) "
    rf"{_PROJECT})(?: please| por favor)?"
)


def asks_for_a_place(question: str) -> bool:
    """Whether it asks where something stands."""
    return bool(_PLACE.search(question))


def asks_for_code(question: str) -> bool:
    """Whether code answers it rather than words about it."""
    return bool(_CODE.search(question))


def asks_for_uses(question: str) -> bool:
    """Whether it asks where or how a thing is used, not what it is."""
    return bool(_USES.search(question)) and not asks_how_to(question)


def asks_why(question: str) -> bool:
    """Whether it asks for a reason or a meaning."""
    return bool(_WHY.search(question))


def asks_how_to(question: str) -> bool:
    """Whether it asks for steps to take, or what happens in a case: what documents tell."""
    return bool(_HOW_TO.search(plain_words(question)))


def asks_for_an_overview(question: str) -> bool:
    """Whether it asks what the whole project is or does, and nothing more."""
    return bool(_OVERVIEW.fullmatch(plain_words(question)))
