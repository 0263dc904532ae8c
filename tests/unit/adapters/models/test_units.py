"""How passages are cut into what can be quoted."""

from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters.models.cutting import units_of
from ibid.adapters.models.excerpt_units import Unit
from ibid.domain.passages import Passage


def cut(content: str, language: str) -> list[Unit]:
    passage = Passage(
        file_path="a",
        start_line=10,
        end_line=10 + content.count("\n"),
        language=language,
        symbol="",
        content=content,
        commit_sha=None,
        score=1.0,
        cosine=None,
    )
    return units_of(passage, 1)


def places(units: list[Unit]) -> list[tuple[int, int, str]]:
    return [(unit.start_line, unit.end_line, unit.defines) for unit in units]


def test_code_is_cut_at_definitions_with_what_stands_above_them() -> None:
    units = cut(
        "import os\n\n# Of the shop\n@dataclass\nclass Cart:\n    n: int\n\n"
        "    @property\n    def total(self):\n        return 1\n\nLIMIT = 3\nrun()",
        "python",
    )

    assert places(units) == [(10, 10, ""), (12, 15, "Cart"), (17, 19, "total"), (21, 22, "LIMIT")]


def test_a_brace_after_a_signature_belongs_to_it() -> None:
    units = cut("int f(int x)\n{\n    return x;\n}\n\nint g;", "c")

    assert places(units) == [(10, 13, "f"), (15, 15, "")]


def test_statements_are_cut_at_blank_lines_and_when_they_are_many() -> None:
    units = cut("a()\nb()\n\nc()\n" + "\n".join(f"d({n})" for n in range(20)), "python")

    assert [(start, end) for start, end, _ in places(units)] == [(10, 11), (13, 26), (27, 33)]


def test_prose_is_cut_into_paragraphs_items_and_code_under_their_headings() -> None:
    units = cut(
        "# Top\nIntro one\nIntro two.\n\n## Sub ##\n- first\n  goes on\n- second\n\n"
        "```bash\nmake\n\nrun\n```\nEnd",
        "markdown",
    )

    assert [(unit.kind, unit.text, unit.heading, unit.language) for unit in units] == [
        ("prose", "Intro one\nIntro two.", "Top", "markdown"),
        ("prose", "- first\n  goes on", "Top Sub", "markdown"),
        ("prose", "- second", "Top Sub", "markdown"),
        ("code", "make\n\nrun", "Top Sub", "bash"),
        ("prose", "End", "Top Sub", "markdown"),
    ]


def test_an_underlined_line_is_a_heading() -> None:
    units = cut("Usage\n=====\n\nRun it.\n\n---\n\nMore.", "rst")

    assert [(unit.text, unit.heading) for unit in units] == [
        ("Run it.", "Usage"),
        ("---", "Usage"),
        ("More.", "Usage"),
    ]


def test_a_fence_that_is_cut_off_runs_to_the_end() -> None:
    units = cut("Text\n~~~\ncode\n```\nmore", "markdown")

    assert [(unit.kind, unit.text) for unit in units] == [
        ("prose", "Text"),
        ("code", "code\n```\nmore"),
    ]


def test_an_empty_fence_and_blank_lines_are_nothing() -> None:
    assert cut("```\n```\n\n  \n", "markdown") == []
    assert cut("\n\n", "python") == []


LINES = st.lists(
    st.sampled_from(
        [
            "",
            "  ",
            "def f():",
            "    x = 1",
            "# note",
            "}",
            "@a",
            "- item",
            "```",
            "~~~ py",
            "# H",
            "===",
            "text",
            "a = 1",
            "class C {",
            "\t",
        ]
    ),
    min_size=1,
    max_size=40,
)


@given(LINES, st.sampled_from(["python", "markdown"]))
def test_units_are_whole_lines_of_the_passage_and_never_overlap(
    lines: list[str], language: str
) -> None:
    units = cut("\n".join(lines), language)

    after = 10
    for unit in units:
        assert unit.start_line >= after
        assert [*unit.lines] == lines[unit.start_line - 10 : unit.end_line - 9]
        assert unit.text.strip()
        after = unit.end_line + 1
    if language == "python":  # nothing but blank lines is lost
        assert sum(bool(line.strip()) for line in lines) == sum(
            bool(line.strip()) for unit in units for line in unit.lines
        )


def test_a_function_that_holds_but_another_one_is_one_unit_with_it() -> None:
    units = cut("def deco(f):\n    def inner():\n        return f()\n    return inner", "python")

    assert places(units) == [(10, 13, "deco")]


def test_a_definition_tells_whether_it_goes_on() -> None:
    code = (
        "class A:\n    x = 1\n    y = 2\n    z = 3\n\n    def f(self):\n        return 1\n\n"
        "def g():\n    return 2\n\ndef h(\n    a,"
    )
    last = cut("class B:\n    x = 1", "python")
    closed = cut("struct b {\n  int x;\n}", "c")

    units = cut(code, "python")

    assert [unit.goes_on for unit in units] == [True, False, False, True]
    assert [unit.may_go_on for unit in [*units, *last, *closed]] == [False] * 4 + [True, False]
