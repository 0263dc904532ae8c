import pytest

from ibid.retrieval.path_prior import WEIGHT_BESIDE_SOURCE, PathPrior

BESIDE = [
    "tests/app.py",
    "src/test_app.py",
    "app_test.go",
    "web/app.spec.ts",
    "src/AppTest.java",
    "conftest.py",
    "examples/run.py",
    "docs/api.html",
    "README",
    "guide/intro.md",
    "CHANGES.rst",
    "pyproject.toml",
    "LICENSE",
]
SOURCE = ["src/app.py", "src/testing.py", "lib/contest.rs", "latest/doc.go", "src/configure.c", "a"]


@pytest.mark.parametrize("path", BESIDE)
def test_what_is_beside_the_source_weighs_less(path: str) -> None:
    assert PathPrior("How is a session opened?").weight(path) == WEIGHT_BESIDE_SOURCE


@pytest.mark.parametrize("path", SOURCE)
def test_source_weighs_in_full(path: str) -> None:
    assert PathPrior("How is a session opened?").weight(path) == 1


@pytest.mark.parametrize(
    ("question", "full", "less"),
    [
        ("Which tests cover sessions?", "tests/test_app.py", "docs/app.rst"),
        ("What does the documentation say?", "docs/app.rst", "tests/test_app.py"),
        ("Is there an example of a blueprint?", "examples/app.py", "tests/test_app.py"),
        ("What does the changelog say of 2.0?", "CHANGELOG", "tests/test_app.py"),
        ("Which configuration file names the package?", "setup.cfg", "tests/test_app.py"),
        ("¿Qué pruebas hay?", "tests/test_app.py", "docs/app.rst"),
    ],
)
def test_the_kind_that_a_question_asks_for_weighs_in_full(
    question: str, full: str, less: str
) -> None:
    prior = PathPrior(question)

    assert (prior.weight(full), prior.weight(less)) == (1, WEIGHT_BESIDE_SOURCE)


def test_a_path_of_two_kinds_is_in_full_if_either_is_asked_for() -> None:
    path = "tests/README.md"

    assert PathPrior("the docs").weight(path) == PathPrior("the tests").weight(path) == 1
    assert PathPrior("the code").weight(path) == WEIGHT_BESIDE_SOURCE


def test_a_word_that_only_begins_like_a_kind_asks_for_nothing() -> None:
    prior = PathPrior("How is the latest contest attested by a docker container?")

    assert prior.weight("tests/a.py") == prior.weight("docs/a.md") == WEIGHT_BESIDE_SOURCE
