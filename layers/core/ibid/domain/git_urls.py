"""Which URLs name a repository: one rule for whoever keeps one and whoever connects to it."""

from urllib.parse import SplitResult, urlsplit

from ibid.domain.errors import SourceRejected


def repository_url(url: str) -> SplitResult:
    """Check the URL of a repository before it is kept: a host and a path over https, no more.

    A name, a password, a query and a fragment may each be a secret, and what is kept is shown.

    Raises:
        SourceRejected: It is another URL. The message does not repeat it.
    """
    if any(sign.isspace() or not sign.isprintable() for sign in url):
        raise SourceRejected("The repository's URL can't be read")
    parts = https_url(url)
    if "?" in url or "#" in url:
        raise SourceRejected(
            "The repository's URL holds more than a host and a path: no query, no fragment"
        )
    return parts


def https_url(url: str) -> SplitResult:
    """Check a URL before it is connected to; as a step of a protocol it may have a query.

    Raises:
        SourceRejected: It is not https, names no host, or holds a name or a password. The
            message does not repeat it, since it may hold a secret.
    """
    try:
        parts = urlsplit(url)
        known = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise SourceRejected("The repository's URL can't be read") from None
    if parts.scheme != "https" or not known:
        raise SourceRejected("A repository is cloned over https only")
    if parts.username is not None or parts.password is not None:
        raise SourceRejected("The repository's URL holds a name or password: name a credential")
    return parts
