"""Splitting an answer: what is code, what is quoted, what is prose."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ibid.graphs.answer.markdown import split_blocks


def _shape(text: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in split_blocks(text)]


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("", []),
        ("\n \n", []),
        ("one\ntwo\n\nthree", [("paragraph", "one\ntwo"), ("paragraph", "three")]),
        ("a\n- b\n- c", [("paragraph", "a"), ("paragraph", "- b"), ("paragraph", "- c")]),
        ("a\n## b\nc", [("paragraph", "a"), ("paragraph", "## b\nc")]),
        ("a\n```py\nb\n\nc\n```\nd", [("paragraph", "a"), ("fence", "b\n\nc"), ("paragraph", "d")]),
        ("~~~\n```\n~~~", [("fence", "```")]),
        ("````\n```\n````", [("fence", "```")]),
        ("```\nnever closed\n\n[1]", [("fence", "never closed\n\n[1]")]),
        ("```not a fence` x", [("paragraph", "```not a fence` x")]),
        ("   ```\n   x\n   ```", [("fence", "   x")]),
        ("> a\n>b\nc", [("quote", "a\nb"), ("paragraph", "c")]),
        ("> a\n\n> b", [("quote", "a"), ("quote", "b")]),
        ("```\n> a\n```\n", [("fence", "> a")]),
    ],
)
def test_blocks(text: str, blocks: list[tuple[str, str]]) -> None:
    assert _shape(text) == blocks


def test_a_block_knows_how_many_blank_lines_stand_before_it() -> None:
    blocks = split_blocks("a\n\n\nb\n```\nc\n```\n- d")

    assert [block.blank_before for block in blocks] == [0, 2, 0, 0]
    assert [block.starts_list_item for block in blocks] == [False, False, False, True]


@pytest.mark.parametrize(
    ("text", "spans", "prose"),
    [
        ("a `b` c", ["b"], "a \0\0\0 c"),
        ("``a ` b`` c", ["a ` b"], "\0" * 9 + " c"),
        ("`open [1]", [], "`open [1]"),
        ("`a\nb` [1]", ["a\nb"], "\0" * 5 + " [1]"),
        (r"\`a` b `c`", ["b"], "\\`a\0\0\0\0\0c`"),
        ("`` a ` b", [], "`` a ` b"),
    ],
)
def test_code_spans_are_masked_and_kept(text: str, spans: list[str], prose: str) -> None:
    (block,) = split_blocks(text)

    assert list(block.code_spans) == spans
    assert block.prose == prose


def test_code_spans_do_not_reach_over_a_paragraphs_end() -> None:
    assert all(not block.code_spans for block in split_blocks("a ` b\n\nc ` d\n- e ` f\n- g ` h"))


def test_a_fence_within_a_block_quote_is_masked() -> None:
    (block,) = split_blocks("> a [1]\n> ```\n> b [2]\n> ```\n> c [3]")

    assert block.prose == "a [1]\n\0\0\0\n\0\0\0\0\0\n\0\0\0\nc [3]"


@given(st.text(alphabet="a`~> \n[1]-#\\", max_size=60))
def test_masking_keeps_lengths_and_line_ends(text: str) -> None:
    for block in split_blocks(text):
        assert len(block.prose) == len(block.text)
        if block.kind != "fence":
            unmasked = zip(block.prose, block.text, strict=True)
            assert all(prose in {"\0", char} for prose, char in unmasked)


@given(
    st.lists(
        st.one_of(
            st.text(alphabet="ab`1[]", max_size=12),
            st.sampled_from(["", "```", "````", "~~~", "```py", "a `b` c", "``x`y``"]),
        ),
        max_size=10,
    )
)
@settings(max_examples=300)
def test_fences_and_code_spans_are_those_of_commonmark(lines: list[str]) -> None:
    text = "\n".join(lines)
    tokens = MarkdownIt("commonmark").disable(["link", "reference", "escape"]).parse(text)
    fences = [token.content.rstrip("\n") for token in tokens if token.type == "fence"]
    spans = [
        child.content.strip()
        for token in tokens
        for child in token.children or ()
        if child.type == "code_inline"
    ]

    blocks = split_blocks(text)

    assert [block.text.rstrip("\n") for block in blocks if block.kind == "fence"] == fences
    assert [span.replace("\n", " ") for block in blocks for span in block.code_spans] == spans
