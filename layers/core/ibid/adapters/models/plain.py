"""A text's bare words, for rules to match."""

import re
import unicodedata


def plain_words(text: str) -> str:
    """Fold case, accents, punctuation and white space away."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return " ".join(re.sub(r"[^\w]+", " ", re.sub("['\u2019]", "", kept)).split())
