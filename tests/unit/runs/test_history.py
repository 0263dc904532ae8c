"""A turn starts from the conversation's finished turns, six at most."""

from dataclasses import replace

import pytest

from ibid.domain.answers import FinishReason, HistoryTurn, Resumption, Style
from ibid.domain.conversations import Message, RunState
from ibid.domain.errors import ProjectNotReady
from ibid.runs.history import finished_turns, resumption_input, turn_input
from ibid.runs.turns import NewResumption
from tests.fakes.samples import (
    ANN,
    a_conversation,
    a_pause,
    a_project,
    a_question,
    a_resumption,
    a_run,
    a_turn,
    an_answer,
)


def _messages(*finish_reasons: FinishReason) -> list[Message]:
    messages: list[Message] = []
    for number, finish_reason in enumerate(finish_reasons):
        run = a_run(number + 1)
        answer = replace(an_answer(run, f"a{number}"), finish_reason=finish_reason)
        messages += [a_question(run, f"q{number}"), answer]
    return messages


def _turns(*numbers: int) -> list[HistoryTurn]:
    return [HistoryTurn(question=f"q{number}", answer=f"a{number}") for number in numbers]


def test_the_last_six_turns_that_finished_come_oldest_first() -> None:
    stop, error = FinishReason.STOP, FinishReason.ERROR
    messages = _messages(stop, stop, stop, error, stop, stop, error, stop, stop)
    run = a_run(10)
    messages.append(a_question(run, "now?"))

    made = turn_input(a_turn(question="now?"), run, messages)

    assert list(made.history) == _turns(1, 2, 4, 5, 7, 8)
    assert made.question == "now?"


def test_an_answer_that_did_not_stop_is_no_history() -> None:
    others = [reason for reason in FinishReason if reason is not FinishReason.STOP]

    made = turn_input(a_turn(), a_run(9), _messages(*others))

    assert list(made.history) == []


def test_an_answer_whose_question_was_not_read_is_no_turn() -> None:
    run = a_run()
    messages: list[Message] = [an_answer(run)]

    assert list(finished_turns(messages)) == []


def test_the_turn_carries_what_was_asked_for() -> None:
    style = Style(detail="brief")
    turn = replace(
        a_turn(project=replace(a_project(), active_generation=7)),
        style=style,
        path_prefix="src/",
    )

    made = turn_input(turn, a_run(3), ())

    assert (made.tenant, made.project_id, made.generation) == ("acme", "p1", 7)
    assert (made.turn_id, made.run_id, made.resumption) == ("c1-3", "c1-3", None)
    assert (made.style, made.path_prefix) == (style, "src/")


@pytest.mark.parametrize(
    ("asked", "conversation", "project", "expected"),
    [
        (None, None, None, "en"),
        (None, None, "pt-BR", "pt-BR"),
        (None, "es-419", "pt-BR", "es-419"),
        ("en", "es-419", "pt-BR", "en"),
    ],
)
def test_the_reply_language_is_the_nearest_that_is_set(
    asked: str | None, conversation: str | None, project: str | None, expected: str
) -> None:
    turn = a_turn(
        project=replace(a_project(), reply_language=project),
        conversation=replace(a_conversation(), reply_language=conversation),
    )

    made = turn_input(replace(turn, reply_language=asked), a_run(), ())

    assert made.reply_language == expected


def test_a_resumption_names_the_pause_and_the_turn_it_goes_on_with() -> None:
    asked = a_run(1)
    paused = replace(asked, state=RunState.PAUSED, terminator=a_pause(asked))
    resumption = NewResumption(
        principal=ANN,
        conversation=replace(a_conversation(), reply_language="pt-BR"),
        project=replace(a_project(), active_generation=8),
        paused=paused,
        question="Which app?",
        answer="the first",
    )

    made = resumption_input(resumption, a_resumption(paused, 2), ())

    assert (made.turn_id, made.run_id, made.generation) == ("c1-1", "c1-2", 8)
    assert made.resumption == Resumption(interrupt_id="interrupt of c1-1", answer="the first")
    assert (made.question, made.reply_language) == ("Which app?", "pt-BR")
    with pytest.raises(ValueError, match="paused"):
        resumption_input(replace(resumption, paused=asked), a_run(2), ())


def test_a_project_without_a_generation_gives_no_turn() -> None:
    turn = a_turn(project=replace(a_project(), active_generation=None))

    with pytest.raises(ProjectNotReady):
        turn_input(turn, a_run(), ())
