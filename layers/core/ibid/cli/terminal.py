"""Untrusted text on a terminal."""

import unicodedata


def printable(text: str) -> str:
    """Replace what could steer a terminal: an excerpt may hold escape sequences.

    Line feeds and tabs stay; other control and format characters and lone surrogates become
    U+FFFD, except the joiners that scripts and emoji need.
    """
    return "".join(
        char
        if char in "\n\t\u200c\u200d" or unicodedata.category(char) not in {"Cc", "Cf", "Cs"}
        else "\ufffd"
        for char in text
    )
