"""The five warnings, each exactly where it applies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.domain.answers import GroundingWarning, HistoryTurn
from ibid.graphs.answer.warnings import (
    grounding_warnings,
    names_unknown_path,
    names_unknown_symbol,
)
from tests.unit.graphs.answer.turns import passage

FOUND = (passage(), passage("import os", file_path=".github/workflows/ci.yml", symbol=""))


def _warn(
    answer: str = "It runs [1].",
    *,
    found: tuple[object, ...] = FOUND,
    searched: bool = True,
    cited: tuple[int, ...] = (1,),
    evidence_ok: bool | None = True,
) -> tuple[GroundingWarning, ...]:
    return grounding_warnings(
        answer,
        [one for one in FOUND if one in found],
        searched=searched,
        cited_indexes=cited,
        evidence_ok=evidence_ok,
        question="How?",
        history=(),
    )


def test_a_grounded_answer_has_none() -> None:
    assert _warn() == ()


def test_a_turn_that_never_searched_has_none_whatever_it_says() -> None:
    assert _warn("`nope` in x/y.py", searched=False, found=(), cited=(), evidence_ok=False) == ()


def test_nothing_found_stands_alone() -> None:
    assert _warn("`nope` in x/y.py", found=(), cited=(), evidence_ok=False) == (
        GroundingWarning.NO_CONTEXT,
    )


def test_all_others_come_together_in_their_order() -> None:
    assert _warn("`nope` in x/y.py", cited=(), evidence_ok=False) == (
        GroundingWarning.UNCITED_ANSWER,
        GroundingWarning.UNKNOWN_PATHS,
        GroundingWarning.UNKNOWN_SYMBOLS,
        GroundingWarning.WEAK_EVIDENCE,
    )


def test_evidence_that_nobody_judged_is_not_weak() -> None:
    assert _warn(evidence_ok=None) == ()


@pytest.mark.parametrize(
    "answer",
    [
        "In src/app.py.",
        "In `src/app.py:10-12`, and (src/app.py).",
        "In ./src/app.py and /src/app.py and ../src/app.py",
        "In .github/workflows/ci.yml, workflows/ci.yml",
        "See https://example.com/a/b.html and www.example.com/x/y.js.",
        "Clone git@github.com:acme/app.git or ssh://host/a/b.git",
        "app.py, and/or, 1/2, src/, a/b, v1/2.0, either/or.",
        "A hidden src/.env has no extension.",
        "```\n    serve(port)\n```",
        "",
    ],
)
def test_known_paths_urls_and_what_is_no_path_are_fine(answer: str) -> None:
    assert not names_unknown_path(answer, FOUND)


@pytest.mark.parametrize(
    "answer",
    [
        "In src/main.py.",
        "In lib/src/app.py",
        "In rc/app.py",
        "In `src/app.pyc`",
        "In SRC/APP.PY",
        "**lib/util.ts**",
        "[x](docs/guide.md)",
        "```\npython scripts/run.py\n```",
        "https://example.com/ and docs/guide.md",
    ],
)
def test_a_path_that_ends_no_retrieved_path_is_found(answer: str) -> None:
    assert names_unknown_path(answer, FOUND)


def test_a_fenced_line_that_a_passage_holds_names_no_path_of_the_answers_own() -> None:
    quoted = passage('open("conf/app.yaml")')

    assert not names_unknown_path('```\n  open("conf/app.yaml")\n```', (quoted,))
    assert names_unknown_path('```\nopen("conf/other.yaml")\n```', (quoted,))


@pytest.mark.parametrize(
    "answer",
    [
        "`run` calls `serve` with `port`.",
        "`App.run()`, `App::run`, `App#run`, `app.py`",
        "`asked_about`, `told_before`, `answered`",
        "`None`, `true`, `self`, `async`",
        "`pip install x`, `--flag`, `200`, `a + b`, `src/app.py`, `nope(x)`, `...`, ``",
        "nope, nope.nope",
        "```\nnope\n```",
    ],
)
def test_known_symbols_and_what_is_none_are_fine(answer: str) -> None:
    assert not names_unknown_symbol(
        answer,
        FOUND,
        question="What is asked_about?",
        history=(HistoryTurn(question="And told_before?", answer="It is `answered`."),),
    )


@pytest.mark.parametrize(
    "answer",
    ["`nope`", "`nope()`", "`App.nope`", "`Run`", "`ru`", "> `nope`", "- `@nope`", "`größe`"],
)
def test_a_symbol_that_stands_nowhere_is_found(answer: str) -> None:
    assert names_unknown_symbol(answer, FOUND, question="How?", history=())


FOLDER = st.from_regex(r"[a-z_][a-z0-9_.-]{0,6}", fullmatch=True)
FILE = st.from_regex(r"[a-z_][a-z0-9_-]{0,6}\.[a-z]{1,4}", fullmatch=True)


@given(folders=st.lists(FOLDER, min_size=2, max_size=5), name=FILE, data=st.data())
def test_every_end_of_a_path_is_known_and_nothing_longer(
    *, folders: list[str], name: str, data: st.DataObject
) -> None:
    found = (passage(file_path="/".join([*folders, name])),)
    first = data.draw(st.integers(min_value=0, max_value=len(folders) - 1))
    end = "/".join([*folders[first:], name])

    assert not names_unknown_path(f"{end}, `{end}`, ({end}:3)", found)
    assert names_unknown_path(f"zz/{end}", found)


@given(word=st.from_regex(r"[a-z_][a-z0-9_]{3,12}", fullmatch=True))
def test_a_symbol_is_known_exactly_if_it_is_a_whole_word_of_a_text(*, word: str) -> None:
    known = (passage(f"x = {word}(1)"),)

    assert not names_unknown_symbol(f"`{word}`", known, question="", history=())
    assert names_unknown_symbol(f"`{word}_zz`", known, question="", history=())


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece",
    ["a/b.c ", "https://", "www.", "a.", "a::", "a/", "`a.b` ", "/", "-", "a", "`", "git@", "\n"],
)
def test_a_hundred_thousand_adversarial_characters_end(piece: str) -> None:
    text = (piece * 100_000)[:99_999] + "x"

    assert isinstance(_warn(text), tuple)
