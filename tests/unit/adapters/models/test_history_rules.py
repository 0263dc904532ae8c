import pytest

from ibid.adapters.models.history_rules import (
    SHORT,
    answer_from_history,
    blocks,
    shortened,
    without_markers,
)
from ibid.adapters.models.phrases import phrases
from ibid.domain.answers import HistoryTurn

SAY = phrases("en")
LAST = HistoryTurn(
    question="Where is [1] it?",
    answer=f"{SAY.lead}\n\nIn `a.py:1-2` [1]:\n\n```\na\n\n[1]\n```\n\n" + "long " * SHORT,
)


def said(question: str, *history: HistoryTurn) -> str:
    return answer_from_history(question, history, reply_language="en")


@pytest.mark.parametrize(
    ("question", "text"),
    [("Hi", SAY.greeting), ("Thanks", SAY.thanks), ("Who are you?", SAY.who)],
)
def test_small_talk_gets_a_fixed_sentence(question: str, text: str) -> None:
    assert said(question) == said(question, LAST) == text


@pytest.mark.parametrize("question", ["repeat that", "shorten it", "what did I ask?"])
def test_without_a_history_there_is_nothing_to_tell(question: str) -> None:
    assert said(question) == SAY.nothing_said


def test_what_rules_can_t_do_is_said() -> None:
    assert said("Translate that", LAST) == said("Translate that") == SAY.only_quotes


def test_the_last_question_is_quoted_as_code() -> None:
    assert said("What did I ask?", LAST) == f"{SAY.asked}\n\n```text\nWhere is [1] it?\n```"


def test_a_shortened_answer_keeps_its_first_blocks_whole() -> None:
    text = said("Shorten that", LAST)

    assert text == f"{SAY.short}\n\nIn `a.py:1-2`:\n\n```\na\n\n[1]\n```"


def test_a_lone_long_block_is_kept() -> None:
    assert shortened("x" * 3 * SHORT) == "x" * 3 * SHORT


def test_markers_stay_in_code_alone() -> None:
    assert without_markers("a [1], `[2]` b[3].\n\n~~~\n[4]\n~~~\nc [5]") == (
        "a, `[2]` b.\n\n~~~\n[4]\n~~~\nc"
    )


def test_blank_lines_in_code_part_nothing() -> None:
    assert blocks("a\n\n\n\nb\n```\n1\n\n2\n```\nc\n\nd") == ["a", "b\n```\n1\n\n2\n```\nc", "d"]


def test_an_unclosed_fence_runs_to_the_end() -> None:
    assert blocks("a\n\n```\n1\n\n2") == ["a", "```\n1\n\n2"]
