"""The texts that no model writes, in every reply language."""

from collections.abc import Mapping
from enum import StrEnum


class FixedText(StrEnum):
    """What a fixed text says."""

    NO_CONTEXT = "no_context"
    REFUSE = "refuse"
    WHICH_SYMBOL = "which_symbol"
    WHICH_DOCUMENT = "which_document"
    WHICH_TERM = "which_term"
    WHICH_REFERENCE = "which_reference"
    WHICH_INTENT = "which_intent"
    ASK_AGAIN = "ask_again"
    TOOK_BEST = "took_best"
    TOOK_ALL = "took_all"
    TOOK_WORDS = "took_words"
    KEPT_EARLIER = "kept_earlier"
    ABOUT_FILE = "about_file"
    ABOUT_PROJECT = "about_project"


TEXTS: Mapping[FixedText, Mapping[str, str]] = {
    FixedText.NO_CONTEXT: {
        "en": (
            "I found nothing in this project that answers the question. Try other words, the exact "
            "name of a function, class or file, or a wider path filter."
        ),
        "pt-BR": (
            "Não encontrei nada neste projeto que responda à pergunta. Tente outras palavras, o "
            "nome exato de uma função, classe ou arquivo, ou um filtro de caminho mais amplo."
        ),
        "es-419": (
            "No encontré nada en este proyecto que responda a la pregunta. Prueba con otras "
            "palabras, con el nombre exacto de una función, clase o archivo, o con un filtro de "
            "ruta más amplio."
        ),
    },
    FixedText.REFUSE: {
        "en": (
            "I only answer questions about this project's code and documents. Ask me how something "
            "in it works, where it is, or why it is so."
        ),
        "pt-BR": (
            "Só respondo a perguntas sobre o código e os documentos deste projeto. Pergunte como "
            "algo dele funciona, onde está ou por que é assim."
        ),
        "es-419": (
            "Solo respondo preguntas sobre el código y los documentos de este proyecto. Pregúntame "
            "cómo funciona algo de él, dónde está o por qué es así."
        ),
    },
    FixedText.WHICH_SYMBOL: {
        "en": "More than one place defines “{phrase}”. Which one do you mean?",
        "pt-BR": "Mais de um lugar define “{phrase}”. A qual deles você se refere?",
        "es-419": "Más de un lugar define “{phrase}”. ¿A cuál te refieres?",
    },
    FixedText.WHICH_DOCUMENT: {
        "en": "More than one file is called “{phrase}”. Which one do you mean?",
        "pt-BR": "Mais de um arquivo se chama “{phrase}”. A qual deles você se refere?",
        "es-419": "Más de un archivo se llama “{phrase}”. ¿A cuál te refieres?",
    },
    FixedText.WHICH_TERM: {
        "en": "“{phrase}” can mean more than one thing here. Which one do you mean?",
        "pt-BR": "“{phrase}” pode ser mais de uma coisa aqui. A qual você se refere?",
        "es-419": "“{phrase}” puede ser más de una cosa aquí. ¿A cuál te refieres?",
    },
    FixedText.WHICH_REFERENCE: {
        "en": "What do you mean by “{phrase}”? Name the file, the function or the topic.",
        "pt-BR": "O que você quer dizer com “{phrase}”? Diga o arquivo, a função ou o assunto.",
        "es-419": "¿A qué te refieres con “{phrase}”? Di el archivo, la función o el tema.",
    },
    FixedText.WHICH_INTENT: {
        "en": "The question can be read in more than one way. What exactly do you want to know?",
        "pt-BR": "A pergunta pode ser lida de mais de um jeito. O que exatamente você quer saber?",
        "es-419": (
            "La pregunta puede leerse de más de una manera. ¿Qué quieres saber exactamente?"
        ),
    },
    FixedText.ASK_AGAIN: {
        "en": "Please ask again, with the full path or the full name of what you mean.",
        "pt-BR": (
            "Por favor, pergunte de novo, com o caminho ou o nome completo do que você quer dizer."
        ),
        "es-419": (
            "Por favor, pregunta de nuevo, con la ruta o el nombre completo de aquello a lo que te "
            "refieres."
        ),
    },
    FixedText.TOOK_BEST: {
        "en": "The reply chose none of the options, so this is about {option}.",
        "pt-BR": "A resposta não escolheu nenhuma das opções, então isto é sobre {option}.",
        "es-419": "La respuesta no eligió ninguna de las opciones, así que esto trata de {option}.",
    },
    FixedText.TOOK_ALL: {
        "en": "This is about all of the options.",
        "pt-BR": "Isto é sobre todas as opções.",
        "es-419": "Esto trata de todas las opciones.",
    },
    FixedText.TOOK_WORDS: {
        "en": "The reply chose none of the options, so its words were added to the question.",
        "pt-BR": (
            "A resposta não escolheu nenhuma das opções, então suas palavras foram somadas à "
            "pergunta."
        ),
        "es-419": (
            "La respuesta no eligió ninguna de las opciones, así que sus palabras se sumaron a la "
            "pregunta."
        ),
    },
    FixedText.KEPT_EARLIER: {
        "en": "Nothing was found for the reply, so this stands on what was found before.",
        "pt-BR": "Nada foi encontrado para a resposta, então isto se baseia no que havia antes.",
        "es-419": "No se encontró nada para la respuesta, así que esto se basa en lo anterior.",
    },
    FixedText.ABOUT_FILE: {
        "en": "What is in `{path}`?",
        "pt-BR": "O que há em `{path}`?",
        "es-419": "¿Qué hay en `{path}`?",
    },
    FixedText.ABOUT_PROJECT: {
        "en": "What does this project do?",
        "pt-BR": "O que faz este projeto?",
        "es-419": "¿Qué hace este proyecto?",
    },
}


def fixed_text(text: FixedText, *, reply_language: str, **slots: str) -> str:
    """Return a text in one of `REPLY_LANGUAGES`, its slots filled."""
    found = TEXTS[text][reply_language]
    return found.format(**slots) if slots else found
