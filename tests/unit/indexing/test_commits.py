"""Which commit is said to hold a file: only one in which it has the very same bytes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dulwich import porcelain
from dulwich.repo import Repo

from ibid.indexing.commits import head_of

AUTHOR = b"A Person <person@example.org>"


@pytest.fixture
def work_tree(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "tree"
    root.mkdir()
    with Repo.init(str(root)) as repo:
        for path in ("a.py", "sub/é b.py"):
            target = root / path
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(b"x = 1\r\n")
        porcelain.add(repo, [str(root / "a.py"), str(root / "sub" / "é b.py")])
        porcelain.commit(repo, message=b"one", author=AUTHOR, committer=AUTHOR)
        yield root


def head_sha(root: Path) -> str:
    with Repo(str(root)) as repo:
        return repo.head().decode("ascii")


def test_a_file_as_committed_is_held_and_a_changed_or_new_one_is_not(work_tree: Path) -> None:
    head = head_of(work_tree)

    assert head is not None
    assert head.commit_sha == head_sha(work_tree)
    assert head.holding("a.py", b"x = 1\r\n") == head.commit_sha
    assert head.holding("sub/é b.py", b"x = 1\r\n") == head.commit_sha
    assert head.holding("a.py", b"x = 1\n") is None
    assert head.holding("new.py", b"x = 1\r\n") is None


def test_a_folder_within_a_work_tree_has_its_own_paths(work_tree: Path) -> None:
    head = head_of(work_tree / "sub")

    assert head is not None
    assert set(head.blobs) == {"é b.py"}


def test_a_folder_that_the_commit_does_not_have_has_no_commit(work_tree: Path) -> None:
    (work_tree / "fresh").mkdir()

    assert head_of(work_tree / "fresh") is None


def test_no_repository_no_commit_or_a_damaged_one_is_a_plain_folder(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "unborn").mkdir()
    Repo.init(str(tmp_path / "unborn")).close()
    (tmp_path / "damaged" / ".git").mkdir(parents=True)
    (tmp_path / "damaged" / ".git" / "HEAD").write_text("noise")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / ".git").write_text("gitdir: /nowhere/at/all")

    for name in ("unborn", "damaged", "odd"):
        assert head_of(tmp_path / name) is None
