"""Answer from the conversation by rules: repeat, shorten, or say honestly what can't be done."""

import re
from collections.abc import Sequence
from typing import Final

from ibid.adapters.models.phrases import LEADS, phrases
from ibid.adapters.models.question_rules import what_is_asked_of_history
from ibid.adapters.models.quoting import fenced
from ibid.domain.answers import HistoryTurn

SHORT: Final = 400
"""Characters that a shortened answer aims at; its first block stays whole up to twice that."""

_CODE: Final = re.compile(
    r"(?P<block>^(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^(?P=fence)[`~]*[ \t]*$|\Z))"
    r"|(?P<span>(?<!`)(?P<run>`+)(?!`).+?(?<!`)(?P=run)(?!`))",
    re.DOTALL | re.MULTILINE,
)
_MARKER: Final = re.compile(r"[ \t]?\[\d{1,4}\]")


def answer_from_history(
    question: str, history: Sequence[HistoryTurn], *, reply_language: str
) -> str:
    """Answer a conversational question.

    Markers are left out of what is repeated: they numbered another turn's passages.
    """
    say = phrases(reply_language)
    wish = what_is_asked_of_history(question)
    if wish in {"greeting", "thanks", "who"}:
        return {"greeting": say.greeting, "thanks": say.thanks, "who": say.who}[wish]
    if not history:
        return say.nothing_said if wish in {"repeat", "shorten", "asked"} else say.only_quotes
    last = history[-1]
    if wish == "asked":
        return f"{say.asked}\n\n{fenced(last.question, 'text')}"
    if wish == "repeat":
        return f"{say.again}\n\n{without_markers(last.answer)}"
    if wish == "shorten":
        return f"{say.short}\n\n{shortened(without_markers(last.answer))}"
    return say.only_quotes


def without_markers(answer: str) -> str:
    """Leave out the citation markers outside code."""
    kept = []
    at = 0
    for code in _CODE.finditer(answer):
        kept += [_MARKER.sub("", answer[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*kept, _MARKER.sub("", answer[at:])])


def shortened(answer: str) -> str:
    """Keep the first blocks, whole, without a lead sentence of ours; the first one always."""
    kept: list[str] = []
    for block in blocks(answer):
        if block in LEADS:
            continue
        if kept and sum(map(len, kept)) + len(block) > SHORT:
            break
        kept.append(block)
    return "\n\n".join(kept)


def blocks(answer: str) -> list[str]:
    """Part an answer at blank lines outside code."""
    found = [""]
    at = 0
    for code in _CODE.finditer(answer):
        first, *rest = answer[at : code.start()].split("\n\n")
        found[-1] += first
        found += rest
        found[-1] += code[0]
        at = code.end()
    first, *rest = answer[at:].split("\n\n")
    found[-1] += first
    return [block.strip("\n") for block in [*found, *rest] if block.strip()]
