"""Odd files through the whole pipeline into the embedded index: none breaks it, no line shifts."""

import os
from pathlib import Path

from dulwich import porcelain
from dulwich.repo import Repo

from ibid.adapters.sqlite.index import SqlitePassageIndex
from ibid.domain.passages import Chunk
from ibid.domain.projects import JobState
from ibid.indexing.pipeline import ProjectIndexer
from ibid.indexing.text import decode, split_lines
from tests.fakes.clock import FakeClock
from tests.unit.indexing.world import OWNER, PROJECT, TENANT, World

AUTHOR = b"A Person <person@example.org>"
LINES = ["def one():", "    return 'ñandú'", "", "def two():", "    return 2"]
FILES: dict[str, bytes] = {
    "crlf.py": "\r\n".join(LINES).encode() + b"\r\n",
    "cr.py": "\r".join(LINES).encode(),
    "bom.py": b"\xef\xbb\xbf" + "\n".join(LINES).encode(),
    "utf16.py": "\n".join(LINES).encode("utf-16"),
    "utf16be.py": b"\xfe\xff" + "\n".join(LINES).encode("utf-16-be"),
    "latin.py": "\n".join(LINES).encode("latin-1"),
    "broken.py": "\n".join(LINES).encode() + "\n# größer übel süß".encode() + b" \xff\xfe\n",
    "feeds.py": "\n\x0c".join(LINES).encode() + "\n# a\x85b\u2028c\x1d".encode(),
    "late_nul.txt": b"word\n" * 2_000 + b"a\0b\n",
    "mixed.py": b"a = 1\r\nb = 2\nc = 3\rd = 4\n\re = 5",
    "no_end.md": b"# T\n\nwords",
    "long.md": b"# T\n" + b"word " * 8_000 + b"\nafter",
    "one line.txt": b"x" * 900_000,
    "min.js": b"var a=1;" * 110_000,
    "nul.py": b"a = 1\n\0\n",
    "blank.txt": b"\r\n \r\n",
    "empty.txt": b"",
    "a b/quo'te\".py": b"a = 1\n",
    "emoji 😀.py": b"b = 1\n",
    "rtl \u202eyp.\u05d0.py": b"c = 1\n",
    "new\nline.py": b"d = 1\n",
    "deep.java": b"class A {" * 5_000,
    "parens.py": b"x = " + b"(" * 40_000,
    "book.ipynb": b'{"cells": [\n{"cell_type": "code",\n "source": [\n"a = 1"\n]}\n]}',
    "bad.ipynb": b'{"cells": [',
}


async def index_all(root: Path, data: Path) -> list[Chunk]:
    world = World(root)
    await world.create()
    index = SqlitePassageIndex(data)
    indexer = ProjectIndexer(
        projects=world.records.projects,
        jobs=world.records.jobs,
        index=index,
        vectors=index,
        embedder=world.embedder,
        objects=world.objects,
        clock=FakeClock(),
    )
    job = await world.begin()
    await indexer.run(job, owner=OWNER)
    ended = await world.records.jobs.get(job.id, tenant=TENANT)
    assert ended.error is None
    assert ended.state is JobState.SUCCEEDED
    assert dict(ended.statistics.skipped) == {
        "binary": 1,
        "empty": 2,
        "minified": 2,
        "odd_name": 2,
    }
    page = await index.scroll(
        tenant=TENANT, project_id=PROJECT, generation=2, path_prefix="", cursor=None, limit=1_000
    )
    await index.close()
    assert page.next_cursor is None
    return list(page.items)


def lay_out(root: Path) -> None:
    for path, data in FILES.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    (root / os.fsdecode(b"bad\xff.py")).write_bytes(b"e = 1\n")


async def test_every_chunk_is_the_lines_of_its_file(tmp_path: Path) -> None:
    root = tmp_path / "root"
    lay_out(root)

    chunks = await index_all(root, tmp_path / "data")

    for chunk in chunks:
        lines = split_lines(decode(FILES[chunk.file_path]))
        assert chunk.content == "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
        assert chunk.commit_sha is None
    left_out = {"one line.txt", "min.js", "nul.py", "blank.txt", "empty.txt", "new\nline.py"}
    assert {chunk.file_path for chunk in chunks} == set(FILES) - left_out
    symbols = {
        path: [(chunk.start_line, chunk.symbol) for chunk in chunks if chunk.file_path == path]
        for path in ("crlf.py", "cr.py", "bom.py", "utf16.py", "utf16be.py", "latin.py")
    }
    assert set(map(tuple, symbols.values())) == {((1, "one"), (4, "two"))}


async def test_a_commit_is_named_only_where_it_holds_the_very_bytes(tmp_path: Path) -> None:
    root = tmp_path / "root"
    lay_out(root)
    with Repo.init(str(root)) as repo:
        porcelain.add(repo, [str(root / "crlf.py"), str(root / "latin.py")])
        sha = porcelain.commit(repo, message=b"one", author=AUTHOR, committer=AUTHOR).decode()
    (root / "latin.py").write_bytes(FILES["latin.py"] + b"\n")

    chunks = await index_all(root, tmp_path / "data")

    assert {chunk.file_path for chunk in chunks if chunk.commit_sha == sha} == {"crlf.py"}
    assert {chunk.commit_sha for chunk in chunks} == {sha, None}
