"""What the state of a turn holds besides, in a graph that can ask its asker back."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict

from ibid.domain.answers import Clarification, TurnInput
from ibid.graphs.answer.state import AnswerState, first_state

MAX_OPTIONS = 8


class Doubt(StrEnum):
    """Why a question can't be answered as it stands."""

    SYMBOL = "symbol"
    DOCUMENT = "document"
    TERM = "term"
    REFERENCE = "reference"
    INTENT = "intent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One thing that may be meant.

    Attributes:
        text: As the asker sees it; no two options of a question have the same.
        path: Its file, empty if it is none in particular.
        symbol: Its dotted name, empty for a whole file and for what no name defines.
    """

    text: str
    path: str = ""
    symbol: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ambiguity:
    """What the asker is to be asked.

    Attributes:
        phrase: The words of the question that are in doubt, as typed; may be empty.
        options: 2 to `MAX_OPTIONS`, best first; none where any words will do.
    """

    doubt: Doubt
    phrase: str = ""
    options: Sequence[Option] = ()


class OptionRow(TypedDict):
    """An `Option`, field for field."""

    text: str
    path: str
    symbol: str


class ClarificationRow(TypedDict):
    """A `Clarification`, field for field."""

    question: str
    options: list[str]


class AskState(AnswerState, total=False):
    """All keys of a turn that may pause.

    Attributes:
        doubt: A value of `Doubt` while something is to be asked, else empty.
        phrase: Of the doubt.
        options: Of the doubt, best first, as they are shown.
        kept: What the replies chose so far.
        dropped: What the replies turned down so far: no passage of it is shown any more.
        settled: Phrases that need no more asking, in lower case.
        pauses: Replies got so far.
        narrowed: The last reply chose among the passages: they need no other search.
        assumptions: What was taken for granted, in the reply language.
        plain: What the turn ended with asking; None if it did not.
    """

    doubt: str
    phrase: str
    options: list[OptionRow]
    kept: list[OptionRow]
    dropped: list[OptionRow]
    settled: list[str]
    pauses: int
    narrowed: bool
    assumptions: list[str]
    plain: ClarificationRow | None


def first_ask_state(turn: TurnInput) -> AskState:
    """Return the graph's input: every key, none left over from another turn."""
    return {
        **first_state(turn),
        "doubt": "",
        "phrase": "",
        "options": [],
        "kept": [],
        "dropped": [],
        "settled": [],
        "pauses": 0,
        "narrowed": False,
        "assumptions": [],
        "plain": None,
    }


def options_of(rows: Sequence[OptionRow]) -> tuple[Option, ...]:
    """Return options as values."""
    return tuple(Option(**row) for row in rows)


def option_rows(options: Sequence[Option]) -> list[OptionRow]:
    """Return the plain form of options."""
    return [
        {"text": option.text, "path": option.path, "symbol": option.symbol} for option in options
    ]


def to_ask(ambiguity: Ambiguity | None) -> AskState:
    """Return what a node writes that found out if there is something to ask."""
    if ambiguity is None:
        return {"doubt": "", "phrase": "", "options": []}
    return {
        "doubt": ambiguity.doubt.value,
        "phrase": ambiguity.phrase,
        "options": option_rows(ambiguity.options),
    }


def plain_clarification(state: AskState) -> Clarification | None:
    """Return what a turn ended with asking, as a value."""
    row = state["plain"]
    return (
        None
        if row is None
        else Clarification(question=row["question"], options=tuple(row["options"]))
    )
