import json
from typing import Any

import pytest

from ibid.indexing.chunking import chunk_file
from ibid.indexing.notebooks import NotANotebook, notebook_spans

Cell = dict[str, Any]


def notebook(*cells: Cell, **metadata: object) -> Cell:
    return {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def code(*lines: str) -> Cell:
    return {
        "cell_type": "code",
        "execution_count": 1,
        "metadata": {},
        "outputs": [{"data": {"image/png": "iVBOR" * 30_000}, "output_type": "display_data"}],
        "source": list(lines),
    }


def prose(*lines: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": list(lines)}


def test_cells_are_chunks_of_the_files_own_lines_without_outputs() -> None:
    book = notebook(
        prose("# Training\n", "\n", "Some words."),
        code("import os\n", "x = 1"),
        code(),
        prose("## Deeper"),
        code("y = 2"),
    )
    text = json.dumps(book, indent=1)

    chunked = chunk_file("a.ipynb", text, commit_sha=None)

    assert chunked.fallback is None
    assert [(chunk.symbol, chunk.language) for chunk in chunked.chunks] == [
        ("Training", "markdown"),
        ("Training", "python"),
        ("Training.Deeper", "markdown"),
        ("Training.Deeper", "python"),
    ]
    assert chunked.chunks[1].content == '    "import os\\n",\n    "x = 1"'
    lines = text.split("\n")
    for chunk in chunked.chunks:
        assert chunk.content == "\n".join(lines[chunk.start_line - 1 : chunk.end_line])


def test_the_kernels_language_is_the_codes() -> None:
    for metadata in ({"language_info": {"name": "R"}}, {"kernelspec": {"language": "R"}}):
        text = json.dumps(notebook(code("x <- 1"), **metadata), indent=1)

        assert chunk_file("a.ipynb", text, commit_sha=None).chunks[0].language == "r"


def test_source_may_be_one_string() -> None:
    cell = {"cell_type": "code", "source": "a = 1\nb = 2"}
    text = json.dumps(notebook(cell), indent=1)

    chunk = chunk_file("a.ipynb", text, commit_sha=None).chunks[0]

    assert chunk.content.strip() == '"source": "a = 1\\nb = 2"'


def test_a_notebook_on_one_line_is_that_line() -> None:
    text = json.dumps(notebook(prose("# A"), prose("b")))

    spans = notebook_spans([text])

    assert [(span.start, span.end) for span in spans] == [(0, 1)]


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", '{"cells"', '{"cells" 1}', '{"cells": [1]}', "{1: 2}"),
        *('{"cells": [{"source": tru', '{"cells": [], "metadata": ', '{"metadata": 1'),
        '{"cells": ' + "[" * 100_000,
    ],
)
def test_what_is_no_notebook_is_cut_into_windows(text: str) -> None:
    with pytest.raises(NotANotebook):
        notebook_spans(text.split("\n"))

    chunked = chunk_file("a.ipynb", text, commit_sha=None)
    assert chunked.fallback == "not_a_notebook"
    assert bool(chunked.chunks) == bool(text)


def test_a_cell_that_holds_a_picture_is_left_out() -> None:
    text = json.dumps(notebook(prose("![a](data:" + "A" * 60_000), code("x = 1")), indent=1)

    chunked = chunk_file("a.ipynb", text, commit_sha=None)

    assert [chunk.content.strip() for chunk in chunked.chunks] == ['"x = 1"']


def test_an_unknown_kernel_is_taken_for_python() -> None:
    for metadata in ({"language_info": {"name": 1}}, {"kernelspec": "x"}):
        text = json.dumps(notebook(code("x = 1"), **metadata), indent=1)

        assert chunk_file("a.ipynb", text, commit_sha=None).chunks[0].language == "python"
