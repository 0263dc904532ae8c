"""Which commit holds a file's very bytes, so that a citation's permalink shows what it quotes."""

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dulwich.errors import NotGitRepository
from dulwich.object_store import iter_tree_contents, tree_lookup_path
from dulwich.objects import Commit, ObjectID, Tree
from dulwich.repo import Repo

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A commit and the files of the indexed folder in it.

    Attributes:
        commit_sha: In 40 hex digits.
        blobs: Git's blob id in hex by path, relative to the indexed folder.
    """

    commit_sha: str
    blobs: Mapping[str, str]

    def holding(self, path: str, data: bytes) -> str | None:
        """Return the commit if the file has these bytes in it; None if changed or untracked."""
        return self.commit_sha if self.blobs.get(path) == blob_id(data) else None


def blob_id(data: bytes) -> str:
    """Name bytes as git names a blob of them."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def head_of(folder: Path) -> Head | None:
    """Read HEAD of the work tree that a folder is or lies in.

    Returns:
        None if there is no work tree, no commit in it, or it can't be read: its files are then
        cited without a commit.
    """
    real = folder.resolve()
    try:
        repo = Repo.discover(str(real))
    except (NotGitRepository, OSError):
        return None
    try:
        with repo:
            inner = real.relative_to(Path(repo.path).resolve()).as_posix()
            return _read(repo, "" if inner == "." else inner)
    except KeyError:  # no commit yet, or the folder is not in it
        return None
    except Exception as error:  # noqa: BLE001 - a damaged repository is indexed as a plain folder
        logger.warning("commit not read", extra={"error": type(error).__name__})
        return None


def _read(repo: Repo, inner: str) -> Head | None:
    sha = repo.head()
    commit = repo[sha]
    if not isinstance(commit, Commit):
        return None
    tree = commit.tree
    if inner:
        _, tree = tree_lookup_path(repo.__getitem__, tree, inner.encode())
    return Head(commit_sha=sha.decode("ascii"), blobs=tree_blobs(repo, tree))


def tree_blobs(repo: Repo, tree: ObjectID) -> Mapping[str, str]:
    """List a tree's files, of every folder, by their path."""
    if not isinstance(repo[tree], Tree):
        return {}
    return {
        entry.path.decode("utf-8", "surrogateescape"): entry.sha.decode("ascii")
        for entry in iter_tree_contents(repo.object_store, tree)
        if entry.path is not None and entry.sha is not None
    }
