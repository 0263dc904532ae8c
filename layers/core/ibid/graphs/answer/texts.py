"""The texts that no model writes, in every reply language."""

from collections.abc import Mapping
from enum import StrEnum


class FixedText(StrEnum):
    """What a fixed text says."""

    NO_CONTEXT = "no_context"
    REFUSE = "refuse"


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
}


def fixed_text(text: FixedText, *, reply_language: str) -> str:
    """Return a text in one of `REPLY_LANGUAGES`."""
    return TEXTS[text][reply_language]
