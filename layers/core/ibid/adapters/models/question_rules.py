"""Classify a question by rules: what kind it is, and what to search for."""

import re
from collections.abc import Sequence
from typing import Final

from ibid.adapters.models.plain import plain_words
from ibid.adapters.models.question_kinds import asks_for_an_overview
from ibid.adapters.models.question_terms import (
    identifiers,
    question_terms,
    telling_words,
)
from ibid.domain.answers import HistoryTurn, Intent

LONGEST_QUERY: Final = 512
"""Characters of a search query."""

ALONE: Final = 2
"""Telling words from which a question without a pronoun stands alone."""

_GREETING: Final = re.compile(
    r"(?:hi|hello|hey|good (?:morning|afternoon|evening)|oi|ola|bom dia|boa (?:tarde|noite)|hola|"
    r"buen(?:os|as) (?:dias|tardes|noches))(?: (?:there|ibid|all|everyone|again|tudo bem|"
    r"que tal))*"
)
_THANKS: Final = re.compile(
    r"(?:(?:ok|okay|great|perfect|cool|nice|otimo|perfecto|genial) )*"
    r"(?:thanks|thank you|thx|cheers|obrigad[oa]|val(?:eu)|gracias|bye|goodbye|tchau|adios)"
    r"(?: (?:a lot|so much|very much|again|ibid|that helps|muito|demais|muchas))*"
    r"|muito obrigad[oa]|muchas gracias|(?:ok|okay|great|perfect|got it|i see|entendi|entendido)"
)
_WHO: Final = re.compile(
    r"(?:who|what) are you|are you (?:a|an) (?:language model|llm|ai|bot|human|robot)|"
    r"(?:quem|o que) (?:e|es) voce|quien eres|que eres"
)
_THE_ANSWER: Final = (
    r"(?:it|that|this|your (?:last |previous )?(?:answer|reply)|the (?:last |previous )?"
    r"(?:answer|reply)|isso|isto|(?:a |sua )?(?:ultima )?resposta|eso|esto|"
    r"(?:la |tu )?(?:ultima )?respuesta)"
)
_SHORTEN: Final = re.compile(
    rf"(?:(?:can|could) you |please |por favor )*(?:shorten|summari[sz]e|condense|simplify|"
    rf"encurt[ae]|resum[ae]|acort[ae]|sumariz[ae])(?: {_THE_ANSWER})?(?: please| por favor)?|"
    rf"(?:can|could) you make {_THE_ANSWER} (?:shorter|briefer)|"
    rf"(?:please )?make {_THE_ANSWER} (?:shorter|briefer)(?: please)?|shorter(?: please)?|tl ?dr|"
    r"in (?:short|fewer words|one sentence)|acortalo|resumelo|mais curto|mas corto"
)
_REPEAT: Final = re.compile(
    rf"(?:(?:can|could) you |please |por favor )*(?:repeat|say|rep[ie]t[aei])"
    rf"(?: {_THE_ANSWER})?(?: again| once more)?(?: please| por favor)?|"
    r"what (?:did|have) you (?:just )?(?:say|said|answer(?:ed)?)(?: again)?|"
    r"what was (?:your|the) (?:last |previous )?(?:answer|reply)|"
    r"(?:o )?que (?:voce )?(?:acabou de dizer|disse)(?: voce)?|que (?:acabas de decir|dijiste)"
)
_ASKED: Final = re.compile(
    r"what (?:did i (?:just )?ask(?: you)?|was my (?:last |previous )?question)|"
    r"(?:o )?que (?:eu )?perguntei|qual foi (?:a )?minha (?:ultima )?pergunta|"
    r"que (?:t[e] )?pregunte|cual fue mi (?:ultima )?pregunta"
)
_REWORD: Final = re.compile(
    rf"(?:(?:can|could) you |please |por favor )*(?:rephrase|reword|translate|rewrite|explain|"
    rf"traduz[ao]?|traduza|traduce|explique|explica|reformul[ae]|reescrev[ae]|reescrib[ae]) "
    rf"{_THE_ANSWER}(?: (?:again|more simply|in (?:other words|simpler terms|english|spanish|"
    r"portuguese)|para o \w+|al \w+|em \w+|en \w+))*(?: please| por favor)?"
)
_ELSEWHERE: Final = re.compile(
    r"^(?:(?:can|could) you |please |por favor )*(?:"
    r"(?:write|compose|tell|sing|escreva|escreve|escribe|conte|conta|cuenta)(?: me)? "
    r"(?:(?:a|an|some|um|uma|un|una) )?(?:short |funny |love )*(?:poem|haiku|sonnet|joke|song|"
    r"limerick|bedtime story|poema|piada|chiste|cancion|cancao|broma)\b"
    r"|(?:what(?: i)?s|how(?: i)?s|what will|how will) the weather (?:like|today|tomorrow|be|in)\b"
    r"|what(?: i)?s the weather(?: forecast)?$|(?:will|is) it (?:going to )?(?:rain|snow)(?:ing)?\b"
    r"|is it (?:sunny|cold|hot)(?: (?:today|tomorrow|outside|in)\b|$)"
    r"|(?:como|que tal|qual|cual) (?:e|es|esta|estara|sera|va(?:i| a) estar) (?:o |el )?"
    r"(?:tempo|tiempo|clima) (?:hoje|hoy|amanha|manana|em|en|no|na)\b"
    r"|que (?:tempo|tiempo|clima) (?:faz|fara|ha(?:ce|ra)|va(?:i| a) (?:fazer|hacer)|teremos|"
    r"tendremos)"
    r"(?: (?:hoje|hoy|amanha|manana|em|en|no|na)\b|$)"
    r"|va(?:i| a) (?:chover|llover|nevar)\b|(?:chovera|llovera|nevara)\b"
    r"|(?:esta) (?:chovendo|lloviendo|nevando)\b"
    r"|(?:qual e|cual es) (?:a|el) (?:previsao|pronostico) (?:do|del) (?:tempo|tiempo)\b"
    r"|(?:give me |share |what is |i need |(?:me )?da(?:me)? |quero |quiero |passe me |pasame )?"
    r"(?:a |the |uma |una )?(?:recipe|receita|receta) (?:for|de|para)\b"
    r"|how (?:do i|to) (?:cook|bake|fry|boil)\b"
    r"|como (?:se )?(?:(?:eu )?(?:posso |puedo )?(?:cozinh|cocin|asso|assar?|horne|frit|frei|freir|"
    r"ferv|herv)\w*)\b"
    r"|what(?: i)?s the capital (?:city )?of\b"
    r"|(?:qual e|cual es) (?:a|la) (?:cidade |ciudad )?capital d(?:[aeo]|el)\b"
    r"|who (?:won|will win) the (?:world cup|super bowl|election|match|game)\b"
    r"|(?:quem|quien) (?:ganhou|gano|venceu|va(?:i| a) (?:ganhar|vencer|ganar)|ganara) "
    r"(?:a |o |as |la |el |las )?(?:copa|mundial|liga|eleicao|eleicoes|eleccion|elecciones|"
    r"super bowl|jogo|partida|partido)\b"
    r"|what(?: i)?s my horoscope\b|(?:qual e|cual es) (?:o )?m(?:eu|i) horoscopo\b"
    r"|should i (?:buy|sell) (?:stocks|bitcoin|shares)\b"
    r"|(?:devo|deveria|debo|deberia) (?:compr|vend)[ae]r (?:acoes|acciones|bitcoin)\b"
    r")"
)
_POINTS_BACK: Final = re.compile(
    r"\b(?:it|its|they|them|their|that|those|these|this|he|she|the same|isso|isto|el[ea]s?|"
    r"dele|dela|nele|nela|eso|esto|ese|esa|ellos|ellas|el mismo)\b"
    r"|^(?:and|but|so|also|what about|how about|why|e|mas|y|pero|por que)\b",
)
_EXTRA_TERMS: Final = 6
_OVERVIEW_QUERY: Final = "`README.md`"


def intent_of(question: str, history: Sequence[HistoryTurn]) -> Intent:
    """Tell what kind of question it is; in doubt, one about the code."""
    plain = plain_words(question)
    if identifiers(question):
        return Intent.CODEBASE_QUESTION
    about_me = (_GREETING, _THANKS, _WHO)
    about_history = (_SHORTEN, _REPEAT, _ASKED, _REWORD) if history else ()
    if any(pattern.fullmatch(plain) for pattern in (*about_me, *about_history)):
        return Intent.CONVERSATIONAL
    return Intent.OUT_OF_SCOPE if _ELSEWHERE.match(plain) else Intent.CODEBASE_QUESTION


def search_query(question: str, history: Sequence[HistoryTurn]) -> str:
    """Make the question stand alone: a follow-up gets the telling words of what it follows.

    Returns:
        The question as typed with its white space folded, 1 to 512 characters; one about the
        whole project asks for what describes it.
    """
    query = " ".join(question.split())
    if asks_for_an_overview(question):
        return _OVERVIEW_QUERY
    asked = question_terms(question)
    bare = plain_words(question)
    if (
        history
        and not asked.identifiers
        and (_POINTS_BACK.search(bare) or len(asked.terms) < ALONE)
    ):
        query = " ".join([query, *_subject(history, known=query)])
    if len(query) <= LONGEST_QUERY:
        return query
    return _within(dict.fromkeys([*asked.identifiers, *query.split()]))


def what_is_asked_of_history(question: str) -> str:
    """Name what a conversational question wants.

    Returns:
        `greeting`, `thanks`, `who`, `shorten`, `repeat`, `asked`, or `other`.
    """
    plain = plain_words(question)
    for wish, pattern in (
        ("greeting", _GREETING),
        ("thanks", _THANKS),
        ("who", _WHO),
        ("shorten", _SHORTEN),
        ("repeat", _REPEAT),
        ("asked", _ASKED),
    ):
        if pattern.fullmatch(plain):
            return wish
    return "other"


def _subject(history: Sequence[HistoryTurn], *, known: str) -> list[str]:
    """The telling words of the newest earlier question that stands alone."""
    words: list[str] = []
    for turn in reversed(history):
        words = identifiers(turn.question) or telling_words(turn.question)
        if words and not (
            not identifiers(turn.question) and _POINTS_BACK.search(plain_words(turn.question))
        ):
            break
    said = plain_words(known).split()
    return [word for word in words if plain_words(word) not in said][:_EXTRA_TERMS]


def _within(words: Sequence[str] | dict[str, None]) -> str:
    """Join words up to the longest query."""
    query = ""
    for word in words:
        longer = f"{query} {word}".strip()
        if len(longer) <= LONGEST_QUERY:
            query = longer
    return query or next(iter(words))[:LONGEST_QUERY]
