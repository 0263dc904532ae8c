"""What holds for every chunk of every text: it is its lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.domain.chunks_header import content_hash, header
from ibid.indexing.chunking import chunk_file, chunk_text
from ibid.indexing.spans import MAX_CHARACTERS, Span, fit, windows
from ibid.indexing.text import split_lines

PATHS = [
    "a.py",
    "a.js",
    "a.tsx",
    "a.go",
    "a.rs",
    "A.java",
    "a.c",
    "a.cpp",
    "A.cs",
    "a.rb",
    "a.php",
    "a.kt",
    "a.sh",
    "a.sql",
    "a.md",
    "a.ipynb",
    "a.txt",
    "a.yaml",
]
PIECES = st.sampled_from(
    [
        "def f():",
        "class A {",
        "class B:",
        "    x = 1",
        "}",
        "end",
        "# c",
        "// c",
        "/*",
        "*/",
        '"""',
        "```",
        "## h",
        "===",
        "---",
        "function g() { return 1 }",
        "{" * 30,
        "\x0c",
        "\x85",
        "\u2028",
        "\ufeff",
        "é😀\u202e",
        "",
        "   ",
        '{"cells": [{"cell_type": "code", "source": [',
        "a" * 9_000,
    ]
)
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\n" * 20, ""])
TEXTS = st.lists(st.tuples(PIECES, ENDS), max_size=120).map(
    lambda parts: "".join(piece + end for piece, end in parts)
)


@given(st.sampled_from(PATHS), TEXTS)
def test_a_chunk_is_exactly_its_lines_and_none_is_lost(path: str, text: str) -> None:
    lines = split_lines(text)

    chunks = chunk_text(path, text, commit_sha="c0ffee")

    covered = set()
    for index, chunk in enumerate(chunks):
        assert chunk.chunk_index == index
        assert 1 <= chunk.start_line <= chunk.end_line <= len(lines)
        assert chunk.content == "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
        assert chunk.content_hash == content_hash(header(path, chunk.symbol), chunk.content)
        assert len(chunk.content) <= MAX_CHARACTERS or chunk.start_line == chunk.end_line
        assert chunk.content.strip()
        covered |= set(range(chunk.start_line, chunk.end_line + 1))
    starts = [chunk.start_line for chunk in chunks]
    assert starts == sorted(starts)
    left_out = {
        line.strip()
        for number, line in enumerate(lines, 1)
        if number not in covered and any(character.isalnum() for character in line)
    }
    assert path == "a.ipynb" or left_out <= {"end"}


@given(st.sampled_from(PATHS), TEXTS)
def test_the_ends_of_lines_change_no_chunk(path: str, text: str) -> None:
    plain = "".join(line + "\n" for line in split_lines(text))

    assert chunk_text(path, plain, commit_sha=None) == chunk_text(path, text, commit_sha=None)


@pytest.mark.parametrize("path", PATHS)
def test_a_text_of_no_lines_or_of_white_space_has_no_chunk(path: str) -> None:
    for text in ("", "\n", " \n\t\n\x0c\n"):
        assert chunk_file(path, text, commit_sha=None).chunks == []


def test_one_line_of_900_kilobytes_is_one_chunk_and_shifts_nothing() -> None:
    chunks = chunk_text("a.txt", "one\n" + "x" * 900_000 + "\nthree", commit_sha=None)

    assert [(chunk.start_line, chunk.end_line) for chunk in chunks] == [(1, 1), (2, 2), (3, 3)]


def test_windows_overlap_and_reach_the_end() -> None:
    assert list(windows(10, 40)) == [(10, 40)]
    assert list(windows(0, 61)) == [(0, 60), (40, 61)]
    assert list(windows(0, 0)) == []


def test_lines_that_only_close_go_to_what_stands_before_them() -> None:
    lines = ["a {", "  b", "}", "", "};"]

    assert fit(lines, [Span(0, 2, "a", "x"), Span(2, 5, "", "")]) == [Span(0, 5, "a", "x")]
    assert fit(["}"], [Span(0, 1)]) == [Span(0, 1)]
