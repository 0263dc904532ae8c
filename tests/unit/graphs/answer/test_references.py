"""Which questions point at nothing."""

import pytest

from ibid.domain.answers import HistoryTurn
from ibid.graphs.answer.ask_state import Ambiguity, Doubt
from ibid.graphs.answer.references import find_dangling

PAST = HistoryTurn(question="What does create_app do?", answer="It makes the Flask application.")


@pytest.mark.parametrize(
    ("question", "phrase"),
    [
        ("How does it work?", "it"),
        ("What is that?", "that"),
        ("What does this function return?", "this function"),
        ("Does this animal have antlers?", "this animal"),
        ("Who calls these hooks?", "these hooks"),
        ("O que faz essa função?", "essa função"),
        ("¿Para qué sirve esta clase?", "esta clase"),
        ("Como isso funciona?", "isso"),
    ],
)
def test_a_first_question_that_points_at_something_asks_at_what(question: str, phrase: str) -> None:
    assert find_dangling(question, ()) == Ambiguity(doubt=Doubt.REFERENCE, phrase=phrase)


@pytest.mark.parametrize(
    "question",
    [
        "What does this project do?",
        "What does it do when the session expires?",
        "How is this code base tested?",
        "Does this function call create_app?",
        "Is it possible to use two blueprints?",
        "Is this intended for production?",
        "What happens this time?",
        "Where is the session made?",
        "What does create_app do?",
        "O que este projeto faz?",
        "",
    ],
)
def test_a_question_that_stands_by_itself_is_not_asked_about(question: str) -> None:
    assert find_dangling(question, ()) is None


@pytest.mark.parametrize(
    "question",
    [
        "How does it work?",
        "What does this function return?",
        "Is this approach slow?",
        "Where is this application used?",
        "Which tests cover these lines?",
    ],
)
def test_after_a_turn_most_of_it_points_at_that_turn(question: str) -> None:
    assert find_dangling(question, [PAST]) is None


def test_after_a_turn_a_thing_that_nobody_spoke_of_is_asked_about() -> None:
    assert find_dangling("Does this animal have antlers?", [PAST]) is not None
    told = HistoryTurn(question="Tell me of the animals", answer="There are moose.")
    assert find_dangling("Does this animal have antlers?", [PAST, told]) is None
