from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from ibid.indexing.ignores import MAX_PATTERNS, IgnoreRules, patterns_of, read_rules

# left out is what pathspec reads in another way than git: `***`, a backslash in a set, tabs
SEGMENTS = st.sampled_from(
    [
        "a",
        "b",
        "ab",
        "*",
        "**",
        "a*",
        "*b",
        "?",
        "a?",
        "[ab]",
        "[!a]",
        "[^b]",
        "[a-b]*",
        "*a*b*",
        "a**b",
        "\\a",
        "\\*",
        "\\#",
        "\\!",
        "[]a]",
        "[!]a]",
        "a[",
        "[a-",
        "#",
        ".",
        "a b",
        "a\\ ",
    ]
)
NAMES = st.sampled_from(["a", "b", "ab", "aab", "abb", "c", "*", "a b", "a ", "!", "#", "-", "]"])
PATTERNS = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(SEGMENTS, min_size=1, max_size=4).map("/".join),
    st.sampled_from(["", "", "/"]),
    st.sampled_from(["", "", " "]),
).filter(lambda line: not line.endswith("\\  "))
PATHS = st.lists(NAMES, min_size=1, max_size=4)


def walked(lines: Sequence[str], path: str) -> bool:
    """Say if a walk leaves a path out; one that ends in `/` is a folder."""
    rules = IgnoreRules([("", patterns_of(lines))])
    names = path.rstrip("/").split("/")
    return any(
        rules.ignores("/".join(names[:end]), folder=end < len(names) or path.endswith("/"))
        for end in range(1, len(names) + 1)
    )


def walked_by_pathspec(lines: Sequence[str], path: str) -> bool:
    spec = GitIgnoreSpec.from_lines([line for line in lines if usable(line)])
    names = path.split("/")
    parents = ["/".join(names[:end]) + "/" for end in range(1, len(names))]
    return any(spec.match_file(part) for part in [*parents, path])


def usable(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


@given(lines=st.lists(PATTERNS, min_size=1, max_size=4), names=PATHS)
@example(lines=["a/**/b"], names=["a", "b"])
@example(lines=["/*", "!/a/", "/a/*", "!/a/b"], names=["a", "b"])
@example(lines=["**/a/**"], names=["b", "a"])
def test_a_walk_leaves_out_what_pathspec_does(lines: list[str], names: list[str]) -> None:
    path = "/".join(names)

    assert walked(lines, path) is walked_by_pathspec(lines, path)


@pytest.mark.parametrize(
    ("lines", "ignored", "kept"),
    [
        # the manual of gitignore, in its order
        (["", "   ", "# a"], [], ["# a", "a", " "]),
        (["\\#a"], ["#a"], ["a"]),
        (["a "], ["a"], ["a "]),
        (["a\\ "], ["a "], ["a"]),
        (["a\\  "], ["a "], ["a", "a  "]),
        (["a\\\\ "], ["a\\"], ["a\\ "]),
        (["*.o", "!keep.o"], ["a.o", "x/a.o"], ["keep.o", "x/keep.o"]),
        (["x", "!x/a"], ["x/a"], []),  # nothing comes back below an ignored folder
        (["\\!important!.txt"], ["!important!.txt"], ["important!.txt"]),
        (["doc/frotz/"], ["doc/frotz/"], ["a/doc/frotz/", "doc/frotz"]),
        (["frotz/"], ["frotz/", "a/frotz/"], ["frotz", "a/frotz"]),
        (["hello.*"], ["hello.txt", "a/hello.java"], ["hello"]),
        (["/hello.*"], ["hello.txt", "hello.c"], ["a/hello.java"]),
        (["foo/*"], ["foo/test.json", "foo/bar/", "foo/bar/hello.c"], ["foo/", "bar/foo/x"]),
        (["foo/*", "!foo/bar/"], ["foo/a"], ["foo/bar/", "foo/bar/baz"]),
        (["**/foo"], ["foo", "a/foo", "a/b/foo"], ["food"]),
        (["**/foo/bar"], ["foo/bar", "a/foo/bar"], ["bar", "foo/a/bar"]),
        (["abc/**"], ["abc/a", "abc/a/b"], ["abc/", "abc", "x/abc/a"]),
        (["a/**/b"], ["a/b", "a/x/b", "a/x/y/b"], ["b", "x/a/b"]),
        (["a/**/**/b", "***/c/d"], ["a/b", "a/x/y/b", "c/d", "x/c/d"], ["a/c"]),
        (["a**b/c"], ["ab/c", "axb/c"], ["a/b/c", "a/x/b/c"]),
        (["/*", "!/foo", "/foo/*", "!/foo/bar"], ["a", "foo/a"], ["foo/", "foo/bar", "foo/bar/x"]),
        (["**"], ["a", "a/b"], []),
        (["**/"], ["a/", "a/b"], ["a"]),
        (["/**"], ["a", "a/b"], []),
        (["/", "!", "!/", "a//", "a//b"], [], ["a/", "a", "a/b"]),
        (["[", "a/[/b", "a\\", "c"], ["c"], ["[", "a/[/b", "a\\"]),
    ],
)
def test_the_manual_s_examples_hold(lines: list[str], ignored: list[str], kept: list[str]) -> None:
    assert [path for path in ignored if not walked(lines, path)] == []
    assert [path for path in kept if walked(lines, path)] == []


def test_a_file_s_first_patterns_hold_and_those_beyond_the_bound_do_not(tmp_path: Path) -> None:
    file = tmp_path / ".gitignore"
    file.write_text("# none\n\n" + "a\n" * (MAX_PATTERNS - 1) + "last\nbeyond\n")

    patterns = read_rules(file)

    assert patterns is not None
    rules = IgnoreRules().below("", patterns)
    assert len(patterns) == MAX_PATTERNS
    assert rules.ignores("last", folder=False)
    assert not rules.ignores("beyond", folder=False)


def test_a_nearer_file_decides_only_where_it_says_something() -> None:
    rules = IgnoreRules().below("", patterns_of(["x"])).below("sub", patterns_of(["/*", "!/src/"]))

    assert rules.ignores("sub/src/x", folder=False)
    assert not rules.ignores("sub/src", folder=True)
    assert rules.below("sub/src", None) is rules
