from ibid.indexing.chunking import chunk_text
from ibid.indexing.markdown import headings, markdown_spans

TEXT = """\
---
title: "# not a heading"
---
Intro.

# Quick start

Hello.

```sh
# not a heading
```

Install on Linux v1.2
---------------------

<!--
# not a heading
-->

> # not ours

## Deeper
Text.
# Next
"""


def test_headings_are_those_that_a_reader_sees() -> None:
    assert headings(TEXT.split("\n")) == [
        (5, 1, "Quick start"),
        (13, 2, "Install on Linux v1.2"),
        (22, 2, "Deeper"),
        (24, 1, "Next"),
    ]


def test_a_section_is_named_by_its_headings() -> None:
    spans = markdown_spans(TEXT.split("\n"))

    assert [span.symbol for span in spans] == [
        "",
        "Quick-start",
        "Quick-start.Install-on-Linux-v1-2",
        "Quick-start.Deeper",
        "Next",
    ]


def test_short_sections_under_one_heading_are_joined_with_it() -> None:
    text = "# A z\n\n## B\n\nb\n\n## C\n\nc\n\n# D\n" + "d\n" * 25

    chunks = chunk_text("a.md", text, commit_sha=None)

    assert [(chunk.start_line, chunk.end_line, chunk.symbol) for chunk in chunks] == [
        (1, 9, "A-z A-z.B A-z.C"),
        (11, 36, "D"),
    ]


def test_front_matter_that_never_ends_is_text() -> None:
    assert headings(["---", "# A"]) == [(1, 1, "A")]


def test_a_file_without_headings_is_windows() -> None:
    chunks = chunk_text("a.md", "word\n" * 100, commit_sha=None)

    assert [(chunk.start_line, chunk.end_line) for chunk in chunks] == [(1, 60), (41, 100)]
