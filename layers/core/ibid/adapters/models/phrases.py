"""The few sentences that the extractive answerer says itself, in each reply language."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """One language's sentences; `{name}`, `{place}` and `{terms}` stand for code spans."""

    lead: str
    defined: str
    begins: str
    missing: str
    gap: str
    greeting: str
    thanks: str
    who: str
    again: str
    short: str
    asked: str
    nothing_said: str
    only_quotes: str


_ENGLISH: Final = Phrases(
    lead="Quoted from the project by rules, not written by a language model:",
    defined="{name} is defined at {place}",
    begins="{name} begins at {place}",
    missing="The excerpts below do not mention {terms}.",
    gap="These excerpts may not answer the whole question.",
    greeting="Hello! Ask about this project, and I will quote the code and documents that answer.",
    thanks="You are welcome. Ask me anything else about this project.",
    who=(
        "I am Ibid's extractive answerer: I quote the project's own code and documents by rules. "
        "I am no language model, so I do not write text of my own."
    ),
    again="My last answer was:",
    short="In short:",
    asked="Your last question was:",
    nothing_said="I have not said anything in this conversation yet.",
    only_quotes=(
        "I can only quote the project, repeat my last answer or shorten it; I am no language "
        "model, so I can't rewrite or discuss it. Ask about the code itself and I will look it up."
    ),
)
_PORTUGUESE: Final = Phrases(
    lead="Trechos do projeto citados por regras, não escritos por um modelo de linguagem:",
    defined="{name} é definido em {place}",
    begins="{name} começa em {place}",
    missing="Os trechos abaixo não mencionam {terms}.",
    gap="Estes trechos talvez não respondam à pergunta inteira.",
    greeting=(
        "Olá! Pergunte sobre este projeto, e eu cito o código e os documentos que respondem."
    ),
    thanks="De nada. Pergunte o que mais quiser sobre este projeto.",
    who=(
        "Sou o respondedor extrativo do Ibid: cito por regras o código e os documentos do "
        "projeto. Não sou um modelo de linguagem, portanto não escrevo texto próprio."
    ),
    again="Minha última resposta foi:",
    short="Em resumo:",
    asked="Sua última pergunta foi:",
    nothing_said="Ainda não disse nada nesta conversa.",
    only_quotes=(
        "Só posso citar o projeto, repetir minha última resposta ou encurtá-la; não sou um modelo "
        "de linguagem e não posso reescrevê-la nem discuti-la. Pergunte sobre o código em si."
    ),
)
_SPANISH: Final = Phrases(
    lead="Fragmentos del proyecto citados por reglas, no escritos por un modelo de lenguaje:",
    defined="{name} se define en {place}",
    begins="{name} empieza en {place}",
    missing="Los fragmentos de abajo no mencionan {terms}.",
    gap="Quizás estos fragmentos no respondan a toda la pregunta.",
    greeting=(
        "¡Hola! Pregunta sobre este proyecto y citaré el código y los documentos que responden."
    ),
    thanks="De nada. Pregunta lo que quieras sobre este proyecto.",
    who=(
        "Soy el respondedor extractivo de Ibid: cito por reglas el código y los documentos del "
        "proyecto. No soy un modelo de lenguaje, así que no escribo texto propio."
    ),
    again="Mi última respuesta fue:",
    short="En resumen:",
    asked="Tu última pregunta fue:",
    nothing_said="Todavía no he dicho nada en esta conversación.",
    only_quotes=(
        "Solo puedo citar el proyecto, repetir mi última respuesta o acortarla; no soy un modelo "
        "de lenguaje y no puedo reescribirla ni comentarla. Pregunta sobre el código mismo."
    ),
)
_BY_LANGUAGE: Final[Mapping[str, Phrases]] = {
    "en": _ENGLISH,
    "pt-BR": _PORTUGUESE,
    "es-419": _SPANISH,
}


def phrases(reply_language: str) -> Phrases:
    """Return a reply language's sentences, English for one that is not known."""
    return _BY_LANGUAGE.get(reply_language, _ENGLISH)


LEADS: Final = frozenset(
    sentence for known in _BY_LANGUAGE.values() for sentence in (known.lead, known.short)
)
"""First blocks of earlier answers that are no part of what was quoted."""
