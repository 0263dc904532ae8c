"""The transcripts that the README shows are what the commands print."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
BLOCK = re.compile(r"^````console\n(.*?)^````$", re.MULTILINE | re.DOTALL)


def transcript(block: str) -> Iterator[tuple[str, str]]:
    """Part a block into its commands, each with what it printed."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


def printed(command: str, data: Path) -> str:
    """Run a command of the README on a data folder of its own; return all that it printed."""
    name, *words = shlex.split(command)
    assert name == "ibid"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("IBID_")}
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ibid")), *words, "--data", str(data)],
        cwd=ROOT,
        env=environ | {"COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    return "\n".join(line.rstrip() for line in done.stdout.split("\n"))


def regenerated(text: str, data: Path) -> str:
    """Return the README with its transcripts as the commands print them now."""

    def block(found: re.Match[str]) -> str:
        commands = [command for command, _ in transcript(found[1])]
        parts = [f"$ {command}\n{printed(command, data)}" for command in commands]
        return "````console\n" + "".join(parts) + "````"

    return BLOCK.sub(block, text)


@pytest.mark.timeout(600)
def test_the_transcripts_of_the_readme_are_true(tmp_path: Path) -> None:
    text = README.read_text()
    assert BLOCK.search(text)

    assert regenerated(text, tmp_path / "data") == text


if __name__ == "__main__":  # `python -m tests.e2e.test_readme FOLDER` writes them anew
    README.write_text(regenerated(README.read_text(), Path(sys.argv[1])))
