"""Write `docs/transcripts.md`: `python -m tests.e2e.transcripts` (IBID_SHARED names the data).

Each part serves a code base as `make run` does, pastes the printed curl line with a question in it,
and opens every citation that came in the files it names.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "transcripts.md"
IBID = str(Path(sys.executable).with_name("ibid"))
WAIT_S = 900.0
HEAD = """# Transcripts

Written by `python -m tests.e2e.transcripts` from real runs: what `make run` prints, the curl line
that it prints, the stream that comes back, and each citation opened in the file that it names. A
citation that did not hold would stop the command. Long scores and ids are shortened here (`…`).
"""


@contextmanager
def serving(folder: Path, name: str) -> Iterator[list[str]]:
    """Serve a folder until all of it is indexed; give the lines that were printed."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("IBID_")}
    with tempfile.TemporaryDirectory() as data:
        command = [IBID, "serve", "--data", data, "--index", str(folder), "--name", name]
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=environ | {"COLUMNS": "100"}
        )
        assert process.stderr is not None
        lines: list[str] = []
        try:
            deadline = time.monotonic() + WAIT_S
            for line in process.stderr:
                lines.append(line.rstrip())
                if "embedded" in line or "failed" in line or time.monotonic() > deadline:
                    break
            yield lines
        finally:
            process.terminate()
            process.wait(timeout=30)
            process.stderr.close()


def asked(lines: list[str], question: str | None) -> tuple[str, str]:
    """Paste the printed curl line, with another question if one is given; return what came too."""
    [printed] = [line for line in lines if line.startswith("curl ")]
    words = shlex.split(printed)
    if question is not None:
        words[words.index("-d") + 1] = json.dumps({"question": question})
    done = subprocess.run([*words, "-sS"], capture_output=True, text=True, check=True)
    shown = " ".join(
        shlex.quote(word) if re.search(r"[^\w:/.\-]", word) else word for word in words
    )
    return shown, done.stdout


def opened(stream: str, folder: Path) -> Iterator[str]:
    """Open the citations of the last event, and hold what the answer quotes to their lines."""
    events = [block.split("\n") for block in stream.strip().split("\n\n")]
    fields = [dict(line.split(": ", 1) for line in event if ": " in line) for event in events]
    answer = "".join(
        json.loads(field["data"])["text"] for field in fields if field.get("event") == "token"
    )
    assert fields[-1]["event"] == "done", fields[-1]
    done: dict[str, Any] = json.loads(fields[-1]["data"])
    cited = [citation for citation in done["citations"] if citation["cited"]]
    assert cited
    held: set[str] = set()
    for citation in cited:
        whole = (folder / citation["filePath"]).read_text().split("\n")
        lines = whole[citation["startLine"] - 1 : citation["endLine"]]
        assert len(lines) == citation["endLine"] - citation["startLine"] + 1
        held |= {line.rstrip() for line in lines}
        yield f"$ sed -n {citation['startLine']},{citation['endLine']}p {citation['filePath']}"
        yield from (line for line in lines[:12])
        if len(lines) > 12:
            yield f"… {len(lines) - 12} more lines"
    for quoted in re.findall(r"```\w*\n(.*?)```", answer, re.DOTALL):
        for line in quoted.rstrip("\n").split("\n"):
            assert line.rstrip() in held or line.strip() == "...", line


def shortened(stream: str) -> str:
    """Join runs of tokens as a reader sees them, and cut what is long and not for people."""
    text = re.sub(r"(\d\.\d{3})\d+", r"\1…", stream)
    text = re.sub(r"\b([0-9a-f]{8})[0-9a-f]{24,}\b", r"\1…", text)
    blocks = text.strip().split("\n\n")
    tokens = [at for at, block in enumerate(blocks) if block.startswith("event: token")]
    keep = set(range(len(blocks))) - set(tokens[4:-1])
    lines = []
    for at, block in enumerate(blocks):
        if at in keep:
            lines.append(
                "\n".join(line[:240] + "…" * (len(line) > 240) for line in block.split("\n"))
            )
        elif at == tokens[4]:
            lines.append(f": … {len(tokens) - 5} more token events")
    return "\n\n".join(lines)


def part(title: str, folder: Path, name: str, command: str, question: str | None) -> str:
    """Write one transcript."""
    with serving(folder, name) as lines:
        curl, stream = asked(lines, question)
        found = "\n".join(opened(stream, folder))
    answer = "".join(
        json.loads(line[6:])["text"]
        for event in stream.split("\n\n")
        if event.startswith("event: token")
        for line in event.split("\n")
        if line.startswith("data: ")
    )
    printed = "\n".join(line for line in lines if line)
    return f"""
## {title}

````console
$ {command}
{printed}
$ {curl}
{shortened(stream)}
````

The tokens joined:

{answer}

The citations opened:

````console
{found}
````
"""


def main() -> None:
    """Write the page anew."""
    [archive] = (Path(os.environ["IBID_SHARED"]) / "data" / "swe-qa").glob("flask.source.*.tar.gz")
    with tempfile.TemporaryDirectory() as work:
        checkout = Path(work, "ibid")
        subprocess.run(["git", "clone", "-q", str(ROOT), str(checkout)], check=True)  # noqa: S607 - whichever git is there
        flask = Path(work, "flask")
        with tarfile.open(archive) as tar:
            tar.extractall(flask, filter="data")
        text = HEAD + part(
            "This repository",
            checkout,
            "ibid",
            "make run",
            None,
        )
        text += part(
            "flask, at the pinned commit of the data for measuring",
            flask,
            "flask",
            "make run REPO=flask",
            "How does url_for build an external URL?",
        )
        for path in (checkout, flask):
            text = text.replace(str(path), path.name)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
