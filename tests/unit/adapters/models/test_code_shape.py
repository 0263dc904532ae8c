from ibid.adapters.models.code_shape import Shape, all_imports, open_lines, shape_of


def test_a_definition_has_a_signature_and_a_docstring() -> None:
    lines = ["@x", "def f(", "    a,", "):", "    '''Do.", "", "    It.", "    '''", "    y()"]

    assert shape_of(lines, "f", "python") == Shape(line=1, signature=4, docstring=8)
    assert shape_of(lines[:7], "f", "python") == Shape(line=1, signature=4, docstring=7)
    assert shape_of(lines[:4], "f", "python") == Shape(line=1, signature=4, docstring=4)


def test_a_signature_without_an_end_is_its_first_line() -> None:
    assert shape_of(["type A int", "x"], "A", "go") == Shape(line=0, signature=1, docstring=1)


def test_a_name_that_the_first_lines_do_not_define_has_no_shape() -> None:
    assert shape_of(["# note"] * 20 + ["def f():"], "f", "python") is None


def test_quotes_and_brackets_are_open_until_they_are_closed() -> None:
    lines = ['"""Do ((.', "it '''", '"""', "f(", "  [", "  ],", ")", "'''one'''"]

    assert open_lines(lines) == [True, True, False, True, True, True, False, False]


def test_imports_alone_are_told_from_statements() -> None:
    assert all_imports(["import a", "", "from b import (", ")"])
    assert not all_imports(["import a", "a.b()"])
