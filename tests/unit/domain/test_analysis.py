import threading
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibid.domain import analysis
from ibid.domain.analysis import LONGEST_WORD, analyse, pairs


def english(text: str) -> list[str]:
    return analyse(text, language="english")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("getUserName", ["getusernam", "get", "user", "name"]),
        ("get_user_name", ["get_user_nam", "get", "user", "name"]),
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("__init__", ["__init__", "init"]),
        ("_private", ["_privat", "privat"]),
        ("x86_64", ["x86_64", "x", "86", "64"]),
        ("Flask.route('/a-b')", ["flask", "rout", "b"]),
        ("ÉtatCivil", ["etatcivil", "etat", "civil"]),
        ("3.11 and 1,000", ["3.11", "1,000"]),
        ("_ ___", []),
    ],
)
def test_an_identifier_is_found_whole_and_by_its_parts(text: str, words: list[str]) -> None:
    assert english(text) == words


def test_stop_words_give_nothing_and_stems_meet() -> None:
    assert english("The requests are to be retried") == english("request retry")
    assert analyse("las sesiones de la conexión", language="spanish") == ["sesion", "conexion"]


def test_accents_go_after_stemming() -> None:
    assert analyse("naïve café", language="other") == ["naive", "cafe"]
    assert analyse("está", language="spanish") == []


def test_a_language_without_a_list_is_neither_stopped_nor_stemmed() -> None:
    assert analyse("The running sessions", language="other") == ["the", "running", "sessions"]
    assert analyse("The running sessions", language="klingon") == ["the", "running", "sessions"]


def test_chinese_japanese_and_korean_are_found_by_pairs_of_characters() -> None:
    assert english("关闭会话 x") == ["关闭", "闭会", "会话", "x"]
    assert english("会") == ["会"]
    assert english("セッション") == ["セッ", "ッシ", "ショ", "ョン"]


def test_decomposed_and_composed_accents_are_one_word() -> None:
    word = "México"

    assert english(unicodedata.normalize("NFD", word)) == english(word) == ["mexico"]


def test_marks_do_not_part_a_word() -> None:
    assert analyse("हिन्दी में", language="other") == ["हिनदी", "में"]


def test_a_run_of_data_is_one_word_cut_short() -> None:
    assert english("aB3" * 1_000) == [("ab3" * 1_000)[:LONGEST_WORD]]


@pytest.mark.parametrize(
    "unit", ["A", "aA", "_", "a_", "1.", "1,1", "漢", "漢a", "\u0301\u0327", "İ", "क\u094d", "é_"]
)
def test_any_hundred_thousand_characters_give_no_more_words_than_characters(unit: str) -> None:
    text = unit * (100_000 // len(unit))

    assert len(english(text)) <= len(text)


def test_a_full_memory_forgets_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "_MEMO_WORDS", 2)

    assert english("alpha beta gamma delta alpha") == ["alpha", "beta", "gamma", "delta", "alpha"]


def test_threads_analyse_alike() -> None:
    text = "Sessions are opened by getSession and closed by closing_session " * 50
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(english(text))) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [english(text)] * 4


@settings(deadline=None)
@given(st.text(max_size=300), st.sampled_from(["english", "spanish", "german", "other"]))
def test_words_are_not_empty_and_hold_no_space(text: str, language: str) -> None:
    words = analyse(text, language=language)

    assert all(word and not any(letter.isspace() for letter in word) for word in words)


@settings(deadline=None)
@given(st.lists(st.text(alphabet="abAB_1é漢 .", max_size=20), max_size=6))
def test_lines_are_analysed_alike_alone_and_together(lines: list[str]) -> None:
    together = english("\n".join(lines))

    assert together == [word for line in lines for word in english(line)]


def test_pairs_are_the_adjacent_words() -> None:
    assert pairs(["a", "b", "c"]) == ["a b", "b c"]
    assert pairs(["a"]) == pairs([]) == []
