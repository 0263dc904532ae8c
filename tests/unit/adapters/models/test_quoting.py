from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters.models.excerpt_units import Unit
from ibid.adapters.models.phrases import phrases
from ibid.adapters.models.quoting import (
    code_span,
    fenced,
    is_plain,
    quote,
)
from ibid.graphs.answer.markdown import split_blocks


@pytest.mark.parametrize(
    "line",
    [
        "See [1].",
        "See [the guide](x).",
        "a <b>",
        "an open ` span",
        "an ``open` span",
        "https://example.org",
        "in docs/a.md",
        "    four blanks",
        "# heading",
        "- item",
        "~~~",
        "a \\ b",
        "a\x0cb",
        "a | b",
    ],
)
def test_what_markdown_could_take_for_more_than_words_is_not_plain(line: str) -> None:
    assert not is_plain(["Fine.", line])


@pytest.mark.parametrize("line", ["Words.", "Call `f()` or ``g``.", "`[1]` is code", "a * b", ""])
def test_words_and_closed_code_spans_are_plain(line: str) -> None:
    assert is_plain([line])


@given(st.text(alphabet="`~a\n [1]", min_size=1, max_size=60))
def test_a_fenced_text_can_t_leave_its_fence(text: str) -> None:
    blocks = split_blocks(f"before\n\n{fenced(text, 'text')}\n\nafter")

    assert [block.kind for block in blocks] == ["paragraph", "fence", "paragraph"]
    assert blocks[1].text.split("\n") == text.split("\n")


@given(st.text(alphabet="`a [1]\n\r\t", min_size=1, max_size=40))
def test_a_spanned_text_can_t_leave_its_span(text: str) -> None:
    (block,) = split_blocks(f"x {code_span(text)} y")

    assert "[1]" not in block.prose


def test_a_language_that_is_no_word_is_left_out_of_the_fence() -> None:
    assert fenced("a", "c++") == "```c++\na\n```"
    assert fenced("a", "[1] `") == "```\na\n```"


def test_a_path_s_brackets_stand_in_code() -> None:
    unit = Unit(number=2, kind="prose", lines=["Words."], start_line=3)

    assert quote(unit, "app/[1]/`p`.md", phrases("en")) == (
        "``app/[1]/`p`.md:3-3`` [2]:\n\n> Words."
    )


@pytest.mark.parametrize(
    ("language", "whole", "cut"),
    [
        ("en", "is defined at", "begins at"),
        ("pt-BR", "é definido em", "começa em"),
        ("es-419", "se define en", "empieza en"),
    ],
)
def test_a_definition_that_goes_on_is_said_to_begin_there(
    language: str, whole: str, cut: str
) -> None:
    unit = Unit(number=1, kind="code", lines=["def f():", "    x = 1"], start_line=4, defines="f")
    say = phrases(language)

    assert quote(unit, "a", say) == (f"`f` {whole} `a:4-5` [1]:\n\n```\ndef f():\n    x = 1\n```")
    assert quote(replace(unit, goes_on=True), "a", say) == (
        f"`f` {cut} `a:4-5` [1]:\n\n```\ndef f():\n    x = 1\n    ...\n```"
    )
    assert quote(replace(unit, may_go_on=True), "a", say) == (
        f"`f` {cut} `a:4-5` [1]:\n\n```\ndef f():\n    x = 1\n```"
    )


def test_prose_that_goes_on_ends_with_an_ellipsis() -> None:
    unit = Unit(number=1, kind="prose", lines=["Words."], start_line=3, goes_on=True)

    assert quote(unit, "a", phrases("en")) == "`a:3-3` [1]:\n\n> Words.\n> ..."
