"""What may be wrong with an answer's grounding: five pure checks, in time linear in the text."""

import keyword
import re
from collections.abc import Iterator, Sequence

from ibid.domain.answers import GroundingWarning, HistoryTurn
from ibid.domain.passages import Passage
from ibid.graphs.answer.markdown import split_blocks

_URL = re.compile(r"(?:\b(?:https?|ftp|file|ssh|git|wss?)://|\bwww\.|\bgit@)[^\s<>\"'`)\]]*")
_PATH_CHARACTERS = re.compile(r"[\w./@+~-]+")
_EXTENSION = re.compile(r"[A-Za-z][A-Za-z0-9]{0,9}")
_RELATIVE = re.compile(r"\A(?:\.{0,2}/)+")
_WORD = re.compile(r"\w+")
_IDENTIFIER = re.compile(r"[@$]?[^\W\d]\w*(?:(?:\.|::|->|#)[^\W\d]\w*){0,20}(?:\(\))?[!?]?")
_NOT_NAMES = frozenset(
    [
        *(word.casefold() for word in keyword.kwlist),
        *("false", "nil", "null", "self", "super", "this", "true", "undefined", "void"),
    ]
)


def grounding_warnings(
    answer: str,
    passages: Sequence[Passage],
    *,
    searched: bool,
    cited_indexes: Sequence[int],
    evidence_ok: bool | None,
    question: str,
    history: Sequence[HistoryTurn],
) -> tuple[GroundingWarning, ...]:
    """Look for what may be wrong with an answer.

    Args:
        answer: The whole text, as it was shown.
        passages: Those that the model saw.
        searched: If the turn made a search; one that made none has no warnings.
        cited_indexes: The citations that hold.
        evidence_ok: The last verdict on the passages, None without one.
        question: The asker's words.
        history: The earlier turns that the answer may speak of.

    Returns:
        In the order of `GroundingWarning`; `NO_CONTEXT` alone.
    """
    if not searched:
        return ()
    if not passages:
        return (GroundingWarning.NO_CONTEXT,)
    found = {
        GroundingWarning.UNCITED_ANSWER: not cited_indexes,
        GroundingWarning.UNKNOWN_PATHS: names_unknown_path(answer, passages),
        GroundingWarning.UNKNOWN_SYMBOLS: names_unknown_symbol(
            answer, passages, question=question, history=history
        ),
        GroundingWarning.WEAK_EVIDENCE: evidence_ok is False,
    }
    return tuple(warning for warning, applies in found.items() if applies)


def names_unknown_path(answer: str, passages: Sequence[Passage]) -> bool:
    """Tell if a path in the answer, URLs aside, is no end of a passage's path.

    A path has a slash and its last part an extension. It may leave out leading folders, never
    part of one. A fenced line that a passage holds whole is a quotation and names nothing.
    """
    endings = {ending for passage in passages for ending in _endings(passage.file_path)}
    return any(path not in endings for path in _paths(_said(answer, passages)))


def names_unknown_symbol(
    answer: str,
    passages: Sequence[Passage],
    *,
    question: str,
    history: Sequence[HistoryTurn],
) -> bool:
    """Tell if a code span of the answer is an identifier that nothing before it has.

    Each part of a dotted name must be a word of a passage (its path and symbol too), the question
    or the history. Keywords and literals are no identifiers; fenced blocks are not looked at.
    """
    names = {
        part
        for block in split_blocks(answer)
        for span in block.code_spans
        if _IDENTIFIER.fullmatch(span)
        for part in _WORD.findall(span)
        if part.casefold() not in _NOT_NAMES
    }
    if not names:
        return False
    for text in _known_texts(passages, question, history):
        names.difference_update(_WORD.findall(text))
    return bool(names)


def _known_texts(
    passages: Sequence[Passage], question: str, history: Sequence[HistoryTurn]
) -> Iterator[str]:
    yield question
    for passage in passages:
        yield from (passage.content, passage.symbol, passage.file_path)
    for turn in history:
        yield from (turn.question, turn.answer)


def _said(answer: str, passages: Sequence[Passage]) -> Iterator[str]:
    """Yield what the answer itself says, without the fenced lines that it quotes."""
    held: set[str] | None = None
    for block in split_blocks(answer):
        if block.kind != "fence":
            yield block.text
        elif "/" in block.text:
            if held is None:
                held = {line.strip() for one in passages for line in one.content.splitlines()}
            yield from (line for line in block.text.splitlines() if line.strip() not in held)


def _paths(texts: Iterator[str]) -> Iterator[str]:
    for text in texts:
        if "/" not in text:
            continue
        for token in _PATH_CHARACTERS.findall(_URL.sub(" ", text)):
            path = token.rstrip(".")
            stem, _, extension = path.rpartition("/")[2].rpartition(".")
            if "/" in path and stem and _EXTENSION.fullmatch(extension):
                yield _RELATIVE.sub("", path)


def _endings(path: str) -> Iterator[str]:
    """Yield a path and all that is left of it without its first folders."""
    parts = path.split("/")
    for start in range(len(parts)):
        yield "/".join(parts[start:])
