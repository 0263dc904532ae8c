import pytest

from ibid.adapters.models.bullets import quote_in_a_bullet
from ibid.adapters.models.excerpt_units import Unit
from ibid.adapters.models.question_terms import question_terms


def bullet(
    lines: list[str], *, language: str = "python", defines: str = "f", question: str = "retry"
) -> str:
    unit = Unit(
        number=1, kind="code", lines=lines, start_line=1, language=language, defines=defines
    )
    return quote_in_a_bullet(unit, "a", question_terms(question))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["def f():", '    """Do it. Then rest."""'], "- `def f():`: Do it. (`a:1-2` [1])"),
        (
            ["@x", "def f(", "    a,", "):", '    """Do it', "    well.", "", '    Args."""'],
            "- `f`: Do it well. (`a:2-6` [1])",
        ),
        (
            ["def f():", '    """', "    Do it", "", '    More."""'],
            "- `def f():`: Do it (`a:1-3` [1])",
        ),
        (["def f():", '    """See [1]."""'], "- `def f():`: `See [1].` (`a:1-2` [1])"),
        (["# Do it.", "def f():", "    x = 1"], "- `def f():`: Do it. (`a:1-2` [1])"),
        (["def f():", '    """As in lib/x.py."""'], "- `def f():` (`a:1-1` [1])"),
        (["@x", "def f():", "    x = 1", "    retry()"], "- `f`: `retry()` (`a:4-4` [1])"),
        (["@x", "def f():", "    x = 1"], "- `def f():` (`a:2-2` [1])"),
    ],
)
def test_a_definition_s_bullet_tells_what_it_does_and_just_where(
    lines: list[str], said: str
) -> None:
    assert bullet(lines) == said


def test_a_comment_above_tells_in_other_languages() -> None:
    lines = ["/**", " * Does it.", " */", "function f() {", "}"]

    assert bullet(lines, language="javascript") == "- `function f() {`: Does it. (`a:1-4` [1])"


def test_statements_are_told_by_the_line_that_answers_and_not_by_an_import() -> None:
    lines = ["from x import retry", "a = 1", "b = retry()"]

    assert bullet(lines, defines="") == "- `b = retry()` (`a:3-3` [1])"
    assert bullet(lines[:1], defines="") == "- `from x import retry` (`a:1-1` [1])"


def test_lines_after_a_gap_keep_their_numbers() -> None:
    unit = Unit(
        number=2, kind="prose", lines=["| a |", "| `retry` |"], start_line=5, gap=(1, 7), head=1
    )

    assert quote_in_a_bullet(unit, "a", question_terms("retry")) == (
        "- ``| `retry` |`` (`a:13-13` [2])"
    )


def test_a_bullet_of_nothing_that_can_be_shown_names_the_place_alone() -> None:
    unit = Unit(number=1, kind="code", lines=["}", "import 'lib/x.js'"], start_line=1)

    assert quote_in_a_bullet(unit, "a.js", question_terms("x")) == "- `a.js:1-2` [1]"
