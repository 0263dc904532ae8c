"""Links to indexed lines, for the hosts whose form is known, and for nobody else."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.domain.passages import Passage
from ibid.domain.permalinks import permalink
from ibid.domain.projects import FolderSource, GitSource, UploadSource

SHA = "0123456789abcdef0123456789abcdef01234567"


def _passage(
    file_path: str = "src/app.py",
    *,
    start_line: int = 3,
    end_line: int = 9,
    commit_sha: str | None = SHA,
) -> Passage:
    return Passage(
        file_path=file_path,
        start_line=start_line,
        end_line=end_line,
        language="python",
        symbol="",
        content="x",
        commit_sha=commit_sha,
        score=1.0,
        cosine=None,
    )


@pytest.mark.parametrize(
    ("url", "file_path", "link"),
    [
        (
            "https://github.com/pallets/flask.git",
            "src/app.py",
            f"https://github.com/pallets/flask/blob/{SHA}/src/app.py#L3-L9",
        ),
        (
            "https://github.com/pallets/flask/",
            "README.md",
            f"https://github.com/pallets/flask/blob/{SHA}/README.md?plain=1#L3-L9",
        ),
        (
            "https://gitlab.com/group/sub/app",
            "src/app.py",
            f"https://gitlab.com/group/sub/app/-/blob/{SHA}/src/app.py#L3-9",
        ),
        (
            "https://gitlab.com/group/app.git",
            "docs/a.rst",
            f"https://gitlab.com/group/app/-/blob/{SHA}/docs/a.rst?plain=1#L3-9",
        ),
        (
            "https://bitbucket.org/acme/app.git",
            "README.md",
            f"https://bitbucket.org/acme/app/src/{SHA}/README.md#lines-3:9",
        ),
        (
            "https://codeberg.org/acme/app",
            "src/app.py",
            f"https://codeberg.org/acme/app/src/commit/{SHA}/src/app.py#L3-L9",
        ),
        (
            "https://codeberg.org/acme/app",
            "a.MD",
            f"https://codeberg.org/acme/app/src/commit/{SHA}/a.MD?display=source#L3-L9",
        ),
        (
            "https://user:token@GitHub.com:443/acme/app.git",
            "a b/ü#?%.py",
            f"https://github.com/acme/app/blob/{SHA}/a%20b/%C3%BC%23%3F%25.py#L3-L9",
        ),
    ],
)
def test_a_known_host_gets_its_own_form(url: str, file_path: str, link: str) -> None:
    assert permalink(GitSource(url=url), _passage(file_path)) == link


@pytest.mark.parametrize(
    ("host", "end"),
    [
        ("github.com", "#L3"),
        ("gitlab.com", "#L3"),
        ("bitbucket.org", "#lines-3"),
        ("codeberg.org", "#L3"),
    ],
)
def test_one_line_is_no_range(host: str, end: str) -> None:
    link = permalink(GitSource(url=f"https://{host}/acme/app"), _passage(end_line=3))

    assert link is not None
    assert link.endswith(f"src/app.py{end}")


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.com/acme/app",
        "https://github.com.evil.com/acme/app",
        "https://gist.github.com/acme/app",
        "http://github.com/acme/app",
        "ssh://git@github.com/acme/app",
        "git@github.com:acme/app.git",
        "https://github.com/acme",
        "https://github.com/acme/app/tree/main",
        "https://github.com:8443/acme/app",
        "https://github.com:port/acme/app",
        "https://github.com/acme/app?x=1",
        "https://github.com/acme/app#x",
        "https://github.com/acme/../app",
        "https://github.com/a%2Fb/app",
        "https://github.com/acme/<app>",
        "",
    ],
)
def test_any_other_address_gets_none(url: str) -> None:
    assert permalink(GitSource(url=url), _passage()) is None


@pytest.mark.parametrize(
    "source", [None, FolderSource(path="/x"), UploadSource(upload_id="u", file_name="x.zip")]
)
def test_a_source_that_is_no_repository_gets_none(
    source: FolderSource | UploadSource | None,
) -> None:
    assert permalink(source, _passage()) is None


@pytest.mark.parametrize("commit", [None, "", "main", SHA[:-1], SHA.upper(), SHA + "0"])
def test_a_commit_that_is_none_gets_none(commit: str | None) -> None:
    assert permalink(GitSource(url="https://github.com/a/b"), _passage(commit_sha=commit)) is None


@pytest.mark.parametrize(
    "path", ["", "../x.py", "a/../x.py", "a//x.py", "/x.py", "./x", "\ud800.py"]
)
def test_a_path_that_leads_elsewhere_gets_none(path: str) -> None:
    assert permalink(GitSource(url="https://github.com/a/b"), _passage(path)) is None


@given(path=st.text(min_size=1, max_size=40))
def test_whatever_a_file_is_called_the_link_has_only_url_characters_and_one_fragment(
    *, path: str
) -> None:
    link = permalink(GitSource(url="https://github.com/acme/app"), _passage(path))

    if link is not None:
        assert re.fullmatch(
            rf"https://github\.com/acme/app/blob/{SHA}/[A-Za-z0-9_.~%/-]+(\?plain=1)?#L3-L9", link
        )
