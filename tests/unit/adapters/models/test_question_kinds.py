import pytest

from ibid.adapters.models.question_kinds import (
    asks_for_an_overview,
    asks_for_uses,
    asks_how_to,
)


@pytest.mark.parametrize(
    "question",
    [
        "How do I use it with Ollama?",
        "How to deploy?",
        "What happens if a view fails?",
        "Is there any way to log in?",
        "What is the best way to test?",
        "¿Cómo puedo desplegar?",
        "¿Cómo configurar un proxy?",
        "¿Qué pasa cuando falla?",
        "Como faço para testar?",
        "Como se pode testar?",
        "O que acontece quando falha?",
    ],
)
def test_steps_and_cases_are_how_to(question: str) -> None:
    assert asks_how_to(question)
    assert not asks_for_uses(question)


@pytest.mark.parametrize(
    "question", ["How does it work?", "How are blueprints registered?", "¿Cómo funciona?", "Where?"]
)
def test_how_a_thing_works_is_not_how_to(question: str) -> None:
    assert not asks_how_to(question)


@pytest.mark.parametrize(
    ("question", "whole"),
    [
        ("What does this project do?", True),
        ("What is this repo about?", True),
        ("Give me an overview of the codebase, please", True),
        ("¿De qué trata este proyecto?", True),
        ("Para que serve esta biblioteca?", True),
        ("What does this project do with cookies?", False),
        ("What does the session do?", False),
    ],
)
def test_an_overview_is_of_the_whole_project_alone(question: str, *, whole: bool) -> None:
    assert asks_for_an_overview(question) is whole
