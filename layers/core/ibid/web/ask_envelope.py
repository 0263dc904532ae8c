"""The envelope of an Ask run: a pure function of the run as it is kept and of what it showed."""

import math
import re
from typing import Literal

from ibid.domain.answers import Clarification, GroundingWarning, Intent
from ibid.domain.conversations import Run
from ibid.domain.events import Done, Paused
from ibid.web.ask_events import AnswerEnvelope, AskCitationBody, ClarificationBody
from ibid.web.wire import whole

HEADLINE_CHARACTERS = 160

HISTORY_ONLY = 0.5
DEGRADED = 0.9
WARNED = {
    GroundingWarning.NO_CONTEXT: 0.0,
    GroundingWarning.UNCITED_ANSWER: 0.4,
    GroundingWarning.UNKNOWN_PATHS: 0.7,
    GroundingWarning.UNKNOWN_SYMBOLS: 0.8,
    GroundingWarning.WEAK_EVIDENCE: 0.5,
}
"""What each finding leaves of an answer's confidence, which begins at 1."""

_MARKER = re.compile(r"\s*\[\d+\]")
_LINE_START = re.compile(r"^\s*(?:#{1,6}\s+|[-*+]\s+|\d+[.)]\s+|>\s*)+")
_EMPHASIS = re.compile(r"\*\*|__|`")
_SENTENCE = re.compile(r".*?[.!?…](?=\s|$)", re.DOTALL)


def envelope_of(run: Run, end: Done | Paused, narration: str) -> AnswerEnvelope:
    """Make the envelope.

    Args:
        run: As it is kept with its end.
        end: Its terminator.
        narration: The tokens that it showed, joined.
    """
    done = end if isinstance(end, Done) else None
    asked = end.clarification
    kind = _kind(end)
    return AnswerEnvelope(
        envelope_version="1",
        kind=kind,
        headline=headline(whole(narration) if asked is None else whole(asked.question)),
        narration=whole(narration),
        values=(),
        rows=(),
        citations=tuple(map(AskCitationBody.of, done.citations)) if done else (),
        confidence=confidence(done) if done and kind == "answer" else 0.0,
        assumptions=tuple(map(whole, done.assumptions)) if done else (),
        suggestions=tuple(map(whole, done.suggestions)) if done else (),
        clarification=None if asked is None else _clarification(asked),
        resumable=isinstance(end, Paused),
        interrupt_id=end.interrupt_id if isinstance(end, Paused) else None,
        trace_id=run.turn_id,
        thread_id=run.conversation_id,
        run_id=run.id,
        created_at=run.ended_at or run.created_at,
    )


def confidence(done: Done) -> float:
    """Say how far an answer can be relied on, from 0 to 1, by what was found out about it.

    1, times the factor of each warning; times 0.5 if nothing was searched, so that it rests on the
    conversation alone; times 0.9 for each helper that fell back. Rounded to hundredths.
    """
    factors = [WARNED[warning] for warning in done.grounding_warnings]
    factors += [DEGRADED] * len(done.degraded)
    if done.retrieval_attempts == 0:
        factors.append(HISTORY_ONLY)
    return round(math.prod(factors), 2)


def headline(text: str) -> str:
    """Return the first sentence of a text as plain words, cut at a word to 160 characters.

    Markers, emphasis and what begins a line in Markdown are left out, and code blocks. A line that
    only leads up to others, as its colon says, is passed over if there are others. Empty if
    nothing is there.
    """
    lines = _plain_lines(text)
    at = 1 if len(lines) > 1 and lines[0].endswith(":") else 0
    for line in lines[at:]:
        sentence = _SENTENCE.match(line)
        return _cut((sentence.group() if sentence else line).rstrip(":"))
    return ""


def _plain_lines(text: str) -> list[str]:
    plain: list[str] = []
    is_code = False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code:
            plain.append(_EMPHASIS.sub("", _MARKER.sub("", _LINE_START.sub("", line))).strip())
    return [line for line in plain if line]


def _cut(text: str) -> str:
    if len(text) <= HEADLINE_CHARACTERS:
        return text
    kept = text[: HEADLINE_CHARACTERS - 1]
    at_word, space, _ = kept.rpartition(" ")
    return f"{at_word if space else kept}…"


def _kind(end: Done | Paused) -> Literal["answer", "abstention", "clarification"]:
    if end.clarification is not None:
        return "clarification"
    if end.intent is Intent.OUT_OF_SCOPE or GroundingWarning.NO_CONTEXT in end.grounding_warnings:
        return "abstention"
    return "answer"


def _clarification(asked: Clarification) -> ClarificationBody:
    return ClarificationBody(
        question=whole(asked.question), options=tuple(map(whole, asked.options))
    )
