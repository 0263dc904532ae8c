"""Which names tie, and which don't: rules that would rather not ask."""

import pytest

from ibid.domain.passages import Passage
from ibid.graphs.answer.ask_state import Ambiguity, Doubt, Option
from ibid.graphs.answer.ties import find_tie, without
from tests.unit.graphs.answer.turns import passage


def defines(path: str, symbol: str, text: str = "return 1") -> Passage:
    return passage(text, file_path=path, symbol=symbol)


CONFIG, DATA = defines("src/config.py", "load"), defines("src/data.py", "load")


@pytest.mark.parametrize(
    "question",
    [
        "What does load do?",
        "what does `load` do",
        "Where is the function load() defined?",
        "Explain load",
        "O que faz load?",
        "¿Dónde se define la función load?",
        "LOAD?",
    ],
)
def test_two_functions_of_one_name_tie_and_are_told_by_path_and_symbol(question: str) -> None:
    tie = find_tie(question, [CONFIG, DATA])

    assert tie is not None
    assert tie.doubt is Doubt.SYMBOL
    assert tie.phrase.lower() == "load"
    assert tie.options == [
        Option(text="src/config.py: load", path="src/config.py", symbol="load"),
        Option(text="src/data.py: load", path="src/data.py", symbol="load"),
    ]


@pytest.mark.parametrize(
    ("question", "passages"),
    [
        ("What does create_app do?", [defines("src/a.py", "create_app"), DATA]),
        ("What does load do?", [DATA]),
        ("What does load do?", []),
        ("How are rows loaded from a file?", [CONFIG, DATA]),
        ("What does load do with the rows of a table?", [CONFIG, DATA]),
        ("What does load in config do?", [CONFIG, DATA]),
        ("What does `load` do in src/data.py?", [CONFIG, DATA]),
        ("What does config.load do?", [CONFIG, DATA]),
        ("What does load do?", [DATA, defines("tests/test_data.py", "load")]),
        ("What does load do?", [DATA, defines("docs/load.md", "Load")]),
        ("What does load do?", [DATA, defines("src/yaml.py", "Loader.load")]),
        ("What does Loader.load do?", [DATA, defines("src/yaml.py", "Loader.load")]),
        ("What does the load function do?", [DATA, defines("src/data.py", "load", "more of it")]),
        ("What does load do?", [defines("src/io.c", "load"), defines("src/io.h", "load")]),
        ("What does it do?", [CONFIG, DATA]),
    ],
)
def test_a_question_that_tells_or_has_one_definition_never_asks(
    question: str, passages: list[Passage]
) -> None:
    assert find_tie(question, passages) is None


def test_what_the_passages_say_tells_too() -> None:
    rows = defines("src/data.py", "load", "Reads a spreadsheet.")

    assert find_tie("Does `load` read a spreadsheet?", [CONFIG, rows]) is None


def test_two_methods_of_one_name_tie_also_within_one_passage() -> None:
    both = defines("src/app.py", "App.run Server.run App")

    tie = find_tie("What does run do?", [both])

    assert tie is not None
    assert [option.text for option in tie.options] == [
        "src/app.py: App.run",
        "src/app.py: Server.run",
    ]


def test_tests_tie_with_each_other_where_they_are_all_there_is() -> None:
    tests = [defines("tests/a.py", "client"), defines("tests/b.py", "client")]

    assert find_tie("What does client do?", tests) is not None


def test_two_files_of_one_name_tie_and_are_told_by_path() -> None:
    passages = [defines("docs/a/setup.md", ""), defines("docs/b/setup.md", ""), DATA]

    for question in ("What does setup.md say?", "What is in the setup file?", "`setup`"):
        tie = find_tie(question, passages)

        assert tie == Ambiguity(
            doubt=Doubt.DOCUMENT,
            phrase=tie.phrase if tie else "",
            options=[
                Option(text="docs/a/setup.md", path="docs/a/setup.md"),
                Option(text="docs/b/setup.md", path="docs/b/setup.md"),
            ],
        )


@pytest.mark.parametrize(
    ("question", "passages"),
    [
        ("What does README.md say?", [defines("docs/README.md", ""), defines("README.md", "")]),
        ("What does a/setup.md say?", [defines("a/setup.md", ""), defines("b/setup.md", "")]),
        ("What does setup say?", [defines("a/setup.md", ""), defines("b/setup.py", "")]),
        ("What is in `load`?", [DATA, defines("a/load.md", ""), defines("b/load.md", "")]),
    ],
)
def test_a_file_that_is_spelt_in_full_or_differs_in_kind_never_asks(
    question: str, passages: list[Passage]
) -> None:
    assert find_tie(question, passages) is None


def test_no_more_than_eight_are_offered_each_once_best_first() -> None:
    many = [defines(f"src/m{number}.py", "load") for number in range(20)]

    tie = find_tie("What does load do?", [*many, *many])

    assert tie is not None
    assert [option.path for option in tie.options] == [f"src/m{at}.py" for at in range(8)]


def test_what_was_turned_down_or_settled_ties_no_more() -> None:
    third = defines("src/third.py", "load")
    dropped = [Option(text="x", path="src/config.py", symbol="load")]

    assert find_tie("What does load do?", [CONFIG, DATA], dropped=dropped) is None
    assert find_tie("What does load do?", [CONFIG, DATA, third], dropped=dropped) is not None
    assert find_tie("What does Load do?", [CONFIG, DATA, third], settled=["load"]) is None


def test_a_name_of_odd_characters_is_one_line_of_bounded_length() -> None:
    odd = [defines(f"src/a\n{'x' * 300}{end}.py", "load") for end in "ab"]

    tie = find_tie("What does load do?", [*odd, DATA])

    assert tie is not None
    assert all("\n" not in option.text and len(option.text) <= 200 for option in tie.options)
    assert len({option.text for option in tie.options}) == len(tie.options)


def test_dropping_a_place_keeps_passages_that_show_a_chosen_one_as_well() -> None:
    both = defines("src/app.py", "App.run Server.run")
    app = Option(text="a", path="src/app.py", symbol="App.run")
    server = Option(text="s", path="src/app.py", symbol="Server.run")
    of_file = Option(text="f", path="src/config.py")

    assert without([both, CONFIG, DATA], dropped=[server, of_file], kept=[app]) == [both, DATA]
    assert without([both, CONFIG], dropped=[server], kept=[]) == [CONFIG]


def test_what_is_meant_comes_first_and_the_file_of_what_is_not_goes() -> None:
    of_config = passage('"""Settings."""', file_path="src/config.py", symbol="")
    of_data = passage('"""Data."""', file_path="src/data.py", symbol="")
    guide = passage("Loading.", file_path="docs/guide.md", symbol="")
    config = Option(text="", path="src/config.py", symbol="load")
    data = Option(text="", path="src/data.py", symbol="load")

    left = without([of_config, guide, CONFIG, of_data, DATA], dropped=[config], kept=[data])

    assert left == [DATA, of_data, guide]
