"""Where a span of an indexed commit can be read on the web, for the hosts whose form is known.

Built from the source's address and the index alone; nothing a model says gets into one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

_HTTPS_PORT = 443
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_TWO = 2
# Files that a host shows rendered, without line numbers, unless asked for the source.
_RENDERED = re.compile(r".*\.(?:adoc|asciidoc|markdown|md|mdx|org|rst|textile)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """How one host writes such a link; `groups` says if a repository may lie deeper than two."""

    folder: str
    from_line: str
    to_line: str
    source_query: str
    groups: bool = False


_FORMS: Mapping[str, _Form] = {
    "github.com": _Form(folder="blob", from_line="L{}", to_line="-L{}", source_query="?plain=1"),
    "gitlab.com": _Form(
        folder="-/blob", from_line="L{}", to_line="-{}", source_query="?plain=1", groups=True
    ),
    "bitbucket.org": _Form(folder="src", from_line="lines-{}", to_line=":{}", source_query=""),
    "codeberg.org": _Form(
        folder="src/commit", from_line="L{}", to_line="-L{}", source_query="?display=source"
    ),
}


def permalink(
    source_url: str,
    *,
    commit_sha: str | None,
    file_path: str,
    start_line: int,
    end_line: int,
) -> str | None:
    """Return a link to some lines of a file at a commit.

    Args:
        source_url: The repository's https address, with or without `.git`; a user, a password or
            a port in it never gets into the link.
        commit_sha: Whole, in lower-case hex; None where the source has none.
        file_path: Relative to the repository's root, with `/`; any characters.
        start_line: First line, from 1.
        end_line: Last line, at least `start_line`.

    Returns:
        None if there is no commit, or the host's form is not known (github.com, gitlab.com,
        bitbucket.org and codeberg.org are), or the address or the path is odd.
    """
    if commit_sha is None or _COMMIT.fullmatch(commit_sha) is None:
        return None
    repository = _repository(source_url)
    path = _encoded(file_path)
    if repository is None or path is None:
        return None
    host, names = repository
    form = _FORMS.get(host)
    if form is None or (len(names) > _TWO and not form.groups):
        return None
    source = form.source_query if _RENDERED.fullmatch(file_path) else ""
    lines = form.from_line.format(start_line)
    if end_line > start_line:
        lines += form.to_line.format(end_line)
    return f"https://{host}/{'/'.join(names)}/{form.folder}/{commit_sha}/{path}{source}#{lines}"


def _repository(source_url: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the host and the names that lead to the repository, at least two."""
    try:
        url = urlsplit(source_url)
        port = url.port
    except ValueError:
        return None
    if url.scheme != "https" or port not in {None, _HTTPS_PORT} or url.query or url.fragment:
        return None
    names = tuple(url.path.strip("/").removesuffix(".git").split("/"))
    if len(names) < _TWO or not all(_NAME.fullmatch(name) for name in names):
        return None
    return (url.hostname or "").rstrip("."), names


def _encoded(file_path: str) -> str | None:
    """Return a path for a URL; None if it would lead out of the repository or is no text."""
    if any(part in {"", ".", ".."} for part in file_path.split("/")):
        return None
    try:
        return quote(file_path)
    except UnicodeEncodeError:
        return None
