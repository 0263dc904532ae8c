import subprocess
import sys

import pytest

from ibid.indexing.globs import MAX_NAME_CHARACTERS, Glob, NotAGlob

LONG = 100_000

HOSTILE = """
from ibid.indexing.globs import Glob
from ibid.indexing.ignores import IgnoreRules, patterns_of

LONG = 100_000
patterns = [
    "*a" * 30,
    "*a" * (LONG // 2),
    "*" * LONG,
    "*" + "a" * (LONG // 2) + "b",
    "?" * (LONG // 2) + "*b",
    "*[ab]" * (LONG // 5),
    "*?a" * (LONG // 3),
    "*" + "?" * 100 + "b",
    "*" + "[ab]" * 2_000 + "c",
    "[" * LONG,
    "[" + "a" * LONG + "]b",
    "\\\\a" * (LONG // 2),
    "**/" * (LONG // 3) + "b",
    "*/" * (LONG // 2) + "b",
    "**/a/" * (LONG // 5) + "b",
    "a/" * (LONG // 2) + "b",
    "**/*a*/" * 40 + "b",
    "a" * LONG + " " * LONG + "b",
    "\\\\ " * LONG,
]
paths = ["a" * 60, "a" * 4_096, "a" * LONG, "a/" * 2_000 + "c", "/".join(["aaaa"] * 800)]
rules = IgnoreRules([("", patterns_of(patterns))])
for path in paths:
    print(rules.ignores(path, folder=False))
"""


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("a", "a", True),
        ("a", "ab", False),
        ("", "", True),
        ("*", "", True),
        ("*", ".hidden", True),
        ("*.py", ".py", True),
        ("*.py", "a.pyc", False),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*b*c", "aXbYbZc", True),
        ("a*bc*bc", "abc", False),
        ("a*bc*bc", "abcbc", True),
        ("*ab*", "xaab", True),
        ("*a?c*", "aabcd", True),
        ("*a?c*", "aabbc", False),
        ("?", "é", True),
        ("?", "", False),
        ("a?", "a", False),
        ("*?b", "b", False),
        ("[ab]c", "bc", True),
        ("[!ab]c", "bc", False),
        ("[^ab]c", "dc", True),
        ("[]a]", "]", True),
        ("[!]a]", "]", False),
        ("[a-c]", "b", True),
        ("[a-]", "-", True),
        ("[-a]", "-", True),
        ("[c-a]", "b", False),
        ("[a-c-e]", "d", False),
        ("[a-c-e]", "-", True),
        ("[\\]]", "]", True),
        ("[a\\-c]", "b", False),
        ("[a-\\c]", "b", True),
        ("[[:digit:]_]", "7", True),
        ("[[:digit:]-z]", "y", False),
        ("[![:upper:]]", "A", False),
        ("[[a]", "[", True),
        ("[&&--||~~]", "&", True),
        ("\\*", "*", True),
        ("\\*", "a", False),
        ("\\a", "a", True),
        ("*\n", "a\n", True),
        ("a.c", "abc", False),
    ],
)
def test_a_glob_fits_what_git_s_does(pattern: str, name: str, fits: bool) -> None:  # noqa: FBT001 - a case
    assert Glob(pattern).matches(name) is fits


@pytest.mark.parametrize(
    "pattern",
    ["[", "a[b", "[]", "[!", "[!]", "[a-", "[a\\", "a\\", "[[:owl:]]", "[[:digit]", "[[:", "[[:]"],
)
def test_a_glob_that_fits_nothing_says_so(pattern: str) -> None:
    with pytest.raises(NotAGlob):
        Glob(pattern)


def test_no_file_system_s_name_fits_no_wildcard() -> None:
    assert Glob("a*").matches("a" * MAX_NAME_CHARACTERS)
    assert not Glob("a*").matches("a" * (MAX_NAME_CHARACTERS + 1))
    assert Glob("a" * LONG).matches("a" * LONG)


def test_no_pattern_keeps_the_matching_from_its_end() -> None:
    # another process, since a regular expression that goes back for ever can't be stopped
    ended = subprocess.run(
        [sys.executable, "-c", HOSTILE], capture_output=True, text=True, timeout=60, check=True
    )

    assert len(ended.stdout.split()) == 5
