"""What a reply means."""

import pytest

from ibid.graphs.answer.ask_state import Option
from ibid.graphs.answer.replies import Meaning, Reply, read_reply

CONFIG = Option(text="src/config.py: load", path="src/config.py", symbol="load")
DATA = Option(text="src/data.py: Table.load", path="src/data.py", symbol="Table.load")
OLD = Option(text="src/old/data.py: load_all", path="src/old/data.py", symbol="load_all")
OPTIONS = (CONFIG, DATA, OLD)


def understood(text: str, options: tuple[Option, ...] = OPTIONS) -> Reply:
    return read_reply(text, options, question="What does load do?")


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("1", [CONFIG]),
        (" 2. ", [DATA]),
        ("(3)", [OLD]),
        ("#2", [DATA]),
        ("option 2", [DATA]),
        ("opção 2", [DATA]),
        ("1 and 3", [CONFIG, OLD]),
        ("1, 2", [CONFIG, DATA]),
        ("the second one", [DATA]),
        ("first", [CONFIG]),
        ("a terceira", [OLD]),
        ("la última", [OLD]),
        ("src/config.py: load", [CONFIG]),
        ("SRC/CONFIG.PY: LOAD", [CONFIG]),
        ("src/data.py", [DATA]),
        ("`src/data.py`", [DATA]),
        ("Table.load", [DATA]),
        ("Table.load()", [DATA]),
        ("load_all", [OLD]),
        ("config.py", [CONFIG]),
        ("data.py", [DATA, OLD]),
        ("the one in src/config.py, please", [CONFIG]),
        ("I mean the table", [DATA]),
        ("the old one", [OLD]),
        ("old", [OLD]),
    ],
)
def test_a_number_a_place_a_path_a_symbol_or_words_choose(text: str, chosen: list[Option]) -> None:
    assert understood(text) == Reply(meaning=Meaning.CHOSEN, chosen=chosen)


@pytest.mark.parametrize("text", ["all", "Both.", "any of them", "todas", "ambos", "whichever"])
def test_all_of_them_is_understood(text: str) -> None:
    assert understood(text) == Reply(meaning=Meaning.ALL)


@pytest.mark.parametrize("text", ["none", "No", "neither", "none of these", "nenhum", "ninguna"])
def test_none_of_them_is_understood(text: str) -> None:
    assert understood(text) == Reply(meaning=Meaning.NONE)


@pytest.mark.parametrize("text", ["0", "4", "99", "-1", "?", "…", "{}", "[]", "\u200b", "what"])
def test_what_says_nothing_is_unclear(text: str) -> None:
    assert understood(text) == Reply(meaning=Meaning.UNCLEAR)


@pytest.mark.parametrize("text", ["banana", "the network thing", "null", "False", "load the gun"])
def test_other_words_are_words(text: str) -> None:
    assert understood(text) == Reply(meaning=Meaning.WORDS)


def test_without_options_nothing_is_chosen() -> None:
    assert understood("1", ()) == Reply(meaning=Meaning.UNCLEAR)
    assert understood("the session", ()) == Reply(meaning=Meaning.WORDS)
    assert understood("last", ()).meaning is not Meaning.CHOSEN


def test_a_place_beyond_the_options_chooses_nothing() -> None:
    assert understood("the fifth one").meaning is not Meaning.CHOSEN


def test_a_reply_of_any_length_is_read_in_time() -> None:
    assert understood("1 " * 2_000).meaning is not Meaning.CHOSEN
    assert understood("`" * 4_000) == Reply(meaning=Meaning.UNCLEAR)
