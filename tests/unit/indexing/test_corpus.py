"""Reading a source twice, though it changes in between."""

from collections import Counter
from pathlib import Path

from ibid.indexing.corpus import Corpus, SourceDigest
from ibid.indexing.fetched import Fetched
from ibid.indexing.skips import SkipReason


def write(root: Path, files: dict[str, bytes]) -> None:
    for path, data in files.items():
        (root / path).write_bytes(data)


def surveyed(root: Path) -> tuple[Corpus, str]:
    corpus, digest = Corpus(Fetched(root=root)), SourceDigest()
    corpus.look_at(corpus.find(), digest)
    return corpus, digest.with_embedder("e")


def read(corpus: Corpus) -> tuple[list[str], str, Counter[str]]:
    digest, fallbacks = SourceDigest(), Counter[str]()
    paths = [chunks[0].file_path for chunks in corpus.chunks(digest, fallbacks)]
    return paths, digest.with_embedder("e"), fallbacks


def test_both_readings_of_a_quiet_source_have_one_digest(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": b"x = 1\n", "b.md": b"# T\n", "c.bin.txt": b"\0", "d.ipynb": b"{"})

    corpus, digest = surveyed(tmp_path)

    assert corpus.survey.skipped == {SkipReason.BINARY: 1}
    assert read(corpus) == (["a.py", "b.md", "d.ipynb"], digest, Counter(not_a_notebook=1))


def test_the_digest_tells_bytes_paths_and_embedders_apart(tmp_path: Path) -> None:
    digests = set()
    for path, data in (("a.py", b"x = 1\n"), ("a.py", b"x = 2\n"), ("b.py", b"x = 2\n")):
        write(tmp_path, {path: data})
        digests.add(surveyed(tmp_path)[1])
        (tmp_path / path).unlink()

    assert len(digests) == 3
    assert SourceDigest().with_embedder(None) != SourceDigest().with_embedder("e")


def test_a_generation_has_the_digest_of_what_was_really_cut(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": b"x = 1\n", "b.py": b"x = 1\n", "c.py": b"x = 1\n", "d.py": b"x\n"})
    corpus, before = surveyed(tmp_path)

    write(tmp_path, {"a.py": b"x = 2\n", "b.py": b"\0", "c.py": b"y" * 1_000_001})
    (tmp_path / "d.py").unlink()
    paths, digest, _ = read(corpus)

    assert paths == ["a.py"]
    assert digest not in {before, ""}
    (tmp_path / "b.py").unlink()
    (tmp_path / "c.py").unlink()
    assert surveyed(tmp_path)[1] == digest


def test_prose_and_comments_tell_the_language_and_code_does_not(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.py": b"# Esto es un comentario.\ndel la, los, de\n",
            "b.md": b"Hola a todos.\n",
            "c.go": b"package x\n",
        },
    )

    corpus, _ = surveyed(tmp_path)

    assert corpus.survey.samples == ["Esto es un comentario.", "Hola a todos.\n"]
