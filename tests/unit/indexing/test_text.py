import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.indexing.text import NotText, decode, split_lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\n\n", ["a", ""]),
        ("\n", [""]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\rb", ["a", "b"]),
        ("a\r\r\nb", ["a", "", "b"]),
        ("a\n\rb", ["a", "", "b"]),
        ("a\x0cb\x0bc\x85d\u2028e\u2029f\x1cg", ["a\x0cb\x0bc\x85d\u2028e\u2029f\x1cg"]),
    ],
)
def test_a_line_ends_where_an_editor_ends_it(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines


@given(st.lists(st.text(st.characters(exclude_characters="\r\n")), max_size=8))
def test_lines_joined_by_any_one_end_come_back(lines: list[str]) -> None:
    for end in ("\n", "\r\n", "\r"):
        assert split_lines("".join(line + end for line in lines)) == lines


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        ("naïve ünï\n".encode(), "naïve ünï\n"),
        (codecs.BOM_UTF8 + b"a\r\n", "a\r\n"),
        (codecs.BOM_UTF16_LE + "añ\n".encode("utf-16-le"), "añ\n"),
        (codecs.BOM_UTF16_BE + "añ\n".encode("utf-16-be"), "añ\n"),
        (codecs.BOM_UTF32_LE + "añ\n".encode("utf-32-le"), "añ\n"),
        (codecs.BOM_UTF32_BE + "añ\n".encode("utf-32-be"), "añ\n"),
        ("El niño soñó\n".encode("latin-1"), "El niño soñó\n"),
        (b"\x93quoted\x94 \x80", "\u201cquoted\u201d \u20ac"),
        (b"\x81caf\xe9", "\x81café"),
        ("größer, über, süß".encode() + b" \xff!", "größer, über, süß \ufffd!"),
        (codecs.BOM_UTF16_LE + b"\x00\xd8a\x00", "\ufffda"),
        (b"x" * 9_000 + b"\0y", "x" * 9_000 + "\0y"),
    ],
)
def test_bytes_are_read_as_what_they_most_likely_are(data: bytes, text: str) -> None:
    assert decode(data) == text


def test_a_nul_near_the_beginning_means_no_text() -> None:
    with pytest.raises(NotText):
        decode(b"a\0b")


@given(st.binary(max_size=200))
def test_no_bytes_but_a_nul_break_the_decoding_and_no_surrogate_comes_out(data: bytes) -> None:
    try:
        text = decode(data)
    except NotText:
        assert b"\0" in data
    else:
        text.encode("utf-8")
