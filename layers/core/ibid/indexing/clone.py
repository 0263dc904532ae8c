"""A git repository over https: one commit of it, without history, as plain files."""

import asyncio
import io
import ssl
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import urllib3.exceptions
from dulwich.client import HTTPUnauthorized
from dulwich.errors import GitProtocolError, HangupException, NotGitRepository
from dulwich.object_store import iter_tree_contents
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tag
from dulwich.refs import Ref
from dulwich.repo import Repo

from ibid.domain.errors import IbidError, SourceRejected
from ibid.domain.git_urls import repository_url
from ibid.domain.projects import GitSource
from ibid.indexing.commits import Head
from ibid.indexing.ending import to_the_end
from ibid.indexing.extracted import TreeWriter
from ibid.indexing.fetched import Fetched
from ibid.indexing.packs import check_pack
from ibid.indexing.skips import MAX_FILE_BYTES, SkipReason
from ibid.indexing.transfer import MAX_BYTES, LimitedGitClient, Transfer

_HttpError = urllib3.exceptions.HTTPError
_MAX_TAGS = 8
_SHA_DIGITS = 40


async def cloned(source: GitSource, into: Path, transfer: Transfer, secret: str | None) -> Fetched:
    """Clone one commit into an empty folder, in a thread.

    Args:
        source: Names the repository and the branch, tag or commit.
        into: Where to.
        transfer: Limits it; closed at the end.
        secret: A token, or `name:password`; None where none is needed.

    Raises:
        SourceRejected: It is not there, not public, too large, too slow, or has no such ref. No
            message holds the secret, or what the server said.
        CancelledError: Once the connections are cut and the thread has ended.
    """
    work = asyncio.ensure_future(asyncio.to_thread(_clone, source, into, transfer, secret))
    try:
        async with asyncio.timeout(transfer.timeout_s):
            return await asyncio.shield(work)
    except TimeoutError:
        transfer.abort()
        raise SourceRejected(f"The repository took longer than {transfer.timeout_s:g} s") from None
    except asyncio.CancelledError:
        transfer.abort()
        raise
    finally:
        await to_the_end(_ended(work))
        transfer.close()


async def _ended(work: asyncio.Future[Fetched]) -> None:
    await asyncio.gather(work, return_exceptions=True)


def _clone(source: GitSource, into: Path, transfer: Transfer, secret: str | None) -> Fetched:
    parts = repository_url(source.url)
    shown = f"https://{parts.hostname}{parts.path}"
    into.mkdir(exist_ok=True)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="ibid-git-") as folder,
            Repo.init_bare(folder) as repo,
        ):
            commit = _fetch(source, repo, transfer, secret)
            return _write(repo, commit, into, transfer)
    except IbidError:
        raise
    except Exception as error:  # noqa: BLE001 - damaged answers fail in a dozen ways
        raise SourceRejected(f"The repository {shown!r} {_reason(error)}") from None


def _reason(error: BaseException) -> str:
    """Say in our own words what went wrong: the server's may repeat what it was sent."""
    chain = [error]
    while (
        inner := chain[-1].__cause__ or chain[-1].__context__
    ) is not None and inner not in chain:
        chain.append(inner)
    if any(isinstance(each, NotGitRepository) for each in chain):
        return "is not there, or is no git repository"
    if any(isinstance(each, HTTPUnauthorized) for each in chain):
        return "asks for a credential, or refuses the one it got"
    if any(isinstance(each, ssl.SSLError | urllib3.exceptions.SSLError) for each in chain):
        return "has a certificate that is not trusted"
    if any(isinstance(each, TimeoutError | urllib3.exceptions.TimeoutError) for each in chain):
        return "does not answer in time"
    if any(isinstance(each, HangupException | OSError | _HttpError) for each in chain):
        return "can't be reached, or breaks off"
    if any(isinstance(each, GitProtocolError) for each in chain):
        return "gives answers that are not git's"
    return f"can't be read ({type(error).__name__})"


def _fetch(source: GitSource, repo: Repo, transfer: Transfer, secret: str | None) -> Commit:
    parts = urlsplit(source.url)
    client = LimitedGitClient(f"https://{parts.netloc}", transfer, secret=secret)
    wanted: list[ObjectID] = []

    def wants(refs: Mapping[Ref, ObjectID], depth: int | None = None) -> list[ObjectID]:
        del depth
        if client.dumb:
            raise SourceRejected("The repository's host does not speak git's smart protocol")
        wanted.append(_find_ref(refs, source.ref))
        return wanted

    pack, commit, abort = repo.object_store.add_pack()
    try:
        client.fetch_pack(
            parts.path,
            cast("Any", wants),
            repo.get_graph_walker(),
            pack.write,
            depth=1,
            filter_spec=b"blob:limit=%d" % (MAX_FILE_BYTES + 1),
        )
        pack.seek(0)
        check_pack(pack, max_total_bytes=MAX_BYTES)
        pack.seek(0, io.SEEK_END)
        commit()
    except BaseException:
        abort()
        raise
    finally:
        client.way_out.close()
    return _peel(repo, wanted[0])


def _find_ref(refs: Mapping[Ref, ObjectID], ref: str | None) -> ObjectID:
    if ref is None:
        names = [b"HEAD", b"refs/heads/main", b"refs/heads/master"]
    else:
        encoded = ref.encode("utf-8", "replace")
        names = [b"refs/heads/" + encoded, b"refs/tags/" + encoded, encoded]
    for name in names:
        if (found := refs.get(Ref(name))) is not None:
            return found
    if ref is not None and len(ref) == _SHA_DIGITS and set(ref) <= set("0123456789abcdef"):
        return ObjectID(ref.encode("ascii"))
    if ref is None:
        raise SourceRejected("The repository is empty")
    raise SourceRejected(f"The repository has no branch, tag or commit {ref[:200]!a}")


def _peel(repo: Repo, sha: ObjectID) -> Commit:
    found: ShaFile = repo[sha]
    for _ in range(_MAX_TAGS):
        if not isinstance(found, Tag):
            break
        found = repo[found.object[1]]
    if not isinstance(found, Commit):
        raise SourceRejected("The repository's ref names no commit")
    return found


def _write(repo: Repo, commit: Commit, into: Path, transfer: Transfer) -> Fetched:
    """Write a commit's files; links and submodules are left out and counted."""
    writer = TreeWriter(into, what="repository", folds_case=False)
    blobs: dict[str, str] = {}
    for entry in iter_tree_contents(repo.object_store, commit.tree):
        transfer.check()
        writer.count_entry()
        if entry.path is None or entry.sha is None or entry.mode is None:
            continue
        path = entry.path.decode("utf-8", "surrogateescape")
        reason = _entry_skip(entry.mode, path)
        blob = None if reason is not None else _blob(repo, entry.sha)
        if blob is None:
            writer.skipped[reason or SkipReason.TOO_LARGE] += 1
            continue
        writer.write(path, io.BytesIO(blob.data))
        blobs[path] = entry.sha.decode("ascii")
    return Fetched(
        root=into,
        head=Head(commit_sha=commit.id.decode("ascii"), blobs=blobs),
        skipped=writer.skipped,
    )


def _entry_skip(mode: int, path: str) -> SkipReason | None:
    if stat.S_ISLNK(mode):
        return SkipReason.SYMLINK
    if not stat.S_ISREG(mode):
        return SkipReason.SUBMODULE
    return SkipReason.ODD_NAME if "\\" in path else None


def _blob(repo: Repo, sha: ObjectID) -> Blob | None:
    """Return a file's content, or None: the server was asked to keep back the large ones."""
    try:
        found = repo.object_store[sha]
    except KeyError:
        return None
    return found if isinstance(found, Blob) else None
