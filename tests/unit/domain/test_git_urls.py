import pytest

from ibid.domain.errors import SourceRejected
from ibid.domain.git_urls import https_url, repository_url

WORD = "sesame"
NOT_HTTPS = ["", "http://host.test/a", "https:a", "https:///a", "https://:443/a", "//host.test/a"]
UNREADABLE = [
    "https://[bad/x",
    f"https://user:{WORD}@[bad/x",
    f"https://user:{WORD}@[bad]/x",
    "https://host.test:x/a",
    "https://host.test:99999/a",
]
NAMED = [
    f"https://{WORD}@host.test/a",
    f"https://user:{WORD}@host.test/a",
    f"https://:{WORD}@host.test/a",
    "https://@host.test/a",
    f"https://host.test\\@{WORD}@other.test/a",
]
LONGER = [
    f"https://host.test/a?token={WORD}",
    f"https://host.test/a.git?access_token={WORD}&x",
    f"https://host.test/a#{WORD}",
    f"https://host.test?{WORD}",
    "https://host.test/a?",
    "https://host.test/a#",
]
SPACED = ["https://host.test/a b", "\thttps://host.test/a", "https://host.test/a\n", "https://a\0/"]


@pytest.mark.parametrize("url", [*NOT_HTTPS, *UNREADABLE, *NAMED, *LONGER, *SPACED])
def test_a_url_with_more_than_a_host_and_a_path_is_never_kept(url: str) -> None:
    with pytest.raises(SourceRejected) as refused:
        repository_url(url)

    assert WORD not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("url", [*NOT_HTTPS, *UNREADABLE, *NAMED])
def test_a_url_with_a_name_in_it_is_never_connected_to(url: str) -> None:
    with pytest.raises(SourceRejected) as refused:
        https_url(url)

    assert WORD not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["https://host.test/a", "HTTPS://Host.test:8443/a/b.git", "https://[::1]/a%20b"]
)
def test_a_host_and_a_path_name_a_repository(url: str) -> None:
    assert repository_url(url).hostname in {"host.test", "::1"}


def test_a_step_of_the_protocol_may_have_a_query() -> None:
    step = https_url("https://host.test/a/info/refs?service=git-upload-pack")

    assert step.query == "service=git-upload-pack"
