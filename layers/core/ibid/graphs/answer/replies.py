"""What an asker's reply to a question with options means, by rules."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ibid.graphs.answer.ask_state import Option
from ibid.graphs.answer.naming import own_name, words_of

_NUMBERS: Final = re.compile(
    r"(?:options?|opcao|opcoes|opcion|opciones|numbers?|numero|no|n|#)?\s*[#.]?\s*"
    r"(\d{1,2}(?:\s*(?:,|and|e|y|&|or|ou|o)\s*\d{1,2})*)\s*[.)]?"
)
_PLACES: Final = (
    r"first|1st|primeir[oa]|primer[oa]?",
    r"second|2nd|segund[oa]",
    r"third|3rd|terceir[oa]|tercer[oa]?",
    r"fourth|4th|quart[oa]|cuart[oa]",
    r"fifth|5th|quint[oa]",
    r"sixth|6th|sext[oa]",
    r"seventh|7th|setim[oa]|septim[oa]",
    r"eighth|8th|oitav[oa]|octav[oa]",
)
_ORDINAL: Final = re.compile(
    r"(?:the|o|a|el|la)?\s*(?:"
    + "|".join(f"(?P<at{at}>{words})" for at, words in enumerate(_PLACES))
    + r")(?:\s+(?:one|option|opcao|opcion))?"
)
_LAST: Final = re.compile(r"(?:the |o |a |el |la )?(?:last|ultim[oa])(?: one| option)?")
_ALL: Final = re.compile(
    r"(?:all|both|any|either|each|everything|whichever|todos|todas|tudo|todo|ambos|ambas|qualquer|"
    r"cualquiera)(?: (?:of (?:them|these|those)|one|um|uno|deles|delas|de ellos|de ellas|"
    r"please))?"
)
_NONE: Final = re.compile(
    r"(?:no|none|neither|nope|nothing|nao|nenhum|nenhuma|nada|ningun[oa]?)"
    r"(?: (?:of (?:them|these|those|the above)|deles|delas|de ellos|de ellas|dos dois|one))?"
)


class Meaning(StrEnum):
    """How a reply relates to the options."""

    CHOSEN = "chosen"
    ALL = "all"
    NONE = "none"
    WORDS = "words"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply, understood.

    Attributes:
        chosen: The options it names, in their order; empty unless `meaning` is `CHOSEN`.
    """

    meaning: Meaning
    chosen: Sequence[Option] = ()


def read_reply(text: str, options: Sequence[Option], *, question: str) -> Reply:
    """Understand a reply: by number, by place, by an option's text, path or symbol, by its words.

    Args:
        text: As typed.
        options: As they were shown, in order; may be none.
        question: What the asker had asked: its words choose nothing.

    Returns:
        `CHOSEN` with one option or several; `ALL`, `NONE`; `WORDS` for other words, `UNCLEAR` for
        what has none.
    """
    plain = _plain(text)
    chosen = _by_number(plain, options) or _by_name(text, options)
    if not chosen and _ALL.fullmatch(plain):
        return Reply(meaning=Meaning.ALL)
    if not chosen and _NONE.fullmatch(plain):
        return Reply(meaning=Meaning.NONE)
    texts = [option.text.replace("/", " ") for option in options]
    chosen = chosen or most_said(text, options, texts, question=question)
    if chosen:
        return Reply(meaning=Meaning.CHOSEN, chosen=chosen)
    has_words = any(not word.isdigit() for word in words_of(text))
    return Reply(meaning=Meaning.WORDS if has_words else Meaning.UNCLEAR)


def _by_number(plain: str, options: Sequence[Option]) -> Sequence[Option]:
    if match := _NUMBERS.fullmatch(plain):
        numbers = {int(number) for number in re.findall(r"\d+", match[1])}
        if max(numbers) <= len(options) and min(numbers) > 0:
            return [option for at, option in enumerate(options, 1) if at in numbers]
        return ()
    if options and _LAST.fullmatch(plain):
        return list(options[-1:])
    if match := _ORDINAL.fullmatch(plain):
        at = next(at for at in range(len(_PLACES)) if match[f"at{at}"])
        return list(options[at : at + 1])
    return ()


def _by_name(text: str, options: Sequence[Option]) -> Sequence[Option]:
    """Take what is an option's text, path, file name, symbol or own name, in whatever case."""
    wanted = " ".join(text.split()).strip("`'\"\u201c\u201d.,;").removesuffix("()").casefold()
    if not wanted:
        return ()
    names = [
        (option.text, option.path, option.symbol, _file_name(option), own_name(option.symbol))
        for option in options
    ]
    for part in zip(*names, strict=True):
        found = [
            each for each, name in zip(options, part, strict=True) if name.casefold() == wanted
        ]
        if found:
            return found
    return ()


def _file_name(option: Option) -> str:
    return option.path.rpartition("/")[2]


def most_said(
    text: str, options: Sequence[Option], texts: Sequence[str], *, question: str
) -> Sequence[Option]:
    """Take the options whose texts hold most of a reply's words.

    Words of the question, and words that all the texts hold, choose nothing.
    """
    held = [words_of(each) for each in texts]
    if not held:
        return ()
    telling = words_of(text) - words_of(question) - frozenset.intersection(*held)
    counts = [len(telling & words) for words in held]
    most = max(counts)
    return [each for each, count in zip(options, counts, strict=True) if count == most > 0]


def _plain(text: str) -> str:
    letters = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return " ".join(kept.split()).strip(" .!?()'\"`")
