import hashlib

from ibid.domain.chunks_header import bm25_header, content_hash, embedded_text, header


def test_a_header_names_the_path_then_the_symbol() -> None:
    assert header("src/app.py", "App.run") == "src/app.py App.run"
    assert header("README.md", "") == "README.md"


def test_a_header_is_the_first_line_of_what_is_embedded() -> None:
    assert embedded_text("a.py", "f", "def f():\n  pass") == "a.py f\ndef f():\n  pass"


def test_a_paths_segments_are_words_to_bm25() -> None:
    assert bm25_header("src/my-app/a.py", "App.run") == "src my app a py App run"


def test_equal_hashes_mean_equal_embedded_texts() -> None:
    expected = hashlib.sha256(embedded_text("a.py", "f", "x").encode()).hexdigest()

    assert content_hash(header("a.py", "f"), "x") == expected
    assert content_hash(header("b.py", "f"), "x") != expected
    assert content_hash("\udcff", "lone surrogates of a file name are hashed as well")
