"""What an indexed file holds must not steer a terminal."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from ibid.cli.terminal import printable


def test_an_escape_sequence_is_disarmed() -> None:
    assert printable("\x1b]0;owned\x07 \x1b[2J") == "\ufffd]0;owned\ufffd \ufffd[2J"


def test_a_right_to_left_override_is_disarmed() -> None:
    assert printable("a\u202eb") == "a\ufffdb"


def test_lines_tabs_scripts_and_joined_emoji_stay() -> None:
    text = "a\tb\nñ 漢字 👩\u200d💻"

    assert printable(text) == text


@given(st.text())
def test_nothing_printed_is_a_control_character(text: str) -> None:
    shown = printable(text)

    assert len(shown) == len(text)
    assert all(char in "\n\t" or unicodedata.category(char) not in {"Cc", "Cs"} for char in shown)
