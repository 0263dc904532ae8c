"""Cloning over a real socket with real TLS, from a smart HTTP server of dulwich's."""

import asyncio
import ipaddress
import socket
import ssl
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIServer

import pytest
from dulwich.errors import NotGitRepository
from dulwich.index import commit_tree
from dulwich.objects import Blob, Commit, Tag
from dulwich.refs import Ref
from dulwich.repo import Repo
from dulwich.server import Backend, BackendRepo
from dulwich.web import WSGIRequestHandlerLogger, make_wsgi_chain

from ibid.domain.errors import SourceRejected
from ibid.domain.projects import GitSource
from ibid.indexing.addresses import is_public
from ibid.indexing.clone import cloned
from ibid.indexing.fetched import Fetched
from ibid.indexing.skips import SkipReason
from ibid.indexing.transfer import Transfer
from ibid.indexing.walk import walk

PEM = Path(__file__).with_name("localhost.pem")
Start = Callable[..., Any]
Application = Callable[[dict[str, Any], Start], Iterable[bytes]]


def loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(PEM))


class TlsServer(ThreadingMixIn, WSGIServer):
    daemon_threads = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that went away: some tests are about that."""


class OneRepo(Backend):
    def __init__(self, repo: Repo) -> None:
        self._repo = repo

    def open_repository(self, path: str | bytes) -> BackendRepo:
        if path not in {"/team/app", b"/team/app"}:
            raise NotGitRepository
        return self._repo


@dataclass
class Host:
    """A git host; `answer` may be replaced to misbehave."""

    repo: Repo
    url: str = ""
    answer: Application | None = None
    requests: list[dict[str, str]] = field(default_factory=list)
    asked: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        self.requests.append(
            {key: value for key, value in environ.items() if isinstance(value, str)}
        )
        self.asked.set()
        if self.answer is not None:
            return self.answer(environ, start)
        served: Application = make_wsgi_chain(OneRepo(self.repo))
        return served(environ, start)


def commit_files(repo: Repo, files: dict[str, bytes], *, parents: list[bytes]) -> bytes:
    blobs = []
    for path, data in files.items():
        blob = Blob.from_string(data)
        repo.object_store.add_object(blob)
        mode = stat.S_IFLNK | 0o777 if path.endswith(".link") else stat.S_IFREG | 0o644
        blobs.append((path.encode(), blob.id, mode))
    commit = Commit()
    commit.tree = commit_tree(repo.object_store, blobs)
    commit.parents = parents  # type: ignore[assignment]  # plain bytes are ids to dulwich at run time
    commit.author = commit.committer = b"A Person <person@example.org>"
    commit.author_time = commit.commit_time = 1_700_000_000
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = b"a message"
    repo.object_store.add_object(commit)
    return commit.id


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    folder = tmp_path / "served"
    folder.mkdir()
    repo = Repo.init_bare(str(folder))
    first = commit_files(repo, {"old.py": b"old = 1\n"}, parents=[])
    second = commit_files(
        repo,
        {
            "README.md": b"# Hello\n",
            "src/app.py": b"def app():\n    return 1\n",
            "a.link": b"/etc/passwd",
            "big.txt": b"x" * 1_500_000,
        },
        parents=[first],
    )
    repo.refs[Ref(b"refs/heads/main")] = second  # type: ignore[assignment]
    repo.refs[Ref(b"refs/tags/v1")] = first  # type: ignore[assignment]
    repo.refs.set_symbolic_ref(Ref(b"HEAD"), Ref(b"refs/heads/main"))
    serving = Host(repo)
    server = TlsServer(("127.0.0.1", 0), WSGIRequestHandlerLogger)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(PEM)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.set_app(serving)
    serving.url = f"https://localhost:{server.server_port}/team/app"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield serving
    serving.released.set()
    server.shutdown()
    server.server_close()
    thread.join()
    repo.close()


def transfer(
    *,
    allowed: Callable[[str], bool] = loopback,
    max_bytes: int = 10_000_000,
    timeout_s: float = 60.0,
) -> Transfer:
    return Transfer(allowed=allowed, max_bytes=max_bytes, timeout_s=timeout_s, tls=trusting())


async def clone(
    host: Host, into: Path, ref: str | None = None, secret: str | None = None
) -> Fetched:
    return await cloned(GitSource(url=host.url, ref=ref), into, transfer(), secret)


async def test_the_heads_files_come_without_history_and_without_links(
    host: Host, tmp_path: Path
) -> None:
    fetched = await clone(host, tmp_path / "out")

    assert [file.path for file in walk(fetched.root).files] == ["README.md", "src/app.py"]
    assert fetched.skipped == {SkipReason.SYMLINK: 1, SkipReason.TOO_LARGE: 1}
    assert fetched.head is not None
    assert fetched.head.commit_sha == host.repo.refs[Ref(b"refs/heads/main")].decode()
    assert fetched.head.holding("README.md", b"# Hello\n") == fetched.head.commit_sha
    assert fetched.head.holding("README.md", b"# Changed\n") is None


async def test_a_tag_and_a_commit_can_be_named(host: Host, tmp_path: Path) -> None:
    by_tag = await clone(host, tmp_path / "tag", ref="v1")
    by_branch = await clone(host, tmp_path / "branch", ref="main")
    first = host.repo.refs[Ref(b"refs/tags/v1")].decode()

    assert [file.path for file in walk(by_tag.root).files] == ["old.py"]
    assert by_tag.head is not None
    assert by_tag.head.commit_sha == first
    assert len(walk(by_branch.root).files) == 2


async def test_a_commit_is_found_through_its_tags_or_by_its_id(host: Host, tmp_path: Path) -> None:
    first = host.repo.refs[Ref(b"refs/tags/v1")]
    tag = Tag()
    tag.name, tag.message, tag.tagger = b"v1", b"one", b"A Person <person@example.org>"
    tag.tag_time, tag.tag_timezone = 1_700_000_000, 0
    tag.object = (Commit, first)
    host.repo.object_store.add_object(tag)
    host.repo.refs[Ref(b"refs/tags/annotated")] = tag.id

    by_tag = await clone(host, tmp_path / "tag", ref="annotated")
    by_id = await clone(host, tmp_path / "id", ref=first.decode())

    assert by_tag.head == by_id.head
    assert by_tag.head is not None
    assert by_tag.head.commit_sha == first.decode()


async def test_a_ref_that_names_no_commit_is_refused(host: Host, tmp_path: Path) -> None:
    blob = Blob.from_string(b"x")
    host.repo.object_store.add_object(blob)
    host.repo.refs[Ref(b"refs/tags/blob")] = blob.id

    with pytest.raises(SourceRejected, match=r"names no commit|can't be read|not git's"):
        await clone(host, tmp_path / "out", ref="blob")


async def test_an_empty_repository_is_refused(host: Host, tmp_path: Path) -> None:
    for name in (b"refs/heads/main", b"refs/tags/v1"):
        del host.repo.refs[Ref(name)]

    with pytest.raises(SourceRejected, match=r"is empty|can't be read"):
        await clone(host, tmp_path / "out")


async def test_submodules_and_names_that_a_system_can_not_take_are_counted(
    host: Host, tmp_path: Path
) -> None:
    repo = host.repo
    blob = Blob.from_string(b"x = 1\n")
    repo.object_store.add_object(blob)
    commit = repo[repo.refs[Ref(b"refs/heads/main")]]
    assert isinstance(commit, Commit)
    commit.tree = commit_tree(
        repo.object_store,
        [
            (b"a.py", blob.id, 0o100644),
            (b"A.py", blob.id, 0o100755),
            (b"back\\slash.py", blob.id, 0o100644),
            (b"sub", commit.id, 0o160000),
        ],
    )
    repo.object_store.add_object(commit)
    repo.refs[Ref(b"refs/heads/main")] = commit.id

    fetched = await clone(host, tmp_path / "out")

    assert [file.path for file in walk(fetched.root).files] == ["A.py", "a.py"]
    assert fetched.skipped == {SkipReason.ODD_NAME: 1, SkipReason.SUBMODULE: 1}


async def test_a_host_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        port = taken.getsockname()[1]

        with pytest.raises(SourceRejected, match=r"'https://localhost/a' can't be reached"):
            await cloned(GitSource(url=f"https://localhost:{port}/a"), tmp_path, transfer(), None)


async def test_an_unknown_ref_is_refused_by_its_name(host: Host, tmp_path: Path) -> None:
    with pytest.raises(SourceRejected, match="no branch, tag or commit 'nowhere'"):
        await clone(host, tmp_path / "out", ref="nowhere")


async def test_a_host_inside_the_network_is_refused_for_real(host: Host, tmp_path: Path) -> None:
    with pytest.raises(SourceRejected, match="not on the public internet"):
        await cloned(GitSource(url=host.url), tmp_path / "out", Transfer(tls=trusting()), None)

    assert host.requests == []


async def test_a_redirect_into_the_network_is_refused(host: Host, tmp_path: Path) -> None:
    host.answer = redirecting("https://127.0.0.2:9/team/app/info/refs?service=git-upload-pack")

    with pytest.raises(SourceRejected, match=r"'127\.0\.0\.2' is not on the public"):
        await cloned(
            GitSource(url=host.url),
            tmp_path / "out",
            transfer(allowed=lambda address: address in {"127.0.0.1", "::1"}),
            None,
        )


async def test_a_redirect_to_plain_http_is_refused(host: Host, tmp_path: Path) -> None:
    host.answer = redirecting("http://localhost/team/app/info/refs?service=git-upload-pack")

    with pytest.raises(SourceRejected, match="over https only"):
        await clone(host, tmp_path / "out")


def redirecting(to: str) -> Application:
    def answer(_: dict[str, Any], start: Start) -> Iterable[bytes]:
        start("302 Found", [("Location", to), ("Content-Length", "0")])
        return [b""]

    return answer


async def test_a_certificate_of_nobody_known_is_refused(host: Host, tmp_path: Path) -> None:
    with pytest.raises(SourceRejected, match="certificate that is not trusted"):
        await cloned(GitSource(url=host.url), tmp_path / "out", Transfer(allowed=loopback), None)


@pytest.mark.parametrize("secret", ["s3cr3t-t0ken", "person:s3cr3t-t0ken"])
async def test_a_refused_token_is_sent_and_is_in_no_message(
    host: Host, tmp_path: Path, secret: str
) -> None:
    def answer(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        body = environ["HTTP_AUTHORIZATION"].encode()  # as a rude server repeats it
        start("401 Unauthorized", [("Content-Length", str(len(body)))])
        return [body]

    host.answer = answer

    with pytest.raises(SourceRejected) as caught:
        await clone(host, tmp_path / "out", secret=secret)

    assert host.requests[0]["HTTP_AUTHORIZATION"].startswith("Basic ")
    assert "asks for a credential" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


async def test_what_is_no_repository_is_refused(host: Host, tmp_path: Path) -> None:
    host.url = host.url.replace("team/app", "team/other")

    with pytest.raises(SourceRejected, match=r"is not there|can't be read|not git's"):
        await clone(host, tmp_path / "out")


async def test_a_web_page_is_refused(host: Host, tmp_path: Path) -> None:
    def answer(_: dict[str, Any], start: Start) -> Iterable[bytes]:
        start("200 OK", [("Content-Type", "text/html")])
        return [b"<html>hello</html>"]

    host.answer = answer

    with pytest.raises(SourceRejected):
        await clone(host, tmp_path / "out")


async def test_a_repository_that_is_too_large_is_cut_off(host: Host, tmp_path: Path) -> None:
    with pytest.raises(SourceRejected, match="larger than 300 bytes"):
        await cloned(GitSource(url=host.url), tmp_path / "out", transfer(max_bytes=300), None)


async def test_a_host_that_drips_is_cut_off_in_time(host: Host, tmp_path: Path) -> None:
    host.answer = dripping(host)

    with pytest.raises(SourceRejected, match=r"took longer than 0\.5 s"):
        await cloned(GitSource(url=host.url), tmp_path / "out", transfer(timeout_s=0.5), None)


async def test_a_cancelled_clone_lets_go_of_its_connection(host: Host, tmp_path: Path) -> None:
    host.answer = dripping(host)
    task = asyncio.create_task(cloned(GitSource(url=host.url), tmp_path / "out", transfer(), None))
    async with asyncio.timeout(60):
        await asyncio.to_thread(host.asked.wait, 50)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def dripping(host: Host) -> Application:
    def answer(_: dict[str, Any], start: Start) -> Iterable[bytes]:
        start("200 OK", [("Content-Type", "application/x-git-upload-pack-advertisement")])
        yield b"fff0"  # the length of a line that never ends
        while not host.released.wait(0.05):
            yield b"x"

    return answer


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/a",
        "git://example.org/a",
        "file:///etc",
        "ssh://example.org/a",
        "https:///a",
        "https://person:word@example.org/a",
        "https://word@example.org/a",
        "https://example.org/a?token=word",
        "https://example.org/a#word",
        "https://example.org:bad/a",
        "https://[::1/a",
    ],
)
async def test_a_url_of_another_kind_is_refused_without_repeating_it(
    url: str, tmp_path: Path
) -> None:
    with pytest.raises(SourceRejected) as caught:
        await cloned(GitSource(url=url), tmp_path, Transfer(), None)

    assert "word" not in str(caught.value).replace("password", "")
    assert "example.org" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
        *("0.0.0.0", "224.0.0.1", "255.255.255.255", "240.0.0.1", "::1", "::", "fe80::1%eth0"),  # noqa: S104 - an address to refuse
        *(
            "fc00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:0::1",
        ),
    ],
)
def test_an_address_that_is_not_public_is_known(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "140.82.112.3", "2606:4700::1111", "64:ff9b::101:101"]
)
def test_a_public_address_is_known(address: str) -> None:
    assert is_public(address)
