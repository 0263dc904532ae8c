"""Where a span of an indexed commit can be read on the web, for the hosts whose form is known.

Built from the source's address and the index alone; nothing a model says gets into one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from ibid.domain.passages import Passage
from ibid.domain.projects import GitSource, Source

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


def permalink(source: Source | None, passage: Passage) -> str | None:
    """Return a link to a passage's lines at the commit that they were indexed from.

    Args:
        source: The project's. Of a git source's address, a user, a password or a port never gets
            into the link.
        passage: Its path may hold any characters.

    Returns:
        None if the source is no git repository over https, or its host's form is not known
        (github.com, gitlab.com, bitbucket.org and codeberg.org are), or the passage has no commit,
        or the address or the path is odd.
    """
    if not isinstance(source, GitSource):
        return None
    commit = passage.commit_sha
    repository = _repository(source.url)
    path = _encoded(passage.file_path)
    if commit is None or not _COMMIT.fullmatch(commit) or repository is None or path is None:
        return None
    host, names = repository
    form = _FORMS.get(host)
    if form is None or (len(names) > _TWO and not form.groups):
        return None
    query = form.source_query if _RENDERED.fullmatch(passage.file_path) else ""
    lines = form.from_line.format(passage.start_line)
    if passage.end_line > passage.start_line:
        lines += form.to_line.format(passage.end_line)
    return f"https://{host}/{'/'.join(names)}/{form.folder}/{commit}/{path}{query}#{lines}"


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
