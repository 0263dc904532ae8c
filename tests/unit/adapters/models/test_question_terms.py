import pytest

from ibid.adapters.models.question_terms import (
    identifiers,
    own_name,
    proper_names,
    question_terms,
    telling_words,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Where is `parse config` used?", ["parse config"]),
        ("How does url_for differ from urlFor?", ["url_for", "urlFor"]),
        ("app.run() and Flask.run", ["app.run()", "Flask.run"]),
        ("see src/app/main.py and and/or", ["src/app/main.py"]),
        ("what does --no-cache do?", ["--no-cache"]),
        (
            "std::vector, ptr->next, HTTP2, MAX_SIZE, HTTP",
            [
                "std::vector",
                "ptr->next",
                "HTTP2",
                "MAX_SIZE",
                "HTTP",
            ],
        ),
        ("A plain question. Nothing else, e.g. this.", []),
        ("``", []),
    ],
)
def test_what_looks_like_code_is_found_as_typed(text: str, found: list[str]) -> None:
    assert identifiers(text) == found


def test_the_question_s_own_words_tell_nothing() -> None:
    asked = question_terms("Where is the retry policy implemented?")

    assert asked.terms == ["retri", "polici"]
    assert asked.identifiers == []


def test_a_question_word_that_is_code_counts() -> None:
    assert "class" in question_terms("What does `class` mean?").terms


def test_a_question_of_question_words_alone_keeps_them() -> None:
    assert question_terms("How does it work?").terms


def test_a_question_is_parted_where_another_one_begins() -> None:
    asked = question_terms("Where is `foo` defined, and how does bar retry? why")

    assert asked.parts[0] == {"foo"}
    assert asked.parts[1] == {"bar", "retri"}


def test_no_words_at_all_still_make_one_part() -> None:
    asked = question_terms("?!")

    assert asked.terms == []
    assert asked.parts == [frozenset()]


def test_telling_words_are_as_typed() -> None:
    assert telling_words("Where are the Retries delayed?") == ["Retries", "delayed"]


@pytest.mark.parametrize(
    ("identifier", "name"),
    [
        ("run", "run"),
        ("Flask.run()", "run"),
        ("std::vector", "vector"),
        ("ptr->next", "next"),
        ("src/app/main.test.py", "main"),
        ("src/", ""),
    ],
)
def test_an_identifier_s_own_name_is_its_last_part(identifier: str, name: str) -> None:
    assert own_name(identifier) == name


def test_names_are_terms() -> None:
    assert question_terms("Where are Flask.run_all and src/helpers.py?").names == {
        "run_al",
        "helper",
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Where is the Kubernetes operator?", ["Kubernetes"]),
        ("Blueprint: where is it? What is it (Flask) for, Redis?", ["Flask", "Redis"]),
        ("¿Qué es un Blueprint en S3 o la UI?", ["Blueprint", "S3", "UI"]),
        ("JSON or not? I do. Where?", ["JSON"]),
        ("How Does Flask Handle Sessions?", []),
        (
            "Wo wird die Sitzung von der Klasse gespeichert und was macht das?",
            [],
        ),
        ("see `Some Code` there", []),
    ],
)
def test_a_capital_inside_a_sentence_or_an_acronym_is_a_name(text: str, found: list[str]) -> None:
    assert proper_names(text) == found


def test_a_name_within_an_identifier_is_no_name_of_its_own() -> None:
    asked = question_terms("Where is Flask.run in the Config?")

    assert (asked.identifiers, asked.proper_names) == (["Flask.run"], ["Config"])
    assert asked.names == {"run", "config"}
