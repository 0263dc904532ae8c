import os
import socket
from pathlib import Path

import pytest

from ibid.indexing.skips import SkipReason, content_skip, name_skip, odd_name
from ibid.indexing.walk import walk


def fill(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def paths(root: Path) -> list[str]:
    return [file.path for file in walk(root).files]


def test_gitignore_holds_at_every_level_and_the_nearest_rule_decides(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {
            ".gitignore": "*.log\n/top.txt\nout/\n**/deep/*.tmp\n",
            "a.log": "",
            "top.txt": "",
            "kept/top.txt": "x",
            "out/x.py": "",
            "src/.gitignore": "!keep.log\n/secret\n",
            "src/keep.log": "x",
            "src/b.log": "",
            "src/secret/x.py": "",
            "src/sub/secret": "x",
            "src/sub/keep.log": "x",
            "src/deep/a.tmp": "",
            "other/.gitignore": "*\n!.gitignore\n!*.py\n",
            "other/a.txt": "",
            "other/a.py": "x",
        },
    )

    walked = walk(tmp_path)

    assert [file.path for file in walked.files] == [
        ".gitignore",
        "kept/top.txt",
        "other/.gitignore",
        "other/a.py",
        "src/.gitignore",
        "src/keep.log",
        "src/sub/keep.log",
        "src/sub/secret",
    ]
    assert walked.skipped == {SkipReason.GITIGNORED: 7}


def test_rules_above_the_folder_hold_within_its_work_tree(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {
            ".git/info/exclude": "*.cache\n",
            ".gitignore": "sub/part/*.log\n",
            "sub/.gitignore": "/part/gone.py\n",
            "sub/part/a.log": "",
            "sub/part/gone.py": "",
            "sub/part/a.cache": "",
            "sub/part/kept.py": "x",
        },
    )

    assert paths(tmp_path / "sub" / "part") == ["kept.py"]


def test_a_bad_rule_costs_only_itself(tmp_path: Path) -> None:
    fill(tmp_path, {"a.log": "", "b.py": "x"})
    (tmp_path / ".gitignore").write_bytes(b"a/***/[\n!\n*.log\r\n\xff\n")

    assert "a.log" not in paths(tmp_path)
    assert "b.py" in paths(tmp_path)


def test_rules_that_can_not_be_read_are_none(tmp_path: Path) -> None:
    fill(tmp_path, {"a.py": "x"})
    (tmp_path / ".gitignore").write_bytes(b"*\0*")

    assert "a.py" in paths(tmp_path)


def test_what_others_wrote_is_left_out(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {
            "node_modules/x/index.js": "",
            "sub/Vendor/x.go": "",
            "build/out.js": "",
            "src/build/__init__.py": "x",
            "my-env/pyvenv.cfg": "",
            "pkg.egg-info/PKG-INFO": "",
            ".git/config": "",
            "sub/.git": "gitdir: elsewhere",
            "a.py": "x",
        },
    )

    walked = walk(tmp_path)

    assert [file.path for file in walked.files] == ["a.py", "src/build/__init__.py"]
    assert walked.skipped == {SkipReason.VENDORED: 5}


def test_links_devices_and_large_files_are_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    fill(root, {"a.py": "x", "big.py": "x" * 1_000_001, "just.py": "x" * 1_000_000})
    fill(tmp_path, {"outside/secret.py": "x"})
    (root / "link.py").symlink_to(tmp_path / "outside" / "secret.py")
    (root / "linked").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "pipe.py")
    monkeypatch.chdir(root)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind("socket.py")

        walked = walk(root)

    assert [file.path for file in walked.files] == ["a.py", "just.py"]
    assert walked.skipped == {
        SkipReason.TOO_LARGE: 1,
        SkipReason.SYMLINK: 3,
        SkipReason.SPECIAL: 2,
    }


def test_odd_names_are_kept_where_they_can_be_shown(tmp_path: Path) -> None:
    kept = ["a b.py", "quo'te\".py", "emoji 😀.py", "rtl \u202e\u05d0.py", "back\\slash.py"]
    fill(tmp_path, dict.fromkeys([*kept, "new\nline.py", "tab\t.py", "esc\x1b[31m.py"], "x"))
    (tmp_path / os.fsdecode(b"bad\xff.py")).write_text("x")
    (tmp_path / os.fsdecode(b"folder\xff")).mkdir()

    walked = walk(tmp_path)

    assert [file.path for file in walked.files] == sorted(kept)
    assert walked.skipped == {SkipReason.ODD_NAME: 5}


def test_the_order_is_that_of_the_code_points(tmp_path: Path) -> None:
    fill(tmp_path, dict.fromkeys(["b/a.py", "b.py", "B.py", "a/z.py", "é.py", "b/A.py"], "x"))

    assert paths(tmp_path) == ["B.py", "a/z.py", "b.py", "b/A.py", "b/a.py", "é.py"]


def test_a_folder_that_can_not_be_read_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, {"a.py": "x", "closed/b.py": "x"})
    real = os.scandir

    def refuse(folder: Path) -> object:
        if folder.name == "closed":
            raise PermissionError
        return real(folder)

    monkeypatch.setattr("ibid.indexing.walk.os.scandir", refuse)
    walked = walk(tmp_path)

    assert [file.path for file in walked.files] == ["a.py"]
    assert walked.skipped == {SkipReason.UNREADABLE: 1}


def test_no_nesting_of_folders_is_too_deep(tmp_path: Path) -> None:
    deep = "/".join("d" * 1 for _ in range(400))
    fill(tmp_path, {f"{deep}/a.py": "x"})

    assert paths(tmp_path) == [f"{deep}/a.py"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a/package-lock.json", SkipReason.LOCK_FILE),
        ("poetry.lock", SkipReason.LOCK_FILE),
        ("go.sum", SkipReason.LOCK_FILE),
        ("app.js.map", SkipReason.SOURCE_MAP),
        ("jquery.min.js", SkipReason.MINIFIED),
        ("jquery-3.min.css", SkipReason.MINIFIED),
        (".env", SkipReason.SECRET),
        ("conf/.env.production", SkipReason.SECRET),
        ("server.PEM", SkipReason.SECRET),
        (".ssh/id_rsa", SkipReason.SECRET),
        ("a.png", SkipReason.BINARY),
        (".env.example", None),
        ("admin.js", None),
        ("png", None),
        ("environment.py", None),
        ("src/lock.py", None),
    ],
)
def test_a_name_may_say_enough(path: str, reason: SkipReason | None) -> None:
    assert name_skip(path) is reason


@pytest.mark.parametrize(
    ("lines", "language", "reason"),
    [
        ([], "text", SkipReason.EMPTY),
        (["", " \t"], "python", SkipReason.EMPTY),
        (["x" * 900_000], "javascript", SkipReason.MINIFIED),
        (["x" * 900_000], "text", SkipReason.MINIFIED),
        (["x" * 900_000], "jupyter", None),
        (["x" * 1_000] * 10, "css", SkipReason.MINIFIED),
        (["x" * 1_000] * 3, "css", None),
        (["x" * 1_000] * 10, "markdown", None),
        (["x"], "python", None),
    ],
)
def test_lines_may_say_enough(lines: list[str], language: str, reason: SkipReason | None) -> None:
    assert content_skip(lines, language) is reason


def test_an_odd_name_is_one_that_can_not_be_shown() -> None:
    assert odd_name("a\x7f")
    assert odd_name("a\ud800")
    assert not odd_name("a\u202e😀 '\"")
