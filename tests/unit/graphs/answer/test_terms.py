"""Which terms tie on a phrase."""

from dataclasses import replace

import pytest

from ibid.domain.answers import HistoryTurn
from ibid.domain.passages import Passage
from ibid.graphs.answer.ask_state import Ambiguity, Doubt, Option
from ibid.graphs.answer.terms import find_term_tie
from tests.unit.graphs.answer.turns import passage


def prose(path: str, text: str, language: str = "text") -> Passage:
    return replace(passage(text, file_path=path, symbol=""), language=language)


ORANGE = prose("a.md", "There are parks in Orange County and more.")
SIERRA = prose("b.md", "The parks of Sierra County are large.")


def test_terms_of_two_files_that_end_in_the_phrase_tie() -> None:
    assert find_term_tie("Are there parks in the county?", (), [ORANGE, SIERRA]) == Ambiguity(
        doubt=Doubt.TERM,
        phrase="county",
        options=[Option(text="Orange County"), Option(text="Sierra County")],
    )


@pytest.mark.parametrize(
    ("question", "passages"),
    [
        ("Are there parks in Orange County?", [ORANGE, SIERRA]),
        ("Are there parks in the Sierra county?", [ORANGE, prose("b.md", "see Sierra County")]),
        ("Are there parks in the county?", [ORANGE]),
        ("Are there parks in the county?", [prose("a.md", "in Orange County, or Sierra County")]),
        ("Are there parks in a county?", [ORANGE, SIERRA]),
        ("Are there parks in the county?", [replace(ORANGE, language="python"), SIERRA]),
        ("Are there parks in the county?", [prose("a.md", "Orange County"), SIERRA]),
        ("What does `the county` do?", [ORANGE, SIERRA]),
        ("Are there parks in the of it?", [ORANGE, SIERRA]),
        ("Are there parks in the county?", [prose("a.md", "see The County"), SIERRA]),
    ],
)
def test_what_is_named_or_stands_alone_does_not_tie(question: str, passages: list[Passage]) -> None:
    assert find_term_tie(question, (), passages) is None


def test_what_was_said_before_or_settled_does_not_tie() -> None:
    before = HistoryTurn(question="Where is Orange County?", answer="In California.")

    assert find_term_tie("Are there parks in the county?", [before], [ORANGE, SIERRA]) is None
    assert (
        find_term_tie("Are parks in the county?", (), [ORANGE, SIERRA], settled=["county"]) is None
    )


def test_classes_whose_names_end_in_the_only_word_tie() -> None:
    json = passage(file_path="src/json.py", symbol="JsonLoader JsonLoader.read")
    yaml = passage(file_path="src/yaml.py", symbol="yaml_loader")
    tests = passage(file_path="tests/test_x.py", symbol="FakeLoader")

    tie = find_term_tie("How does the loader work?", (), [json, yaml, tests])

    assert tie == Ambiguity(
        doubt=Doubt.TERM,
        phrase="loader",
        options=[
            Option(text="src/json.py: JsonLoader", path="src/json.py", symbol="JsonLoader"),
            Option(text="src/yaml.py: yaml_loader", path="src/yaml.py", symbol="yaml_loader"),
        ],
    )


@pytest.mark.parametrize(
    "question", ["How does the JSON loader work?", "What is JsonLoader?", "How does it load?"]
)
def test_a_word_more_tells_which_class(question: str) -> None:
    json = passage(file_path="src/json.py", symbol="JsonLoader")
    yaml = passage(file_path="src/yaml.py", symbol="YamlLoader")

    assert find_term_tie(question, (), [json, yaml]) is None


def test_a_thing_of_that_very_name_is_what_is_meant() -> None:
    found = [
        passage(file_path=f"src/{name}.py", symbol=name)
        for name in ("JsonLoader", "YamlLoader", "Loader")
    ]

    assert find_term_tie("How does the loader work?", (), found) is None


def test_settled_words_tie_no_more() -> None:
    found = [
        passage(file_path=f"src/{name}.py", symbol=name) for name in ("JsonLoader", "YamlLoader")
    ]

    assert find_term_tie("How does the loader work?", (), found, settled=["loader"]) is None
