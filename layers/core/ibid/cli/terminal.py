"""Untrusted text on a terminal."""

import unicodedata


def is_text(words: str) -> bool:
    """Tell if an argument was UTF-8: what was not arrives as lone surrogates."""
    return not any("\ud800" <= char <= "\udfff" for char in words)


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
