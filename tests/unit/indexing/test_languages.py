import pytest

from ibid.indexing.grammars import GRAMMARS, grammar_name
from ibid.indexing.languages import language_of


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("src/a.py", "python"),
        ("a/B.JAVA", "java"),
        ("Makefile", "makefile"),
        ("deploy/Dockerfile.prod", "dockerfile"),
        ("app.module.tsx", "typescript"),
        ("LICENSE", "text"),
        ("a.unknown", "text"),
        (".bashrc", "bash"),
        ("notes.ipynb", "jupyter"),
        ("docs/readme.rst", "rst"),
    ],
)
def test_a_name_tells_the_language(path: str, language: str) -> None:
    assert language_of(path) == language


@pytest.mark.parametrize(
    ("line", "language"),
    [
        ("#!/bin/sh", "bash"),
        ("#!/usr/bin/env python3.12", "python"),
        ("#! /usr/bin/env -S LANG=C node --flag", "javascript"),
        ("#!/usr/local/bin/ruby -w", "ruby"),
        ("#!/usr/bin/nothing", "text"),
        ("# a comment", "text"),
    ],
)
def test_the_first_line_tells_it_where_the_name_does_not(line: str, language: str) -> None:
    assert language_of("bin/tool", line) == language
    assert language_of("bin/tool.py", line) == "python"


def test_tsx_and_headers_have_the_grammar_that_reads_them() -> None:
    assert grammar_name("typescript", "a.tsx") == "tsx"
    assert grammar_name("typescript", "a.ts") == "typescript"
    assert grammar_name("c", "a.h") == "cpp"
    assert grammar_name("c", "a.c") == "c"
    assert grammar_name("yaml", "a.yaml") is None


def test_every_language_asked_for_has_a_grammar() -> None:
    asked = "python javascript typescript go rust java c cpp csharp ruby php kotlin bash sql"

    assert set(asked.split()) <= set(GRAMMARS)
